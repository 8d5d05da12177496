"""Released sums of a contrast and its covariates, turned into effects and how sure they are.

Everything here is arithmetic on what is public or released. Symbols: T_v the weighted sum of
outcome v, D what it is divided by, G, A and M the covariates' sums with the contrast, with each
other and by site, Q the sums of squared differences of pairs, σ_j the noise in an entry of each.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from consortium.base.array import Array
from consortium.kernels.clipped_squares import clipped_part
from consortium.kernels.shrinkage import shrinkage_factor

SITE_VARIANCE = 0.25
"""τ²: part of an outcome's variance that lies between sites, before anything is known of it."""
TOTAL_DEVIATION = (1 - SITE_VARIANCE) ** -0.5
"""Usual standard deviation among all participants over that within groups and sites. Sums are in
units of the former, studies state the latter and effects are reported in it."""
PRIOR_WIDTH = 0.15  # of D around what is planned, in parts; and of τ² around its prior
_SINGLE_WIDTH = 0.4  # of the variance by chance of a single outcome, around what is usual
_LEAST_MEAN = 0.15  # of the variance by chance that outcomes have with sites' constants in it
_CLEARLY, _LEAST_SQUARE = 1.0, 0.02  # deviations of noise; of the outcomes' mean variance
_LEAST_DIVISOR = 0.05  # of what is planned, so that an effect is a number whatever the noise is


@dataclass(frozen=True, eq=False)
class ContrastSums:
    """Released sums of the second round."""

    effects: Array
    """Length V. T, after R^¼."""
    divisor: float
    """D."""
    squares: Array
    """Length V. Q, scaled up from pairs to persons and by 2 W²."""
    spread: float
    """E over the number of persons: mean squared clipped outcome."""
    balance: Array
    """Length K. b = Σ c w of the contrast and of every other row: 0 but for clipping, and what
    sites' centres are off by."""
    noise: dict[str, float]
    """By T, D, Q, E and b. σ_j, scaled as the sums are; that of E over the number of persons."""
    tails: Array
    """Length V. Variance that T has since what clipping took of long tails is an estimate."""
    widest: float = math.inf
    """Norm that squared differences of pairs were clipped to, scaled as Q; infinite without."""


@dataclass(frozen=True)
class Expected:
    """What is expected of the second round before it is asked for."""

    divisor: float
    """c N_a (1 - R²)."""
    squares: float
    """N_u."""
    clip: float
    """c, part of a person that is left after clipping."""
    persons: float
    explained: float
    """β²."""
    root: Array | float
    """Diagonal of R^½, or g where all of it is the same."""
    adjustment_noise: float
    """k′ σ_G² + ½ σ_A² ‖γ‖², in the covariates' sums, k′ being what shrinking leaves of it."""
    offset_noise: float
    """‖γ‖² Σ a_s² v_s; of a slope, whose own column is centred by noisy means, that and Σ v_s."""
    missed: float = 0.0
    """η²/s², what the outcomes' learned centres are off by, in their learned deviations."""
    unevenness: float = 0.0
    """Σ (I_s/ΣI - n_s/N)², and a little more: what sites' levels add to an effect for each square
    of what weights are off by together, if each site is off in proportion to its information."""
    unsure: Array | float = 0.0
    """Variance of the part of the persons who have each outcome, over its square."""
    touched: float = 1.0
    """Part of the persons who are clipped at all: weights stay out of balance by no more."""
    cut: float = 1.0
    """What clipping leaves of an outcome's variance, over c²."""
    bias: float = 0.0
    """How far effects may be off since covariates were cut."""
    width: float = PRIOR_WIDTH
    """How far the divisor may be from what is expected, in parts."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Effects with errors and tests, in the outcomes' learned total standard deviations."""

    effects: Array
    errors: Array
    statistics: Array
    freedom: Array
    p: Array
    q: Array
    widths: Array
    """Length V. Estimate, standard error, t and its degrees of freedom, p and Benjamini-Hochberg's
    q, and the standard error that intervals have, which knows the divisor's noise."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Estimates of every outcome, and what their errors are made of."""

    each: Estimates
    divisor: float
    doubt: float
    """D̂ and its variance."""
    variances: Array
    """Length V. V̂, of T by chance alone."""
    sites: float
    clip: float
    """c²τ̂², of clipped outcomes, and c."""
    sampling: float
    privacy: float
    leak: float
    """Parts of the mean variance: chance among persons, noise, and what noise in the adjustment
    lets through."""
    freedom: float
    """Degrees of freedom of ``variances``."""
    balance: Array
    """Length K. Expected b² of every row."""
    tails: Array
    """Length V. As that of `ContrastSums`."""
    lost: Array
    """Length V. Part of the variance by chance that clipping of pairs took, and is added."""

    @property
    def between(self) -> float:
        """τ̂², of outcomes that nobody clipped."""
        return self.sites / self.clip**2


