"""Ways to find correlations between two views: this project's under several schemes, and 7.1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.replication.printed import noisy_moment, published_ratio
from benchmarks.studies import result_of
from consortium.algorithms.base import Array, PlannedRelease, Query, Release, Result
from consortium.algorithms.cca.centre import Cca
from consortium.algorithms.cca.parameters import CcaParameters
from consortium.privacy.gdp import mu_of
from consortium.privacy.mechanism import Sharing, plan_mechanism
from consortium.simulation.array_data import ArrayData

CCA = Cca
DELTA, SITES, PAIRS = 1e-5, 10, 5


@dataclass(frozen=True)
class Way:
    """A way to spread the noise: the scheme, and the numbers of colluding sites and of sites."""

    name: str
    scheme: Any
    colluding: int = 0
    sites: int = SITES
    part: int = 1  # uses one in this number of participants


WAYS = (
    Way("no privacy", "none"),
    Way("pooled", "local", sites=1),
    Way("cape, none colludes", "cape"),
    Way("cape, 3 collude", "cape", 3),
    Way("conventional", "local", 3),
    Way("one site alone", "local", sites=1, part=SITES),
    Way("as published, at its true ε", "published", 3),
    Way("as published, cut to 1", "cut", 3),
)
OURS, RIVAL, CUT = "cape, 3 collude", WAYS[-2].name, WAYS[-1].name
KEYS = {
    "no privacy": "none",
    "pooled": "pooled",
    OURS: "cape",
    "conventional": "conv",
    "one site alone": "local",
    RIVAL: "published",
}
"""Ways as `drawing` names them."""


@dataclass(frozen=True, eq=False)
class Data:
    """Participants with two views, what to find in them, and public bounds of their norms."""

    name: str
    views: tuple[Array, Array]
    truth: Array
    bounds: Mapping[str, float]


def correlations(data: Data, way: Way, epsilon: float, seed: int, delta: float = DELTA) -> Array:
    """Estimate the data's correlations in one way."""
    generator = np.random.default_rng((seed, 1))
    if way.name in (RIVAL, CUT):
        found = published(data, epsilon, generator, delta)
        return np.minimum(found, 1.0) if way.name == CUT else found
    return solve(data, way, epsilon, generator, delta).arrays["correlations"]


def solve(
    data: Data, way: Way, epsilon: float, generator: np.random.Generator, delta: float = DELTA
) -> Result:
    """Run the algorithm over the sites, with the noise that the plan would have."""
    stacked = np.vstack(data.views)[:, :: way.part]
    names = [(name, len(view)) for name, view in zip("xy", data.views, strict=True)]
    columns = stacked.T[:, :, None]
    sites = [ArrayData(list(columns[s :: way.sites]), views=names) for s in range(way.sites)]
    counts = [len(site.lengths) for site in sites]
    shape = sites[0].extent.shape(counts, counts, "subject")
    parameters = CcaParameters(pairs=PAIRS, bounds=dict(data.bounds), site_constants=False)
    plan = CCA(parameters, shape)
    planned = {r.stage: r for r in plan.planned()}

    def answer(query: Query) -> Release:
        release = planned[query.stage]
        local = plan.statistics[query.statistic]
        mean = np.average(
            [local(plan, s, query, release.bound) for s in sites], axis=0, weights=counts
        )
        deviation = aggregate(release, way, counts, mu_of(epsilon, delta))
        return Release(mean + deviation * generator.standard_normal(len(mean)), deviation)

    return result_of(plan, answer)


def aggregate(release: PlannedRelease, way: Way, counts: list[int], mu: float) -> float:
    """Return the standard deviation of the noise in a release."""
    if way.scheme == "none":
        return 0.0
    mechanism = plan_mechanism(
        Sharing(way.scheme, colluding=way.colluding),
        entries=release.entries,
        bound=release.bound,
        units=counts,
        target=mu * float(np.sqrt(release.share / release.rounds)),
    )
    return mechanism.noise.aggregate()


def published(
    data: Data, epsilon: float, generator: np.random.Generator, delta: float = DELTA
) -> Array:
    """Return the unlimited correlations of Algorithm 7.1: noise may raise them above 1.

    They are at their true ε (see `printed.moment_epsilon`). Participants are centred and scaled to
    norm 1 without privacy loss, as in section 7.3.
    """
    z = np.vstack(data.views)
    z = z - z.mean(axis=1, keepdims=True)
    z /= np.linalg.norm(z, axis=0).max()
    tau = np.sqrt(2.0) / z.shape[1] / published_ratio(epsilon, delta, SITES, 1)
    c = noisy_moment(z, tau, generator)
    part = len(data.views[0])
    cxx, cxy, cyy = c[:part, :part], c[:part, part:], c[part:, part:]
    squares = np.linalg.eigvals(np.linalg.solve(cxx, cxy) @ np.linalg.solve(cyy, cxy.T)).real
    return np.sqrt(np.maximum(np.sort(squares)[::-1][:PAIRS], 0.0))
