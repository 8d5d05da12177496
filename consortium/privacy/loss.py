"""The exact privacy loss of the noise schemes, for any sites and any coalition.

All quantities are in the aggregator's units: site s contributes a_s = w_s·f_s, and the release is
the sum of the contributions. A coalition is the centre together with ``colluding`` sites. It sees
every message, every sum, and its members' own noise. All losses are μ of Gaussian differential
privacy.

For ``cape`` site s sends a_s + ê_s + g_s and the sum of the ê is then opened.
Given that view the log-likelihood ratio is Gaussian and

    μ_s² = Δ_s² [ 1/d_s + (σ_s²/d_s)² / Σ_{t honest} q_t ],
    d_s = σ_s² + γ_s²,   q_t = σ_t² γ_t² / d_t,

with σ_s and γ_s the standard deviations of ê_s and g_s. This replaces the dissertation's
Theorem 3.1 (eq. 3.3 and 3.4), which does not condition on the colluders' ê and states a
smaller loss.

As the σ grow, this falls to Δ_s² / Σ_{t honest} γ_t². Noise that is ``exact`` has this limit as its
loss: ê_s is uniform on the ring, and the messages reveal only the opened sum.

The smallest noise that keeps every site's guarantee is the inverse. With equal demands (the usual
case: a mean weighted by site size has the same at all sites) the solution has a closed form. With
unequal ones the aggregate variance is minimized by a linear program over the γ_s². It replaces the
linear system of dissertation section 3.3.7, whose solution may be negative. The program is exact
for ``exact`` noise. For small κ, equal noise at every site may be smaller in total, and is then
used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from consortium.errors import PrivacyError

Scheme = Literal["cape", "local", "none"]
Boost = Literal["exact"] | float
"""κ, or ``exact`` for correlated noise that is uniform on the ring."""
Floats = NDArray[np.float64]
_MOST = 1e280  # of all variances together: sums of their multiples are still numbers


def boost_text(boost: Boost) -> str:
    """Return a boost as people read it: ``exact``, or a number."""
    return boost if isinstance(boost, str) else f"{boost:,g}"


@dataclass(frozen=True)
class SiteNoise:
    """Standard deviations of every site's noise, in the aggregator's units."""

    scheme: Scheme
    correlated: tuple[float, ...]
    """σ_s of ê_s, which cancels in the release; zero if there is none, or if it is ``exact``."""
    local: tuple[float, ...]
    """γ_s of g_s, which stays in the release."""
    exact: bool = False
    """Whether ê_s is uniform on the ring; with ``cape`` only."""

    def aggregate(self, present: Sequence[int] | None = None) -> float:
        """Return the standard deviation of the noise in the released sum over sites ``present``."""
        local = np.asarray(self.local)
        chosen = local if present is None else local[list(present)]
        return float(np.sqrt(np.sum(chosen**2)))


def coalition_losses(
    noise: SiteNoise,
    sensitivities: Sequence[float],
    colluding: int,
    *,
    dropouts: int = 0,
    present: Sequence[int] | None = None,
) -> Floats:
    """Return μ_s of every present site against the worst coalition, in the order of ``present``.

    Parameters
    ----------
    sensitivities : sequence of float
        Δ_s of the contribution a_s (weight times the statistic's own sensitivity).
    colluding : int
        S_C; a number above that of the other sites means all other sites.
    dropouts : int
        Further sites that may be missing; the worst ones are taken.
    present : sequence of int, optional
        Sites whose message arrived; all by default.
    """
    sites = list(range(len(noise.local))) if present is None else list(present)
    delta = np.asarray(sensitivities, dtype=float)[sites]
    local = np.asarray(noise.local, dtype=float)[sites] ** 2
    correlated = np.asarray(noise.correlated, dtype=float)[sites] ** 2
    if noise.scheme == "none":
        return np.where(delta > 0, np.inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if noise.scheme == "local":
            return np.where(delta > 0, delta / np.sqrt(local), 0.0)
        if noise.exact:
            honest = _least_honest_sums(local, colluding + dropouts)
            return np.where(delta > 0, delta / np.sqrt(honest), 0.0)
        whole = correlated + local
        part = np.where(whole > 0, correlated * local / whole, 0.0)
        honest = _least_honest_sums(part, colluding + dropouts)
        squared = 1.0 / whole + np.where(correlated > 0, (correlated / whole) ** 2 / honest, 0.0)
        return np.where(delta > 0, delta * np.sqrt(squared), 0.0)


def outsider_losses(
    noise: SiteNoise,
    sensitivities: Sequence[float],
    *,
    dropouts: int = 0,
    present: Sequence[int] | None = None,
) -> Floats:
    """Return μ_s of every present site against an outsider who sees only the release.

    The parameters are those of `coalition_losses`: with a missing site, the released sum lacks its
    share of the noise.
    """
    sites = list(range(len(noise.local))) if present is None else list(present)
    delta = np.asarray(sensitivities, dtype=float)[sites]
    local = np.asarray(noise.local, dtype=float)[sites] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(delta > 0, delta / np.sqrt(_least_honest_sums(local, dropouts)), 0.0)


def printed_loss(sites: int, colluding: int) -> float:
    """Return μ of eq. 3.4 at Δ/τ = 1, as the dissertation states it, which the audit refutes.

    The symmetric setting with σ² = τ² and γ² = τ²/S.
    """
    s = float(sites)
    c = float(colluding)
    honest = s - c
    tail = 9.0 * c**2 / honest / (s * (1 + s) - 3 * c**2)
    return float(np.sqrt(s / (1 + s) * ((honest + 2) / honest + tail)))


def _least_honest_sums(values: Floats, missing: int) -> Floats:
    """Return for each site the sum over all sites but the ``missing`` largest others."""
    count = len(values)
    if missing < 0:
        raise PrivacyError(f"The number of colluding sites must be 0 or more, got {missing}.")
    kept = count - min(missing, count - 1)
    ascending = np.sort(values)
    least: Floats = ascending[: kept - 1].sum() + np.maximum(values, ascending[kept - 1])
    return least


def calibrate(
    scheme: Scheme,
    sensitivities: Sequence[float],
    targets: Sequence[float],
    *,
    colluding: int,
    dropouts: int = 0,
    boost: Boost = "exact",
) -> SiteNoise:
    """Return noise with which no site's loss against the coalition exceeds its target.

    Raises PrivacyError if a target is not positive, or no honest site would remain.

    Parameters
    ----------
    scheme : {'cape', 'local', 'none'}
    sensitivities, targets : sequence of float
        Δ_s in the aggregator's units, and the μ_s that site s allows.
    colluding, dropouts : int
        As in `coalition_losses`; the promise holds for the worst sites.
    boost : {'exact'} or float
        κ: the correlated variance is κ times the site's whole noise variance τ_s² = S·γ².
        κ = 1 is the dissertation's; ê cancels, so a large κ costs no accuracy. Correlated noise
        that is exact is uniform on the ring. For ``cape`` only.

    Returns
    -------
    SiteNoise
    """
    demands = _demands(scheme, sensitivities, targets, colluding + dropouts)
    count = len(demands)
    if scheme == "none":
        return SiteNoise(scheme, (0.0,) * count, (0.0,) * count)
    if scheme == "local":
        return SiteNoise(scheme, (0.0,) * count, tuple(np.sqrt(demands).tolist()))
    exact = boost == "exact"
    candidates = []
    for local in (_least_variances(demands, colluding + dropouts), np.full(count, demands.max())):
        correlated = np.full(count, 0.0 if exact else boost * local.sum())
        draft = SiteNoise(scheme, tuple(np.sqrt(correlated)), tuple(np.sqrt(local)), exact)
        reached = coalition_losses(draft, sensitivities, colluding, dropouts=dropouts)
        factor = float(np.max(reached / np.asarray(targets)))
        if math.isfinite(factor):  # the program may round a tiny site's noise to none
            candidates.append(_scaled(draft, factor))
    if not candidates:
        raise PrivacyError(
            f"The noise for μ = {min(targets):.3g} at these sites is outside the range of "
            "floating-point numbers. Correct the study's bounds, or epsilon."
        )
    return min(candidates, key=SiteNoise.aggregate)


def _scaled(noise: SiteNoise, factor: float) -> SiteNoise:
    correlated = tuple(float(sigma) * factor for sigma in noise.correlated)
    local = tuple(float(gamma) * factor for gamma in noise.local)
    return replace(noise, correlated=correlated, local=local)


def _demands(
    scheme: Scheme, sensitivities: Sequence[float], targets: Sequence[float], missing: int
) -> Floats:
    """Return the variance (Δ_s/μ_s)² that must hide each site."""
    if len(sensitivities) != len(targets) or len(targets) == 0:
        raise PrivacyError("Every site needs one sensitivity and one target. Give both per site.")
    if any(not (math.isfinite(t) and t > 0) for t in targets):
        raise PrivacyError("Every target of μ must be a positive, finite number. Raise epsilon.")
    if scheme == "cape" and missing >= len(targets):
        raise PrivacyError(
            f"At least one of {len(targets)} sites must be honest and present, and {missing} may "
            "collude or be missing. Lower colluding_sites or dropouts."
        )
    with np.errstate(over="ignore"):
        demands: Floats = (np.asarray(sensitivities, float) / np.asarray(targets, float)) ** 2
    if not demands.sum() <= _MOST:
        raise PrivacyError(
            f"A release with μ = {min(targets):.3g} would need more noise than a floating-point "
            "number can express. Raise epsilon, or this release's share of the budget."
        )
    return demands


def _least_variances(demands: Floats, missing: int) -> Floats:
    """Return x of the smallest Σ x with, for each s, x_s + the smallest others >= demand_s."""
    count = len(demands)
    if np.allclose(demands, demands[0], rtol=1e-9, atol=0.0):
        return np.full(count, float(demands.max()) / (count - missing))
    others = count - 1 - missing
    if others == 0:
        return demands.copy()
    scale = float(demands.max())
    solution = linprog(**_program(demands / scale, others), method="highs")
    if not solution.success:
        raise PrivacyError("No noise levels meet all sites' targets. Choose more similar targets.")
    least: Floats = np.maximum(solution.x[:count], 0.0) * scale
    return least


def _program(demands: Floats, others: int) -> dict[str, object]:
    """Solve the linear program; the sum of the ``others`` smallest is max_θ k·θ − Σ (θ − x_t)₊."""
    count = len(demands)
    pairs = [(s, t) for s in range(count) for t in range(count) if t != s]
    variables = 2 * count + len(pairs)
    rows = []
    columns = []
    entries = []

    def put(row: int, column: int, entry: float) -> None:
        rows.append(row)
        columns.append(column)
        entries.append(entry)

    for s in range(count):  # −x_s − kθ_s + Σ u_st <= −demand_s
        put(s, s, -1.0)
        put(s, count + s, -float(others))
    for index, (s, t) in enumerate(pairs):
        put(s, 2 * count + index, 1.0)
        row = count + index  # θ_s − x_t − u_st <= 0
        put(row, count + s, 1.0)
        put(row, t, -1.0)
        put(row, 2 * count + index, -1.0)
    matrix = coo_array((entries, (rows, columns)), shape=(count + len(pairs), variables))
    cost = np.zeros(variables)
    cost[:count] = 1.0
    right = np.concatenate([-demands, np.zeros(len(pairs))])
    return {"c": cost, "A_ub": matrix.tocsr(), "b_ub": right, "bounds": (0, None)}
