"""From a least-squares fit of labels to logistic coefficients.

For predictors whose combination s = w0 + wᵀx is Gaussian, the logistic likelihood is stationary
where (Stein's identity; C. Stein 1981)

    cov(x, y) = Σ w E[½ sech²(s/2)]   and   E[y] = E[tanh(s/2)],   y = ±1,

so that w is the least-squares solution times a factor, which two equations in two numbers give.
The second-order Taylor polynomial of dissertation section 8.2.2 is its limit for small w: 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

TAYLOR = 2.0
"""Factor of the second-order Taylor polynomial: -(-1/2) / (2 · 1/8)."""
_MOST_SPREAD = 8.0  # of s; beyond, the labels are all but separated
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_SHARES: NDArray[Any] = _WEIGHTS / _WEIGHTS.sum()


def logistic_factor(variance: float, mean: float, *, intercept: bool) -> tuple[float, float]:
    """Factor from least-squares to logistic coefficients, and the mean of s.

    Parameters
    ----------
    variance : float
        wᵀ Σ w of the least-squares coefficients, ≥ 0.
    mean : float
        E[y], from -1 to 1.
    intercept : bool
        If not, the mean of s is 0.

    Returns
    -------
    factor : float
        At least 2; finite also where the labels can be separated.
    centre : float
    """
    spread = float(np.sqrt(max(variance, 0.0)))
    most = max(TAYLOR, _MOST_SPREAD / spread) if spread > 0 else TAYLOR

    def centre(factor: float) -> float:
        return _centre(factor * spread, mean) if intercept else 0.0

    def missing(factor: float) -> float:
        return factor * _slope(factor * spread, centre(factor)) - 1.0

    if missing(TAYLOR) >= 0:
        factor = TAYLOR
    elif missing(most) <= 0:
        factor = most
    else:
        factor = float(brentq(missing, TAYLOR, most, xtol=1e-10))
    return factor, centre(factor)


def _slope(spread: float, centre: float) -> float:
    """E[½ sech²(s/2)] for s ~ N(centre, spread²)."""
    return float(_SHARES @ (0.5 / np.cosh((centre + spread * _NODES) / 2) ** 2))


def _centre(spread: float, mean: float) -> float:
    """Mean of s for which E[tanh(s/2)] is ``mean``."""
    limited = float(np.clip(mean, -0.999, 0.999))

    def missing(centre: float) -> float:
        return float(_SHARES @ np.tanh((centre + spread * _NODES) / 2)) - limited

    far = 10.0 + 5.0 * spread
    return float(brentq(missing, -far, far, xtol=1e-10))
