"""Figures 3.2, 3.3 and 6.1: δ and ε of CAPE by the printed formulas and exactly.

``python -m benchmarks.replication.theory`` prints tables and writes docs/images/theory.png.
Replacing a participant moves a site's mean by 1/N_s, as in Theorem 3.1. δ_conv is that of sites
whose own noise by itself gives the aggregate the variance of pooled data.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.replication.common import colluders
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import classical
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.privacy.gdp import compose, delta_of, epsilon_of
from consortium.privacy.loss import SiteNoise, coalition_losses, printed_loss

EPSILON, DELTA, SITES = 0.5, 0.01, 10
TIMES = (0.5, 1.0, 1.5, 2.0, 3.0)
"""τ over the one that the classical formula gives for ε and δ = 0.01."""
ROUNDS = (1, 10, 30, 100, 300, 1000)
PEOPLE, VARIANCE = 10_000, 0.001
"""N and σ² of figure 6.1; the chapter prints only σ², and that δ = 1/N."""
SENSITIVITY = 2.0 / PEOPLE


def printed_delta(mu: float, epsilon: float) -> float:
    """Return δ of Theorem 3.1 for μ_z = μ²/2 and σ_z = μ, at most 1."""
    distance = (epsilon - mu**2 / 2) / mu
    if distance <= 0:
        return 1.0
    return min(1.0, 2 / distance * math.exp(-(distance**2) / 2) / math.sqrt(2 * math.pi))


def exact_loss(sites: int, colluding: int) -> float:
    """Return the true μ of CAPE (κ = 1) over Δ/τ, against the worst coalition."""
    noise = SiteNoise("cape", (1.0,) * sites, (sites**-0.5,) * sites)
    return float(coalition_losses(noise, [1.0] * sites, colluding)[0])


def deltas(times: float, sites: int, colluding: int) -> dict[str, float]:
    """Return δ at ε = 0.5 by the printed theorem, exactly, and of the conventional way.

    For the aggregate's variance τ²/S² the conventional way has τ/√S at each site.
    """
    ratio = classical(EPSILON, DELTA) / times
    return {
        "theorem": printed_delta(ratio * printed_loss(sites, colluding), EPSILON),
        "exact": delta_of(ratio * exact_loss(sites, colluding), EPSILON),
        "conv": delta_of(ratio * math.sqrt(sites), EPSILON),
    }


def moments_epsilon(rounds: int) -> float:
    """Return ε of two releases a round by the exact moments of Gaussian noise, at δ = 1/N."""
    steps = 2 * rounds * SENSITIVITY**2 / VARIANCE
    return steps / 2 + math.sqrt(2 * steps * math.log(PEOPLE))


def printed_moments_epsilon(rounds: int) -> float:
    """Return the printed solution a, b, c of section 6.4, with 2 J* releases."""
    releases, d, variance = 2 * rounds, SENSITIVITY, VARIANCE
    a, b = 1 / (2 * releases * d), -d / (2 * variance)
    c = -math.log(PEOPLE) - releases * math.log(math.sqrt(variance / d))
    c += releases * d**3 / (8 * variance**2)
    return (-b + math.sqrt(b**2 - 4 * a * c)) / (2 * a)


def composed_epsilon(rounds: int) -> float:
    """Return the sum of all releases' ε, each by the classical formula at δ = 1/N."""
    return 2 * rounds * SENSITIVITY / math.sqrt(VARIANCE) * math.sqrt(2 * math.log(1.25 * PEOPLE))


def exact_epsilon(rounds: int) -> float:
    return epsilon_of(compose([SENSITIVITY / math.sqrt(VARIANCE)] * 2 * rounds), 1 / PEOPLE)


TOTALS: dict[str, Callable[[int], float]] = {
    "composition": composed_epsilon,
    "theorem": printed_moments_epsilon,
    "moments": moments_epsilon,
    "exact": exact_epsilon,
}


def main() -> None:
    by_noise = {s: [deltas(t, s, colluders(s)) for t in TIMES] for s in (SITES, 100)}
    fractions = [c / SITES for c in range(colluders(SITES) + 1)]
    by_colluders = [deltas(1.5, SITES, c) for c in range(colluders(SITES) + 1)]
    keys = ("theorem", "exact", "conv")
    rows = [
        [f"{s}, {colluders(s)}", f"{t:g}", *(f"{each[k]:.2g}" for k in keys)]
        for s, found in by_noise.items()
        for t, each in zip(TIMES, found, strict=True)
    ]
    rows += [
        [f"{SITES}, {c}", "1.5", *(f"{each[k]:.2g}" for k in keys)]
        for c, each in enumerate(by_colluders)
    ]
    show(f"δ at ε = {EPSILON:g}", ["S, S_C", "τ", *keys], rows)
    totals = {key: [total(rounds) for rounds in ROUNDS] for key, total in TOTALS.items()}
    show(
        f"ε of capeDJICA at δ = 1/N, N = {PEOPLE:,}, Δ = 2/N, σ² = {VARIANCE:g}",
        ["J*", *TOTALS],
        [[str(j), *(f"{totals[k][i]:.3g}" for k in TOTALS)] for i, j in enumerate(ROUNDS)],
    )
    drawn = [
        (f"Figure 3.2: S = {s}, S_C = {colluders(s)}, ε = 0.5", "τ", _curves(TIMES, found))
        for s, found in by_noise.items()
    ]
    drawn.append((f"Figure 3.3: S = {SITES}, τ = 1.5", "S_C/S", _curves(fractions, by_colluders)))
    axis = np.array(ROUNDS, float)
    curves = {key: (axis, np.array(values)) for key, values in totals.items()}
    drawn.append(("Figure 6.1", "J*", curves))
    print(panels("theory", drawn, "δ, or ε in figure 6.1"))


def _curves(
    axis: Sequence[float], found: Sequence[dict[str, float]]
) -> dict[str, tuple[Array, Array]]:
    x = np.array(axis)
    return {key: (x, np.array([each[key] for each in found])) for key in found[0]}


if __name__ == "__main__":
    main()
