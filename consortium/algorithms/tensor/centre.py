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

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Array, Case, Local, Query, Run
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.algorithms.tensor.kernels.tensor import transform_tensor, unpack_cubic
from consortium.algorithms.tensor.parameters import TensorParameters
from consortium.algorithms.tensor.plan import MOST_NOISE, TensorPlan
from consortium.algorithms.tensor.result import (
    mixture_moments,
    subtract_spread,
    tensor_result,
    topic_moments,
)
from consortium.algorithms.tensor.site import STATISTICS

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


class Tensor(TensorPlan):
    """A second moment of D x D, then a third of K x K x K, or of D x D x D where D is small."""

    name = "tensor"
    title = "capeAGN tensor decomposition"
    takes = "features"
    needs_means = True
    Parameters = TensorParameters
    statistics: ClassVar[Mapping[str, Local]] = STATISTICS
    cases: ClassVar[Sequence[Case]] = (
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
