"""The release of a summary: each site's mean embedding at public frequencies."""

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from consortium.algorithms.base import AnalysisPlan, Array, PlannedRelease, Shape
from consortium.algorithms.summarize.kernels.mean_embedding import draw_frequencies
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound


class SummarizePlan(AnalysisPlan[SummarizeParameters]):
    """Public quantities of every site and the centre before the only round.

    Raises StudyError if there is only one site, or none with the target's name.

    Attributes
    ----------
    width : float
        Distance within which two participants are similar.
    """

    def __init__(self, parameters: SummarizeParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if len(shape.units) < 2:
            raise StudyError("field 'sites': a comparison of sites needs at least two; add one.")
        if parameters.target is not None and shape.sites and parameters.target not in shape.sites:
            raise StudyError(
                f"field 'analysis.target': '{parameters.target}' is none of the sites that take "
                f"part; name one of {', '.join(shape.sites)}."
            )
        self.width = parameters.width or math.sqrt(shape.features) / 2

    @cached_property
    def releases(self) -> tuple[PlannedRelease]:
        """One release with the whole budget."""
        what = ("mean_embedding", 2 * self.parameters.frequencies, Bound(1.0))
        return (PlannedRelease("summarize", *what, 1, 1.0, released="each"),)

    @property
    def computed(self) -> Mapping[str, Array]:
        """Public draws."""
        return {"frequencies": self.frequencies}

    @cached_property
    def frequencies(self) -> Array:
        """Public frequencies, D x F."""
        return self.drawn()[0]

    def drawn(self) -> tuple[Array, np.random.Generator]:
        """Return public frequencies, D x F, and the generator after them."""
        many = self.parameters.frequencies
        generator = np.random.default_rng(self.parameters.seed)
        return draw_frequencies(self.shape.features, many, self.width, generator), generator
