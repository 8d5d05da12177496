"""Which sites' persons are like those of one, and a made-up summary of them.

Source: Sarpatwar et al. (2019), Differentially private distributed data summarization under
covariate shift. Their first hash, random Fourier features, makes of every site one vector, the
mean embedding; in place of the second (MWEM) it is released once with Gaussian noise. Squared
distances of mean embeddings (MMD²), the mixture of sites that is nearest to the target, and points
that summarize it are then worked out at no further cost. The points are made up: a site's own
persons, which the published auction hands over, have no price in a privacy budget.

How far apart sites must be to be seen to differ, from public numbers alone.

Assumed: entries vary as a normal law does, with standard deviation 0.4, in a view of more than six
entries with one over the root of their number; the sites are alike.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from consortium.algorithms.assumed import round_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Case,
    Expectation,
    Local,
    PlannedRelease,
    Query,
    Run,
    Shape,
)
from consortium.algorithms.summarize.kernels.mean_embedding import null_floors
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.algorithms.summarize.plan import draw_public, kernel_width, plan_releases
from consortium.algorithms.summarize.result import compared, read_embeddings, summarize_result
from consortium.algorithms.summarize.site import mean_embedding

_VIEWS = (("x", 4), ("y", 1))  # of the examples


class Summarize(AnalysisPlan[SummarizeParameters]):
    """One release of 2 F numbers of each site."""

    name = "summarize"
    title = "summary under covariate shift"
    takes = "features"
    needs_means = True
    Parameters = SummarizeParameters
    statistics: ClassVar[Mapping[str, Local]] = {"mean_embedding": mean_embedding}
    cases: ClassVar[Sequence[Case]] = (
        Case({"frequencies": 6, "points": 2}, views=_VIEWS),
        Case({"frequencies": 5, "points": 1, "target": "north", "width": 0.7}, views=_VIEWS),
    )

    @cached_property
    def releases(self) -> tuple[PlannedRelease]:
        """One release with the whole budget."""
        return plan_releases(self.parameters, self.shape)

    def expect(self) -> tuple[Expectation, ...]:
        """How far apart sites must be to be seen to differ."""
        return expect(self.parameters, self.shape)

    def withheld(self) -> str:
        """Why nothing is foretold of the mixture."""
        return WITHHELD

    def run(self) -> Run:
        """Ask once, and compare."""
        generator = np.random.default_rng(self.parameters.seed)
        frequencies = draw_public(self.parameters, self.shape, generator)
        release = yield Query("summarize", "mean_embedding")
        found = read_embeddings(release, self.shape)
        return summarize_result(self.parameters, found, frequencies, generator)


WITHHELD = (
    "The mixture and the simulated participants are not forecast, since they depend on how the "
    "sites differ."
)


def expect(parameters: SummarizeParameters, shape: Shape) -> tuple[Expectation, ...]:
    """Noise floor of a distance, from noise alone to all that chance can add."""
    low, usual, high = (
        float(_floors(parameters, shape, part).max())
        for part in (0.0, own_variance(parameters, shape), 1.0)
    )
    ranged = "from noise alone to all that chance can add"
    low, high = min(low, usual), max(high, usual)
    return (Expectation("least squared distance that is seen", usual, low, high, False, ranged),)


def own_variance(parameters: SummarizeParameters, shape: Shape) -> float:
    """1 - ‖m‖², m persons' mean embedding; ‖m‖² = Π (1 + 2 s²/w²)^-½ over normal entries."""
    sizes = np.array([size for _, size in shape.views])
    square = np.square([usual_spread(int(size)) for size in sizes])
    ratio = 2.0 * square / kernel_width(parameters, shape) ** 2
    return 1.0 - math.exp(-0.5 * float(sizes @ np.log1p(ratio)))


def _floors(parameters: SummarizeParameters, shape: Shape, variance: float) -> Array:
    """As a result has them, for persons of so much variance."""
    (planned,), sizes = plan_releases(parameters, shape), np.array(shape.units, dtype=np.float64)
    named = parameters.target is not None and parameters.target in shape.sites
    _, contrasts = compared(sizes, shape.sites.index(str(parameters.target)) if named else None)
    deviations = round_deviation(planned, shape) * sizes.min() / sizes
    return null_floors(
        contrasts,
        deviations,
        variance / sizes,
        sizes,
        planned.entries,
        1.0 - parameters.confidence,
        np.random.default_rng(parameters.seed),
    )
