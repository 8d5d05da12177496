"""Calibration of predicted probabilities, from noisy counts of two classes in bins of the score.

The score s is the logit of the predicted probability, and all participants of a bin count with the
bin's mean score s_k. The intercept a and slope b of logit P(y = 1) = a + b s (Cox 1958) solve

    Σ_k (p_k - m_k σ(a + b s_k)) (1, s_k) = 0,    m_k = p_k + n_k,

which is linear in the counts p_k of positives and n_k of negatives. So their noise does not bias
the equation. Its variance is that of the noise, σ² Σ ((1 - π_k)² + π_k²) u_k u_kᵀ with
u_k = (1, s_k) and π_k = σ(a + b s_k), plus that of chance, Σ m_k π_k (1 - π_k) u_k u_kᵀ.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from consortium.base.array import Array

_STEPS = 60
_LONGEST = 1.0
"""Largest change of a coefficient in one step."""
_CONVERGED = 1e-9
_LEAST = 1e-9
"""Least eigenvalue of the curvature over its largest one."""


@dataclass(frozen=True)
class CalibrationLine:
    """Coefficients with their standard errors, which account for noise and chance."""

    values: Array
    errors: Array


def calibration_line(
    positives: Array, negatives: Array, scores: Array, deviation: float, *, slope: bool
) -> CalibrationLine | None:
    """Return the intercept and slope, or the intercept for a slope of 1.

    Parameters
    ----------
    positives, negatives : array, length K
        Noisy numbers of participants in each bin.
    scores : array, length K
        Mean score in each bin.
    deviation : float
        Standard deviation of the noise in each number.
    slope : bool
        Whether the slope is estimated.

    Returns
    -------
    CalibrationLine or None
        None if the equation has no solution near that of perfect calibration.
    """
    rows = np.vstack([np.ones(len(scores)), scores]) if slope else np.ones((1, len(scores)))
    fixed = np.zeros(len(scores)) if slope else scores
    many = positives + negatives
    found = np.array([0.0, 1.0]) if slope else np.zeros(1)
    for _ in range(_STEPS):
        likely = expit(fixed + found @ rows)
        curve = (rows * (many * likely * (1.0 - likely))) @ rows.T
        if not _is_definite(curve):
            return None
        step = np.linalg.solve(curve, rows @ (positives - many * likely))
        found = found + step / max(1.0, float(np.abs(step).max()) / _LONGEST)
        if float(np.abs(step).max()) < _CONVERGED:
            break
    else:
        return None
    noise = deviation**2 * (np.square(1.0 - likely) + np.square(likely))
    chance = np.maximum(many, 0.0) * likely * (1.0 - likely)
    inverse = np.linalg.inv(curve)
    errors = inverse @ ((rows * (noise + chance)) @ rows.T) @ inverse
    return CalibrationLine(found, np.sqrt(np.diag(errors)))


def _is_definite(curve: Array) -> bool:
    if not np.isfinite(curve).all():
        return False
    values = np.linalg.eigvalsh(curve)
    return bool(values[0] > _LEAST * values[-1])
