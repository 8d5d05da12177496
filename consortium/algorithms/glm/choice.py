"""A clipping bound of `glm` with all that follows from it, and the numbers that it is made of."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtrc  # scipy.stats has them, and takes half a second to load

from consortium.algorithms.base import Array

CLIPPED = {
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
"""c(h): what is left of a person, on average, after clipping to h times the usual norm."""
TOUCHED = {
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
"""Part of the persons who are clipped at a height h at all."""
WITHIN = 0.7
"""Part of an outcome's variance that is left within sites and beside the covariates: a quarter lies
between sites, and of the rest covariates explain little."""
DIVISOR_SHARE, SQUARES_SHARE, SPREAD_SHARE, BALANCE_SHARE = 0.015, 0.03, 0.005, 0.01
SLOPE_DIVISOR_SHARE, COLUMN_SHARE, UNITS_SHARE = 0.05, 0.03, 0.01
TAIL_SHARES = {"lost": 0.02, "tail": 0.01, "lean": 0.004}
SLOPE_TAIL_SHARES = TAIL_SHARES | {"lean": 0.03}
"""For what clipping takes of long tails, and how much more of it in one group than in the other, or
at one end of a slope's column: weights are larger there, and so is the noise."""
MOST_LEAN, SLOPE_MOST_LEAN = 2.0, 1.0
"""What logarithms of squared norms, over what is usual, are cut to."""
LOOK_SHARE, BLIND_LOOK_SHARE = 0.05, 0.08
"""Of the whole budget, for centre and scale of the outcomes: with stated norms, and without."""
LOCATION_PART, KEPT_PART, SIZE_PART = 0.7, 0.05, 0.25
"""Of a look's budget."""
PRODUCTS_SHARE, SPREADS_SHARE = 0.02, 0.01
"""Of means of outcomes: their products with the covariates, and their squares."""
BELOW = 0.25
"""How far below zero a person's part of the divisor may go, over how far above."""
SLOPE_REACHES = 1.3, 1.7, 2.2, 3.0
"""W_c of a slope: what w, whose deviation is one, may be cut to."""


def slope_left(reach: float) -> tuple[float, float]:
    """What cutting normal weights leaves of Σ w², times w itself and times what is cut."""
    beyond = math.erfc(reach / math.sqrt(2))
    inside = 1 - beyond - reach * math.sqrt(2 / math.pi) * math.exp(-(reach**2) / 2)
    return 1 - beyond, inside + reach**2 * beyond


def clipped_at(height: float) -> float:
    """Return c(h) at any height; below the table in proportion to it."""
    heights = [0.0, *CLIPPED]
    return float(np.interp(height, heights, [0.0, *CLIPPED.values()]))


def touched_of(height: float, freedom: float) -> float:
    """Part of the persons who are clipped: of few outcomes more than the table says.

    Parameters
    ----------
    height : float
        h.
    freedom : float
        Of squared norms, for Gaussian outcomes.
    """
    return max(TOUCHED[height], float(chdtrc(freedom, freedom * height**2)))


def cut_of(height: float, freedom: float) -> float:
    """What clipping leaves of an outcome's variance over c²: of few outcomes less than all."""
    most = freedom * height**2
    left = chdtr(freedom + 2, most) + height**2 * chdtrc(freedom, most)
    return min(float(left) / CLIPPED[height] ** 2, 1.0)


def tail_of(height: float, outcomes: int) -> float:
    """By about how much clipping moves effects where outcomes are skewed and one group varies more.

    It takes more of that group's long tail. Of lognormal outcomes (skewness 3.7) and a fifth more
    deviation; of few outcomes it falls more slowly with the height, which is of one norm for all.
    """
    falls = 1.6 * (1 - 0.65 / math.sqrt(outcomes))
    return 0.03 * math.exp(-falls * max(height - 0.95, 0.0))


@dataclass(frozen=True, eq=False)
class ChosenBound:
    """A clipping bound of `glm` with all that follows from it."""

    height: float
    """h."""
    clip: float
    """c(h)."""
    left: tuple[float, float]
    """Of a slope: what is left of Σ w² and of Σ c² w² beside c and c², by `slope_left`; else 1."""
    lost: float
    """About the part by which an effect that all outcomes share comes out too small."""
    contrast_reach: float
    """W_c, largest a_s |t̃|; of a slope what |w| is cut to."""
    reach: float
    """W, largest |w| that nobody is clipped for."""
    divisor: float
    """B_D."""
    norm: float
    """B_u, of R^-¼ u."""
    weights: Array
    """Length S. a_s."""
    shares: dict[str, float]
    error: float
    """Forecast standard error."""
    parts: tuple[float, float, float]
    """Sampling, privacy and leak in its square."""
