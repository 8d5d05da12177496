"""capeAGN: mixtures of Gaussians and single-topic models from moments of order two and three.

Source: dissertation Algorithm 5.1, changed. The second moment is released first and gives the
whitening. The sites compute the third moment of whitened vectors. So a message has
K (K + 1)(K + 2)/6 numbers instead of D³. A whitened vector is clipped: replacing one moves the
third moment by 2 B / n. With few words per topic the third moment is released whole, as published:
it moves by √2 B / n only, without clipping. The correction for the Gaussians' own spread requires
only σ² and the mean, which are part of the first release, and no further privacy loss. Weights are
estimated from the mean, which is much more precise than the third moment: for orthonormal u_k and
whitened mean m, √w_k = u_kᵀ m.
"""

from functools import cached_property

import numpy as np

from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    AnalysisPlan,
    Array,
    Case,
    PlannedRelease,
    Query,
    Run,
    Shape,
)
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.algorithms.tensor.kernels.tensor import cubic_size, transform_tensor, unpack_cubic
from consortium.algorithms.tensor.parameters import TensorParameters
from consortium.algorithms.tensor.result import (
    CONSTANT,
    mixture_moments,
    subtract_spread,
    tensor_result,
    topic_moments,
)
from consortium.algorithms.tensor.site import STATISTICS
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.bounds import Bound

MOST_NOISE = 0.05
"""Noise of a site's mean vector, over the bound, beyond which it costs power that shows."""
_WHOLE = 4  # entries for each topic up to which a margin that clips few makes more noise
_MOST_WHOLE = 64

ONE_CONSTANT = (
    "All sites have one constant together: sites that differ in level count as components. Set "
    "analysis.site_constants to change it."
)
COSTLY = (
    "With this number of participants and this ε, the noise of sites' means hides components "
    "that few participants have. With analysis.site_constants: false more are found, but also "
    "offsets between sites."
)
TOPICS = "Sites whose words are not equally frequent count as topics."
_VIEWS = (("x", 4), ("y", 1))  # the examples' views
_WORDS = ("one", "two", "three")


class Tensor(AnalysisPlan[TensorParameters]):
    """A second moment of D x D, then a third of K x K x K, or of D x D x D where D is small.

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

    name = "tensor"
    title = "capeAGN tensor decomposition"
    takes = "features"
    needs_means = True
    Parameters = TensorParameters
    statistics = STATISTICS
    cases = (
        Case({"components": 2, "bound": 1.0}, views=_VIEWS),
        Case({"components": 5, "bound": 3.0, "share": 0.3}, views=_VIEWS),
        Case({"components": 2, "bound": 1.0, "site_constants": False}, views=_VIEWS),
        Case(
            {"components": 3, "model": "topics", "words": _WORDS},
            views=tuple((word, 4) for word in _WORDS),
        ),
        Case(
            {"components": 2, "model": "topics", "words": _WORDS},
            views=tuple((word, 9) for word in _WORDS),
        ),
    )

    def __init__(self, parameters: TensorParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        names = parameters.words or ()
        self.words = tuple(shape.view_slice(name, "analysis.words") for name in names)
        sizes = {word.stop - word.start for word in self.words} or {shape.features}
        if len(sizes) > 1 or len(set(names)) < len(names):
            raise StudyError(
                "field 'analysis.words': must name three different views with the same number of "
                f"entries, got {', '.join(names)}. Correct the names."
            )
        self.size: int = sizes.pop()
        if not parameters.components <= self.size <= MOST_SOLVED_FEATURES:
            raise StudyError(
                "field 'analysis.components': the number of entries must be from "
                f"{parameters.components}, the number of components, to {MOST_SOLVED_FEATURES}, "
                f"got {self.size}. Use fewer components, or change the views."
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

    def remarks(self) -> tuple[str, ...]:
        """State which constants the model has, and whether they cost power."""
        if self.constants > 1:
            return (SITE_MEANS, COSTLY) if self.means_noise > MOST_NOISE else (SITE_MEANS,)
        if len(self.shape.units) < 2:
            return ()
        return (TOPICS if self.words else ONE_CONSTANT,)

    def withheld(self) -> str:
        """Return why there is no forecast."""
        return (
            "A decomposed tensor has no forecast: its error depends on the components' weights "
            "and distances, which no public number gives."
        )

    def run(self) -> Run:
        """Whiten by the second moment, decompose the third."""
        first, last = self.releases
        second = yield Query("second", first.statistic)
        model = (topic_moments if self.words else mixture_moments)(self, second)
        if self.whole:
            third = yield Query("third", last.statistic)
            tensor = transform_tensor(
                unpack_cubic(third.values, self.size), model.whitening.forward
            )
            return tensor_result(self, model, tensor)
        forward = model.scale * model.whitening.forward
        asked: dict[str, Array] = {**model.taken, "whitening": forward}
        third = yield Query("third", last.statistic, asked)
        tensor = unpack_cubic(third.values, self.parameters.components) / model.scale**3
        return tensor_result(self, model, subtract_spread(tensor, model))
