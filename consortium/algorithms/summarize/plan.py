"""What a summary will release: each site's mean embedding at public frequencies."""

import math
from functools import partial

import numpy as np

from consortium.algorithms.base import Array, PlannedRelease, Shape
from consortium.algorithms.summarize.kernels.mean_embedding import draw_frequencies
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound


def plan_releases(parameters: SummarizeParameters, shape: Shape) -> tuple[PlannedRelease]:
    """One release with the whole budget."""
    if len(shape.units) < 2:
        raise StudyError("field 'sites': a comparison of sites needs at least two; add one.")
    if parameters.target is not None and shape.sites and parameters.target not in shape.sites:
        raise StudyError(
            f"field 'analysis.target': '{parameters.target}' is none of the sites that take "
            f"part; name one of {', '.join(shape.sites)}."
        )
    entries = 2 * parameters.frequencies
    return (
        PlannedRelease(
            *("summarize", "mean_embedding", entries, Bound(1.0), 1, 1.0),
            released="each",
            fixed={"frequencies": partial(_frequencies, parameters, shape)},
        ),
    )


def _frequencies(parameters: SummarizeParameters, shape: Shape) -> Array:
    return draw_public(parameters, shape, np.random.default_rng(parameters.seed))


def draw_public(
    parameters: SummarizeParameters, shape: Shape, generator: np.random.Generator
) -> Array:
    """Draw the public frequencies, D x F."""
    width = kernel_width(parameters, shape)
    return draw_frequencies(shape.features, parameters.frequencies, width, generator)


def kernel_width(parameters: SummarizeParameters, shape: Shape) -> float:
    """Distance within which two persons are alike."""
    return parameters.width or math.sqrt(shape.features) / 2
