"""Similarity of sites' participants to those of one site, and a synthetic summary of them.

Source: Sarpatwar et al. (2019), Differentially private distributed data summarization under
covariate shift. Their first hash, random Fourier features, gives every site one vector, the mean
embedding. In place of the second (MWEM) it is released once with Gaussian noise. Squared distances
of mean embeddings (MMD²), the mixture of sites that is nearest to the target, and points that
summarize it are then computed without further privacy loss. The points are synthetic: a site's own
participants, which the published auction transfers, can't be released within a privacy budget.

Assumptions of forecasts: entries are normal with standard deviation 0.4, or in a view of more than
six entries with one over the root of their number. The sites are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Run,
    Shape,
    SiteData,
)
from consortium.algorithms.summarize.kernels.mean_embedding import (
    draw_frequencies,
    fourier_features,
)
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.algorithms.summarize.result import (
    compared_sites,
    noise_floors,
    read_embeddings,
    summarize_result,
)
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector

_VIEWS = (("x", 4), ("y", 1))  # the examples' views


def mean_embedding(plan: Summarize, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of Fourier features of norm one, times the bound."""
    del query
    embedding: Array = fourier_features(data.table(), plan.frequencies).mean(axis=1)
    return bound.norm * clip_vector(embedding, 1.0)


class Summarize(AnalysisPlan[SummarizeParameters]):
    """One release of 2 F numbers of each site.

    Raises StudyError if there is only one site, or none with the target's name.

    Attributes
    ----------
    width : float
        Distance within which two participants are similar.
    """

    name = "summarize"
    title = "summary under covariate shift"
    takes = "features"
    needs_means = True
    Parameters = SummarizeParameters
    statistics = {"mean_embedding": mean_embedding}
    cases = (
        Case({"frequencies": 6, "points": 2}, views=_VIEWS),
        Case({"frequencies": 5, "points": 1, "target": "north", "width": 0.7}, views=_VIEWS),
    )

    def __init__(self, parameters: SummarizeParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        if len(shape.units) < 2:
            raise StudyError(
                "field 'sites': a comparison of sites requires at least two, got "
                f"{len(shape.units)}. Add a site."
            )
        if parameters.target is not None and shape.sites and parameters.target not in shape.sites:
            raise StudyError(
                "field 'analysis.target': must be one of the sites that take part "
                f"({', '.join(shape.sites)}), got '{parameters.target}'. Correct the name."
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

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the noise floor of a distance, from only noise to the largest sampling error."""
        parts = (0.0, own_variance(self), 1.0)
        low, usual, high = (float(_floors(self, part).max()) for part in parts)
        name = "least squared distance that is seen"
        ranged = "from only noise to the largest sampling error"
        low = min(low, usual)
        high = max(high, usual)
        return (
            Expectation(name=name, value=usual, low=low, high=high, rises=False, ranged=ranged),
        )

    def withheld(self) -> str:
        """Return why there is no forecast of the mixture."""
        unknown = (
            "The mixture and the simulated participants are not forecast, since they depend on how "
            "the sites differ."
        )
        return f"{unknown} {self.undetermined}".rstrip()

    @property
    def undetermined(self) -> str:
        """A warning if there are more entries than frequencies, which can't determine points."""
        entries = self.shape.features
        many = self.parameters.frequencies
        if entries <= many:
            return ""
        return (
            f"Warning: {many} frequencies do not determine participants of {entries} entries. The "
            "simulated participants can be far from the target although their features agree. Use "
            "fewer columns or more frequencies."
        )

    def run(self) -> Run:
        """Ask once, and compare."""
        release = yield Query("summarize", "mean_embedding")
        return summarize_result(self, read_embeddings(self, release))


def own_variance(plan: Summarize) -> float:
    """Return 1 - ‖m‖², m the mean embedding; ‖m‖² = Π (1 + 2 s²/w²)^-½ over normal entries."""
    sizes = np.array([size for _, size in plan.shape.views])
    square = np.square([usual_spread(int(size)) for size in sizes])
    return 1.0 - math.exp(-0.5 * float(sizes @ np.log1p(2.0 * square / plan.width**2)))


def _floors(plan: Summarize, variance: float) -> Array:
    """Return the floors of a result, for participants with a given variance."""
    (planned,) = plan.releases
    names = plan.shape.sites
    target = plan.parameters.target
    sizes = np.array(plan.shape.units, dtype=np.float64)
    _, contrasts = compared_sites(sizes, names.index(target) if target in names else None)
    deviations = planned.round_deviation(plan.shape) * sizes.min() / sizes
    return noise_floors(plan, contrasts, deviations, variance / sizes, sizes)
