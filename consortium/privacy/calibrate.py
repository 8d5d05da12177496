"""The least noise that keeps every site's promise: the inverse of `loss`.

With equal demands (the usual case: a mean weighted by site size asks the same
of all) the answer is in closed form. With unequal ones the aggregate variance
is minimized by a linear program over the γ_s²; it takes the place of the linear
system of dissertation section 3.3.7, whose solution may be negative. The program
is exact for ``secure-sum`` and in the limit of a large κ; where κ is small the
same noise at every site may be less in all, and is then taken.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from consortium.errors import PrivacyError
from consortium.privacy.loss import Floats, Scheme, SiteNoise, coalition_losses

_MOST = 1e280  # of all variances together: sums of their multiples are still numbers


def calibrate(
    scheme: Scheme,
    sensitivities: Sequence[float],
    targets: Sequence[float],
    *,
    colluding: int,
    dropouts: int = 0,
    boost: float = 10_000.0,
) -> SiteNoise:
    """Noise with which no site's loss against the coalition exceeds its target.

    Raises PrivacyError if a target is not positive, or nobody honest would be left.

    Parameters
    ----------
    scheme : {'cape', 'secure-sum', 'local', 'none'}
    sensitivities, targets : sequence of float
        Δ_s in the aggregator's units, and the μ_s that site s allows.
    colluding, dropouts : int
        As in `coalition_losses`; the promise holds for the worst sites.
    boost : float
        κ: the correlated variance is κ times the site's whole noise variance τ_s² = S·γ².
        κ = 1 is the dissertation's; ê cancels, so a large κ costs no accuracy.

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
    candidates = []
    for local in (_least_variances(demands, colluding + dropouts), np.full(count, demands.max())):
        correlated = np.full(count, boost * local.sum() if scheme == "cape" else 0.0)
        draft = SiteNoise(scheme, tuple(np.sqrt(correlated)), tuple(np.sqrt(local)))
        reached = coalition_losses(draft, sensitivities, colluding, dropouts=dropouts)
        factor = float(np.max(reached / np.asarray(targets)))
        if math.isfinite(factor):  # the program may round a tiny site's noise to none
            candidates.append(_scaled(draft, factor))
    if not candidates:
        raise PrivacyError(
            f"Noise for μ = {min(targets):.3g} at these sites is less or more than a number can "
            "hold; correct the study's bounds, or epsilon."
        )
    return min(candidates, key=SiteNoise.aggregate)


def _scaled(noise: SiteNoise, factor: float) -> SiteNoise:
    correlated = tuple(float(sigma) * factor for sigma in noise.correlated)
    local = tuple(float(gamma) * factor for gamma in noise.local)
    return SiteNoise(noise.scheme, correlated, local)


def _demands(
    scheme: Scheme, sensitivities: Sequence[float], targets: Sequence[float], missing: int
) -> Floats:
    """Variance (Δ_s/μ_s)² that has to hide each site."""
    if len(sensitivities) != len(targets) or len(targets) == 0:
        raise PrivacyError("Every site needs one sensitivity and one target; give both per site.")
    if any(not (math.isfinite(t) and t > 0) for t in targets):
        raise PrivacyError("A target of μ is not a positive, finite number; raise epsilon.")
    if scheme in ("cape", "secure-sum") and missing >= len(targets):
        raise PrivacyError(
            f"{missing} colluding or missing sites leave none of {len(targets)} honest; "
            "lower colluding_sites or dropouts, or choose scheme: local."
        )
    with np.errstate(over="ignore"):
        demands: Floats = (np.asarray(sensitivities, float) / np.asarray(targets, float)) ** 2
    if not demands.sum() <= _MOST:
        raise PrivacyError(
            f"A release with μ = {min(targets):.3g} would need more noise than a number can hold; "
            "raise epsilon, or the share of the budget that the study gives to this release."
        )
    return demands


def _least_variances(demands: Floats, missing: int) -> Floats:
    """Least Σ x with, for each s, x_s + the sum of the smallest others >= demand_s."""
    count = len(demands)
    if np.allclose(demands, demands[0], rtol=1e-9, atol=0.0):
        return np.full(count, float(demands.max()) / (count - missing))
    others = count - 1 - missing
    if others == 0:
        return demands.copy()
    scale = float(demands.max())
    solution = linprog(**_program(demands / scale, others), method="highs")
    if not solution.success:
        raise PrivacyError("No noise levels meet the sites' targets; make the targets more alike.")
    least: Floats = np.maximum(solution.x[:count], 0.0) * scale
    return least


def _program(demands: Floats, others: int) -> dict[str, object]:
    """The linear program; the sum of the ``others`` smallest is max_θ k·θ − Σ (θ − x_t)₊."""
    count = len(demands)
    pairs = [(s, t) for s in range(count) for t in range(count) if t != s]
    variables = 2 * count + len(pairs)
    rows, columns, entries = [], [], []

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