def estimate_effects(sums: ContrastSums, expected: Expected) -> Effects:
    """Divide, and add up every source of error."""
    divisor, doubt = shrink_gaussian(
        sums.divisor, sums.noise["divisor"], expected.divisor, expected.width * expected.divisor
    )
    divisor = max(divisor, _LEAST_DIVISOR * expected.divisor)
    sampling, freedom = shrink_squares(sums, expected), freedom_of_squares(expected.persons)
    if len(sums.squares) == 1:
        sampling, freedom = _single_square(sums, expected)
    lost = clipped_part(sampling, float(np.square(sampling).sum()), sums.widest)
    sampling = restored_squares(sampling, lost)
    privacy = sums.noise["effects"] ** 2 * expected.root
    sites = _site_variance(sums, expected)
    explained = expected.clip**2 * expected.explained
    leak = explained * expected.adjustment_noise + sites * expected.offset_noise
    balance = squared_balance(sums, expected)
    leak += float(balance[0]) * imbalance_variance(
        sites / expected.clip**2, expected.missed, expected
    )
    leak += (expected.bias * divisor) ** 2
    unsure = doubt + divisor**2 * expected.unsure
    other = privacy + leak + sums.tails
    each = effects_of(sums.effects, sampling, other, divisor, unsure, freedom)
    parts = float(sampling.mean()), float(np.mean(privacy)), leak, freedom, balance
    found = each, divisor, doubt, sampling, sites, expected.clip
    return Effects(*found, *parts, sums.tails, lost)


def expected_balance(expected: Expected) -> float:
    """π_b²: what is expected of a squared sum of a contrast's weights before it is released."""
    return expected.touched * (PRIOR_WIDTH * expected.divisor) ** 2


def squared_balance(sums: ContrastSums, expected: Expected) -> Array:
    """b̂²: what is expected of every row's squared Σ c w, given what was found with noise."""
    width = expected_balance(expected)
    noise = sums.noise["balance"] ** 2
    kept = shrinkage_factor(width, noise)
    found: Array = np.square(kept * sums.balance) + width * (1 - kept)
    return found


def imbalance_variance(sites: Array | float, missed: Array | float, expected: Expected) -> Any:
    """Variance that a sum has for each b²: by sites' own levels, and by a centre that is off."""
    return sites * expected.unevenness + missed


def effects_of(
    sums: Array,
    sampling: Array,
    other: Array | float,
    divisor: float,
    doubt: Array | float,
    freedom: float,
) -> Estimates:
    """Estimates with errors, tests and widths, from sums and their variances.

    Parameters
    ----------
    sums : array, length V
        T, or means of some.
    sampling, other : array, length V
        Their variances: by chance, and by noise and what it lets through.
    divisor, doubt : float
        D̂ and its variance.
    freedom : float
        Degrees of freedom of ``sampling``.
    """
    total = sampling + other
    return tested_effects(
        sums / divisor,
        sampling / divisor**2,
        total / divisor**2,
        freedom,
        doubt / divisor**2,
    )


