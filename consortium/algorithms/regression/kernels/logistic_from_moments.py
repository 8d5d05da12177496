"""From a least-squares fit of labels to logistic coefficients.

For predictors whose combination s = b + wᵀx is Gaussian within every group (site), the logistic
likelihood is stationary where (Stein's identity; C. Stein 1981)

    cov(x, y) = Σ w Σ_g π_g E_g[½ sech²(s/2)]   and   E_g[y] = E_g[tanh(s/2)],   y = ±1,

with covariances within groups, whose shares are π_g. So w is the least-squares solution times a
factor, which an equation in one number gives. The second-order Taylor polynomial of dissertation
section 8.2.2 is its limit for small w: 2.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

TAYLOR = 2.0
"""Factor of the second-order Taylor polynomial: -(-1/2) / (2 · 1/8)."""
_MOST_SPREAD = 8.0  # of s; beyond, the labels are all but separated
_HALVINGS = 44
MOST_MEAN = 0.999
"""Largest mean of labels that is distinguished from 1."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_SHARES: NDArray[Any] = _WEIGHTS / _WEIGHTS.sum()


def logistic_factor(variance: float, means: Sequence[float], parts: Sequence[float]) -> float:
    """Return the factor from least-squares to logistic coefficients.

    Parameters
    ----------
    variance : float
        wᵀ Σ w of the least-squares coefficients within groups, ≥ 0.
    means : sequence of float
        E_g[y] of each group, from -1 to 1; none if the model has no constant, where s is 0 on
        average.
    parts : sequence of float
        π_g, adding up to one.

    Returns
    -------
    float
        At least 2; finite also where the labels can be separated.
    """
    spread = float(np.sqrt(max(variance, 0.0)))
    most = max(TAYLOR, _MOST_SPREAD / spread) if spread > 0 else TAYLOR

    def missing(factor: float) -> float:
        wide = factor * spread
        if not len(means):
            return factor * float(_slopes(wide, np.zeros(1))[0]) - 1.0
        slopes = _slopes(wide, centres_of(wide, np.asarray(means)))
        return factor * float(slopes @ np.asarray(parts)) - 1.0

    if missing(TAYLOR) >= 0:
        return TAYLOR
    if missing(most) <= 0:
        return most
    return float(brentq(missing, TAYLOR, most, xtol=1e-10))


def _slopes(spread: float, centres: NDArray[Any]) -> NDArray[Any]:
    """Return E[½ sech²(s/2)] for s ~ N(centre, spread²), for each of the centres."""
    values = (centres[:, None] + spread * _NODES) / 2
    return np.asarray((0.5 / np.cosh(values) ** 2) @ _SHARES)


def centres_of(spread: float, means: NDArray[Any]) -> NDArray[Any]:
    """Return the mean of s ~ N(·, spread²) with E[tanh(s/2)] equal to each of the means."""
    wanted = np.clip(means, -MOST_MEAN, MOST_MEAN)
    low = np.full(len(wanted), -10.0 - 5.0 * spread)
    high = -low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = np.tanh((middle[:, None] + spread * _NODES) / 2) @ _SHARES < wanted
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return np.asarray((low + high) / 2)
