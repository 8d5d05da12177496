"""Clipping bound of `glm` with the values that follow from it, and the constants behind it."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtrc  # scipy.stats has them, and takes half a second to load

from consortium.algorithms.glm.kernels.contrast_regression import SITE_VARIANCE
from consortium.base.array import Array

MEAN_CLIP_FACTORS = {
    0.65: 0.64,
    0.75: 0.73,
    0.85: 0.82,
    0.95: 0.885,
    1.05: 0.93,
    1.15: 0.955,
    1.3: 0.975,
    1.5: 0.99,
    2.0: 0.998,
    2.5: 1.0,
    3.0: 1.0,
    4.0: 1.0,
}
"""c(h): mean factor of a contribution after clipping to h times the usual norm."""
CLIPPED_SHARES = {
    0.65: 0.98,
    0.75: 0.95,
    0.85: 0.85,
    0.95: 0.7,
    1.05: 0.5,
    1.15: 0.33,
    1.3: 0.15,
    1.5: 0.05,
    2.0: 0.01,
    2.5: 0.0,
    3.0: 0.0,
    4.0: 0.0,
}
"""Share of the participants whose contribution is clipped at height h, by which heights are
chosen. Both tables are for outcomes of usual spread and more than a few columns."""
_USUALLY_EXPLAINED = 0.05
"""Share of an outcome's variance that covariates explain in forecasts. A choice: the study's
``explained`` is for the error by noise in the adjustment, and errs on the large side."""
RESIDUAL_VARIANCE = 1 - SITE_VARIANCE - _USUALLY_EXPLAINED
"""Share of an outcome's variance that is within sites and not explained by covariates, 0.7."""
DIVISOR_SHARE = 0.015
SQUARES_SHARE = 0.03
SPREAD_SHARE = 0.005
BALANCE_SHARE = 0.01
SLOPE_DIVISOR_SHARE = 0.05
COLUMN_SHARE = 0.03
UNITS_SHARE = 0.01
TAIL_SHARES = {"lost": 0.02, "tail": 0.01, "lean": 0.004}
SLOPE_TAIL_SHARES = TAIL_SHARES | {"lean": 0.03}
"""Shares of the budget for the loss of long tails by clipping: the loss, its mean, and how it
differs between groups or along a slope's column. A slope has larger weights, and so more noise."""
MOST_LEAN = 2.0
SLOPE_MOST_LEAN = 1.0
"""Logarithms of squared norms, relative to the usual norm, are clipped to ± this value."""
LOOK_SHARE = 0.05
BLIND_LOOK_SHARE = 0.08
"""Shares of the whole budget for location and scale of the outcomes: with stated norms, and
without."""
LOCATION_PART = 0.7
KEPT_PART = 0.05
SIZE_PART = 0.25
"""Shares of the first look's budget for its three blocks."""
PRODUCTS_SHARE = 0.02
SPREADS_SHARE = 0.01
"""Shares for means of outcomes: their products with the covariates, and their squares."""
BELOW = 0.25
"""Largest negative value of a participant's part of the divisor, relative to the largest
positive."""
SLOPE_REACHES = 1.3, 1.7, 2.2, 3.0
"""Candidates for W_c of a slope: limits of w, which has a standard deviation of 1."""


def slope_left(reach: float) -> tuple[float, float]:
    """Return the share of Σ w² that clipping normal weights to ± ``reach`` leaves.

    The first value has one factor w clipped, Σ w w_clipped. The second has both clipped, Σ
    w_clipped².
    """
    beyond = math.erfc(reach / math.sqrt(2))
    inside = 1 - beyond - reach * math.sqrt(2 / math.pi) * math.exp(-(reach**2) / 2)
    return 1 - beyond, inside + reach**2 * beyond


def mean_clip_factor(height: float) -> float:
    """Return c(h) at any height; below the table, in proportion to the height."""
    heights = [0.0, *MEAN_CLIP_FACTORS]
    return float(np.interp(height, heights, [0.0, *MEAN_CLIP_FACTORS.values()]))


def clipped_share(height: float, freedom: float) -> float:
    """Return the share of the participants whose contribution is clipped.

    It is the table's value, or that of a χ² law with ``freedom`` degrees of freedom if this is
    larger, as it is for few outcomes.

    Parameters
    ----------
    height : float
        h, one of `CLIPPED_SHARES`.
    freedom : float
        Degrees of freedom of squared norms, for Gaussian outcomes.
    """
    return max(CLIPPED_SHARES[height], float(chdtrc(freedom, freedom * height**2)))


def cut_of(height: float, freedom: float) -> float:
    """Return the variance of a clipped outcome relative to c² times that of the outcome.

    Formula: E[min(1, h²ν/χ²) χ²]/(ν c²) with χ² of ν degrees of freedom, and at most 1. It is below
    1 for few outcomes.
    """
    most = freedom * height**2
    left = chdtr(freedom + 2, most) + height**2 * chdtrc(freedom, most)
    return min(float(left) / MEAN_CLIP_FACTORS[height] ** 2, 1.0)


def tail_bias(height: float, outcomes: int) -> float:
    """Return the approximate bias of effects from clipping skewed outcomes, in standard deviations.

    Clipping removes more of the long tail in the group that varies more. The value is for lognormal
    outcomes (skewness 3.7) and a standard deviation that is a fifth larger in one group: a curve
    through simulated biases, level below a height of 0.95. With few outcomes the bias falls more
    slowly with the height, because one norm bounds the whole vector.
    """
    falls = 1.6 * (1 - 0.65 / math.sqrt(outcomes))
    return 0.03 * math.exp(-falls * max(height - 0.95, 0.0))


@dataclass(frozen=True, eq=False)
class Clipping:
    """Clipping bound of `glm` with the values that follow from it."""

    height: float
    """h."""
    clip: float
    """c(h)."""
    left: tuple[float, float]
    """For a slope: shares of Σ w² and of Σ c² w² that remain, relative to c and c², from
    `slope_left`. Otherwise 1."""
    lost: float
    """Approximate share by which an effect that all outcomes have in common is too small."""
    contrast_reach: float
    """W_c, largest a_s |t̃|. For a slope, the limit of |w|."""
    reach: float
    """W, largest |w| that does not require further clipping."""
    divisor: float
    """B_D."""
    norm: float
    """B_u, clipping norm of R^-¼ u."""
    weights: Array
    """a_s, length S."""
    shares: dict[str, float]
    error: float
    """Forecast standard error."""
    parts: tuple[float, float, float]
    """Components of the squared error: sampling, privacy noise, and noise of the first round."""