def freedom_of_squares(persons: float) -> float:
    """Return the degrees of freedom of a variance from squared differences on a ring.

    Measured: n/1.5 for equal weights, n/1.9 with covariates, n/3 for a slope.
    """
    return persons / 2.4


def tested_effects(
    effects: Array, sampling: Array, total: Array, freedom: float, doubt: Array | float
) -> Estimates:
    """Estimates with errors, tests and widths, from effects and their variances.

    Parameters
    ----------
    effects : array, length V
    sampling, total : array, length V
        Their variances: by chance, which is an estimate itself, and of all kinds.
    freedom : float
        Degrees of freedom of ``sampling``.
    doubt : float
        Variance of what sums were divided by, over its square.
    """
    errors = np.sqrt(total)
    statistics = effects / errors
    own = freedom * (total / sampling) ** 2
    p = 2 * stdtr(own, -np.abs(statistics))
    widths = np.sqrt(total + effects**2 * doubt)
    return Estimates(effects, errors, statistics, own, p, false_discovery(p), widths)


def shrink_gaussian(found: float, noise: float, centre: float, width: float) -> tuple[float, float]:
    """Return mean and variance of a number released with noise, given what was expected of it."""
    kept = float(shrinkage_factor(width**2, noise**2))
    return centre + kept * (found - centre), kept * noise**2


def shrink_squares(sums: ContrastSums, expected: Expected) -> Array:
    """V̂: sampling variance of every T_v, drawn to the outcomes' mean as far as it is noise."""
    mean = max(float(sums.squares.mean()), _LEAST_MEAN * expected.clip**2 * expected.squares)
    chance = sums.noise["squares"] ** 2 + 4 * mean**2 / expected.persons
    real = max(0.0, float(sums.squares.var()) - chance)
    kept = shrinkage_factor(real, chance)
    least = np.clip(_CLEARLY * np.sqrt(chance), _LEAST_SQUARE * mean, 0.3 * mean)
    shrunk: Array = np.maximum(mean + kept * (sums.squares - mean), least)
    return shrunk


def restored_squares(squares: Array, lost: Array) -> Array:
    """Return variances corrected for clipping that reduced them more than the least reduced one."""
    return np.asarray(squares * (1.0 - lost.min(initial=1.0)) / (1.0 - lost))


def _single_square(sums: ContrastSums, expected: Expected) -> tuple[Array, float]:
    """V̂ of an outcome that is alone, and its degrees of freedom.

    There are no others whose mean would tell how large it is, and its noise may be as large as
    itself: it is drawn to what is usual, and what noise is left counts in the degrees of freedom.
    """
    whole = expected.clip**2 * expected.squares
    usual = (1 - SITE_VARIANCE) * expected.cut * whole
    found, doubt = shrink_gaussian(
        float(sums.squares[0]), sums.noise["squares"], usual, _SINGLE_WIDTH * usual
    )
    value = max(found, _LEAST_MEAN * whole)
    freedom = 1 / (1 / freedom_of_squares(expected.persons) + doubt / (2 * value**2))
    return np.array([value]), freedom


def _site_variance(sums: ContrastSums, expected: Expected) -> float:
    """c²τ̂²: outcomes' variance less that within sites, between its prior and what was found.

    Of clipped outcomes, as everything that is released: c² is part of it.
    """
    within = float(sums.squares.mean()) / expected.squares
    noise = np.hypot(
        sums.noise["spread"],
        sums.noise["squares"] / np.sqrt(len(sums.squares)) / expected.squares,
    )
    left = expected.clip**2
    found, _ = shrink_gaussian(
        sums.spread - within, float(noise), left * SITE_VARIANCE, left * PRIOR_WIDTH
    )
    return max(found, 0.05 * left)


def false_discovery(p: Array) -> Array:
    """Benjamini-Hochberg: the smallest rate of false discoveries at which each would be one."""
    order = np.argsort(p)
    ranked = p[order] * len(p) / np.arange(1, len(p) + 1)
    least = np.minimum.accumulate(ranked[::-1])[::-1]
    q = np.empty_like(p)
    q[order] = np.minimum(least, 1.0)
    return q
