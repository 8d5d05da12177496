"""CAPE as published, κ = 1 and the classical calibration: its noise, and its true privacy loss."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.replication.common import colluders
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.privacy.loss import SiteNoise, coalition_losses, printed_loss


def published_factor(sites: int) -> float:
    """Return the true μ of CAPE as published (κ = 1) over Δ/τ, against the worst coalition."""
    noise = SiteNoise("cape", (1.0,) * sites, (sites**-0.5,) * sites)
    return float(coalition_losses(noise, [1.0] * sites, colluders(sites))[0])


def classical(epsilon: float, delta: float) -> float:
    """Return Δ/τ of the papers' calibration τ = Δ √(2 ln(1.25/δ)) / ε."""
    return epsilon / math.sqrt(2 * math.log(1.25 / delta))


def true_epsilon(nominal: float, delta: float, sites: int, releases: int) -> float:
    """Return the true ε of CAPE as published, if each release is calibrated for ``nominal``."""
    each = classical(nominal, delta) * published_factor(sites)
    return epsilon_of(compose([each] * releases), delta)


def printed_epsilon(nominal: float, delta: float, sites: int) -> float:
    """Return the ε of one release by Theorem 3.1 as printed."""
    return epsilon_of(classical(nominal, delta) * printed_loss(sites, colluders(sites)), delta)


def published_ratio(epsilon: float, delta: float, sites: int, releases: int) -> float:
    """Return Δ/τ of each of the published releases whose true ε, all together, is ``epsilon``."""
    return mu_of(epsilon, delta) / (published_factor(sites) * math.sqrt(releases))


def moment_epsilon(nominal: float, delta: float, sites: int) -> float:
    """Return the true ε of a second moment by Algorithms 4.1 and 7.1, calibrated for ``nominal``.

    They use 1/N as its sensitivity. Against the coalition two participants are separated best if
    they differ on the diagonal: there replacing one moves it by √2/N and κ is 1. Off the diagonal
    E_s without symmetry is as κ = 1/2, but a difference there counts twice in the norm and once in
    the noise, which costs less (`tests/end_to_end/test_papers.py`).
    """
    each = math.sqrt(2.0) * classical(nominal, delta) * published_factor(sites)
    return epsilon_of(each, delta)


def noisy_moment(people: Array, tau: float, generator: np.random.Generator) -> Array:
    """Return the second moment of D x N people with N(0, τ²) on and above the diagonal.

    E_s, which Algorithms 4.1 and 7.1 draw without symmetry, cancels.
    """
    size, count = people.shape
    noise = tau * generator.standard_normal((size, size))
    moment: Array = people @ people.T / count + np.triu(noise) + np.triu(noise, 1).T
    return moment


def show_costs(
    title: str,
    columns: Sequence[str],
    nominal: Sequence[float],
    *costs: Callable[[float], float],
) -> None:
    """Print what releases at nominal ε cost, by each of some rules."""
    rows = [[f"{e:g}", *(f"{cost(e):.3g}" for cost in costs)] for e in nominal]
    show(title, ["nominal", *columns], rows)


def show_moment_costs(algorithm: str, epsilons: Sequence[float], delta: float, sites: int) -> None:
    """Print the claims of Theorem 3.1 for nominal ε, and the true losses."""
    show_costs(
        f"Algorithm {algorithm} at nominal ε, S = {sites}, δ = {delta:g}",
        ["Theorem 3.1", "true"],
        epsilons,
        lambda e: printed_epsilon(e, delta, sites),
        lambda e: moment_epsilon(e, delta, sites),
    )
