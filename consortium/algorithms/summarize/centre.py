"""Which sites' persons are like those of one, and a made-up summary of them.

Source: Sarpatwar et al. (2019), Differentially private distributed data summarization under
covariate shift. Their first hash, random Fourier features, makes of every site one vector, the
mean embedding; in place of the second (MWEM) it is released once with Gaussian noise. Squared
distances of mean embeddings (MMD²), the mixture of sites that is nearest to the target, and points
that summarize it are then worked out at no further cost. The points are made up: a site's own
persons, which the published auction hands over, have no price in a privacy budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from consortium.algorithms.base import (
    Array,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
    SiteData,
    Takes,
)
from consortium.algorithms.query_arguments import feature_argument
from consortium.algorithms.summarize.result import read_embeddings, summarize_result
from consortium.errors import StudyError
from consortium.kernels.mean_embedding import draw_frequencies, fourier_features
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector


class SummarizeParameters(BaseModel):
    """Parameters of `summarize`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    target: str | None = Field(
        default=None,
        description="Site whose persons the others' are compared with, and are to make up; by "
        "default each site is compared with all others together.",
    )
    frequencies: int = Field(
        default=50,
        ge=2,
        le=5_000,
        description="Random frequencies of the features; each site releases two numbers for each.",
    )
    width: float | None = Field(
        default=None,
        gt=0,
        description="Distance within which two persons are alike: the kernel is exp(-‖x - y‖²/(2 "
        "width²)). By default half the root of the number of entries; about 1 for one normalized "
        "view.",
    )
    points: int = Field(
        default=10, ge=1, le=1_000, description="Made-up persons that summarize the target."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Level of the intervals.")
    seed: int = Field(default=0, ge=0, description="Seed of the public frequencies.")


def _mean_embedding(data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of their Fourier features, which have norm one, times the bound."""
    frequencies = feature_argument(query, "frequencies", data.features)
    embedding: Array = fourier_features(data.table(), frequencies).mean(axis=1)
    return bound.norm * clip_vector(embedding, 1.0)


class Summarize:
    """One release of 2 F numbers of each site."""

    name = "summarize"
    title = "summary under covariate shift"
    takes: Takes = "features"
    needs_means = True
    Parameters = SummarizeParameters
    statistics: ClassVar[Mapping[str, Local]] = {"mean_embedding": _mean_embedding}

    def releases(self, parameters: SummarizeParameters, shape: Shape) -> tuple[PlannedRelease]:
        """One release with the whole budget."""
        if len(shape.units) < 2:
            raise StudyError("field 'sites': a comparison of sites needs at least two; add one.")
        if parameters.target is not None and shape.sites and parameters.target not in shape.sites:
            raise StudyError(
                f"field 'analysis.target': '{parameters.target}' is none of the sites that take "
                f"part; name one of {', '.join(shape.sites)}."
            )
        form = {"frequencies": (shape.features, parameters.frequencies)}
        entries = 2 * parameters.frequencies
        return (
            PlannedRelease(
                *("summarize", "mean_embedding", entries, Bound(1.0), 1, 1.0, form, "each"),
                fixed={"frequencies": partial(_frequencies, parameters, shape)},
            ),
        )

    def run(self, parameters: SummarizeParameters, shape: Shape) -> Run:
        """Ask once, and compare."""
        generator = np.random.default_rng(parameters.seed)
        frequencies = _draw(parameters, shape, generator)
        release = yield Query("summarize", "mean_embedding", {"frequencies": frequencies})
        found = read_embeddings(release, shape)
        return summarize_result(parameters, found, frequencies, generator)


def _frequencies(parameters: SummarizeParameters, shape: Shape) -> Array:
    return _draw(parameters, shape, np.random.default_rng(parameters.seed))


def _draw(parameters: SummarizeParameters, shape: Shape, generator: np.random.Generator) -> Array:
    """Draw the public frequencies, D x F."""
    width = parameters.width or math.sqrt(shape.features) / 2
    return draw_frequencies(shape.features, parameters.frequencies, width, generator)
