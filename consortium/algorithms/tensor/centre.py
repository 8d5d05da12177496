"""capeAGN: mixtures of Gaussians and single-topic models from moments of order two and three.

Source: dissertation Algorithm 5.1, changed. The second moment is released first and whitens;
the third is taken of whitened persons at the sites, so that a message has K (K + 1)(K + 2)/6
numbers instead of D³. A whitened person is clipped: replacing one moves the third moment by
2 B / n. Of few words per topic the third moment is released whole, as published: it moves by
√2 B / n only, and nobody is clipped. The correction for the Gaussians' own spread needs σ² and the
mean only, which the first release holds, and costs nothing more. Weights come from the mean, which
is known far better than the third moment: for orthonormal u_k and whitened mean m, √w_k = u_kᵀ m.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from consortium.algorithms.base import (
    AnalysisPlan,
    Argument,
    Case,
    Local,
    PlannedRelease,
    Query,
    Run,
)
from consortium.algorithms.query_arguments import SITE_MEANS
from consortium.algorithms.tensor.kernels.tensor import transformed, unpack_cubic
from consortium.algorithms.tensor.parameters import TensorParameters
from consortium.algorithms.tensor.plan import (
    MOST_NOISE,
    means_noise,
    moment_constants,
    plan_releases,
    released_whole,
    vocabulary,
)
from consortium.algorithms.tensor.result import (
    corrected,
    mixture_moments,
    tensor_result,
    topic_moments,
)
from consortium.algorithms.tensor.site import STATISTICS

ONE_CONSTANT = (
    "All sites have one constant together: sites that differ in level count as components. Set "
    "analysis.site_constants to change it."
)
COSTLY = (
    "With so few participants for this ε the noise of sites' means hides components that few "
    "participants have. With analysis.site_constants: false more is found, but offsets between "
    "sites too."
)
TOPICS = "Sites whose words are not equally frequent count as topics."
_VIEWS = (("x", 4), ("y", 1))  # of the examples
_WORDS = ("one", "two", "three")


class Tensor(AnalysisPlan[TensorParameters]):
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

    @cached_property
    def releases(self) -> tuple[PlannedRelease, PlannedRelease]:
        """One release each, sharing the budget."""
        return plan_releases(self.parameters, self.shape)

    def remarks(self) -> tuple[str, ...]:
        """Tell which constants there are, what that means, and whether it costs power."""
        if moment_constants(self.parameters, self.shape) > 1:
            costly = means_noise(self.parameters, self.shape) > MOST_NOISE
            return (SITE_MEANS, COSTLY) if costly else (SITE_MEANS,)
        if len(self.shape.units) < 2:
            return ()
        return (ONE_CONSTANT if self.parameters.words is None else TOPICS,)

    def withheld(self) -> str:
        """Why there is no forecast."""
        return (
            "There is no forecast of a decomposed tensor: its error depends on the components' "
            "weights and on how far apart they are, which no public number tells."
        )

    def run(self) -> Run:
        """Whiten by the second moment, decompose the third."""
        starts, size = vocabulary(self.parameters, self.shape)
        topics = len(starts) > 0
        kind = "topic" if topics else "mixture"
        second = yield Query("second", f"{kind}_second")
        model = (topic_moments if topics else mixture_moments)(second, self.parameters, self.shape)
        if released_whole(self.parameters, size):
            third = yield Query("third", "topic_cube")
            tensor = transformed(unpack_cubic(third.values, size), model.whitening.forward)
            return tensor_result(self.parameters, self.shape, model, tensor)
        forward = model.scale * model.whitening.forward
        asked: dict[str, Argument] = {**model.taken, "whitening": forward}
        third = yield Query("third", f"{kind}_third", asked)
        tensor = unpack_cubic(third.values, self.parameters.components) / model.scale**3
        return tensor_result(self.parameters, self.shape, model, corrected(tensor, model))
