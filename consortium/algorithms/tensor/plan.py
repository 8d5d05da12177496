"""The releases of a decomposition: a second moment, then a third, whitened or whole."""

from functools import cached_property

import numpy as np

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    AnalysisPlan,
    PlannedRelease,
    Shape,
)
from consortium.algorithms.tensor.kernels.tensor import cubic_size
from consortium.algorithms.tensor.parameters import TensorParameters
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound

CONSTANT = 0.5
"""Weight of the mean in a mixture's first release, over the bound."""
MOST_NOISE = 0.05
"""Noise of a site's mean vector, over the bound, beyond which it costs power that shows."""
_WHOLE = 4  # entries for each topic up to which a margin that clips few makes more noise
_MOST_WHOLE = 64


class TensorPlan(AnalysisPlan[TensorParameters]):
    """Public quantities of every site and the centre before the first round.

    Raises StudyError if words or components don't fit the views.

    Attributes
    ----------
    words : tuple of slice
        Entries of the three words; none for a mixture.
    size : int
        D, entries of a vector whose moments are released.
    reach, constant : float
        Clipping norm of a mixture's participants, and c, the weight of their mean.
    constants : int
        S, constants of a mixture's first release: one for each site, or one for all.
    """

    def __init__(self, parameters: TensorParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        names = parameters.words or ()
        self.words = tuple(shape.view_slice(name, "analysis.words") for name in names)
        sizes = {word.stop - word.start for word in self.words} or {shape.features}
        if len(sizes) > 1 or len(set(names)) < len(names):
            raise StudyError(
                "field 'analysis.words': the words need three different views of one size; name "
                "these."
            )
        self.size: int = sizes.pop()
        if not parameters.components <= self.size <= MOST_SOLVED_FEATURES:
            raise StudyError(
                f"field 'analysis.components': {parameters.components} can't be estimated from "
                f"{self.size} entries; have at least as many entries, and at most "
                f"{MOST_SOLVED_FEATURES}."
            )
        self.reach = float(parameters.bound or 0.0)
        self.constant = CONSTANT * self.reach
        separate = parameters.site_constants and not self.words
        self.constants = len(shape.units) if separate else 1

    @cached_property
    def releases(self) -> tuple[PlannedRelease, PlannedRelease]:
        """One release each, sharing the budget."""
        if self.words:
            statistic = "topic_second"
            size = self.size
            bound = Bound(1.0, cone=True)
        else:
            statistic = "mixture_second"
            size = self.size + self.constants
            bound = self._bound
        entries = packed_size(size)
        share = self.parameters.share
        return PlannedRelease(
            stage="second", statistic=statistic, entries=entries, bound=bound, rounds=1, share=share
        ), self._third(1 - share)

    def _third(self, share: float) -> PlannedRelease:
        if self.whole:
            what = ("topic_cube", cubic_size(self.size), Bound(1.0, cone=True))
            return PlannedRelease("third", *what, 1, share)
        components = self.parameters.components
        forms: dict[str, tuple[int, ...]] = {"whitening": (self.size, components)}
        if self.constants > 1:
            forms["offsets"] = (self.constants, self.size)
        statistic = "topic_third" if self.words else "mixture_third"
        what = (statistic, cubic_size(components), Bound(1.0))
        return PlannedRelease("third", *what, 1, share, forms)

    @property
    def _bound(self) -> Bound:
        """Bound of a mixture's first release."""
        return Bound(self.reach**2 * (1 + CONSTANT**2), cone=True)

    @property
    def whole(self) -> bool:
        """Whether the third moment is released before it is whitened.

        Noise on whitened words is K^1.5 · 2 margin³ in every direction of the tensor; on words it
        is √2 D^1.5, for a flat spectrum, without clipping: less where D is less than about
        1.3 margin² K. The plan does not depend on data.
        """
        most = min(_WHOLE * self.parameters.components, _MOST_WHOLE)
        return bool(self.words) and self.size <= most

    @property
    def means_noise(self) -> float:
        """Root mean square of the noise of a site's mean vector, over the bound; 0 without one.

        The mean of a site with a fraction π of the participants has noise τ/(√2 c π) in each entry.
        """
        if self.constants < 2:
            return 0.0
        sizes = np.array(self.shape.units, dtype=np.float64)
        sensitivity = self._bound.sensitivity(int(sizes.sum()))
        deviation = self.shape.noise * sensitivity / np.sqrt(self.parameters.share)
        each = deviation / (np.sqrt(2.0) * self.constant) * sizes.sum() / sizes
        squares = self.size * np.square(each)
        return float(np.sqrt(np.average(squares, weights=sizes)) / self.reach)
