"""What released sums of all coefficients tell beyond the contrast: others, and means of outcomes.

Nothing here needs a release: every coefficient, each combination of coefficients and each mean over
outcomes is arithmetic on sums that have been paid for. Symbols are those of `contrast_regression`.
"""

from dataclasses import dataclass

import numpy as np

from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment
from consortium.algorithms.glm.kernels.equal_correlation import correlation_power
from consortium.algorithms.glm.kernels.lost_tails import LostTails
from consortium.base.array import Array
from consortium.kernels.clipped_squares import clipped_part
from consortium.kernels.contrast_regression import (
    PRIOR_WIDTH,
    ContrastSums,
    Effects,
    Estimates,
    Expected,
    effects_of,
    freedom_of_squares,
    imbalance_variance,
)
from consortium.kernels.shrinkage import shrinkage_factor

_LEAST_VARIANCE = 0.3  # of a mean of outcomes, over what their correlation lets expect
_USUAL_DOUBT = 0.3  # of that expectation
_LEAST_PART = 0.05  # of what covariates explain of single outcomes, and of how sites differ in them


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Every coefficient of every outcome, with what its errors are made of."""

    values: Array
    """K x V. The contrast's first."""
    sampling: Array
    """K x K. Covariance by chance of an outcome whose contrast has a variance of one by chance."""
    noise: Array
    """K x K. Covariance by noise and what it lets through, of every outcome."""
    freedom: float
    """Degrees of freedom of what ``sampling`` is in units of."""
    doubt: float
    """Variance of the divisor, over its square: every coefficient's, over the coefficient's."""


def solve_coefficients(
    rows: Array,
    adjustment: Adjustment,
    found: Effects,
    weights: tuple[float, float, float],
    noise: dict[str, float],
    expected: Expected,
    tails: LostTails,
) -> Coefficients:
    """Solve the normal equations of all coefficients.

    Parameters
    ----------
    rows : array, K x V
        T of every coefficient, the contrast's first.
    found : Effects
        Of the contrast.
    weights : tuple of float
        What the covariates were multiplied by, Σ a² n / Σ a n, and N_u.
    noise : mapping of float
        σ_G, σ_A and that of T.
    expected : Expected
        Of the contrast.
    tails : LostTails
        Of all coefficients. Who varies with a covariate makes its coefficient less certain.
    """
    factor, ratio, squares = weights
    count = len(rows)
    clip = found.divisor / (adjustment.information * (1 - adjustment.explained))
    inverse = adjustment.inverse
    solve = np.zeros((count, count))
    solve[0, 0] = 1 / found.divisor
    solve[1:, 1:] = inverse / (factor * clip)
    solve[1:, 0] = -inverse @ adjustment.products / found.divisor
    chance = np.outer(solve[:, 0], solve[:, 0])
    spread = np.sqrt(1 + tails.uneven[1:])
    own = ratio * inverse / (clip**2 * squares * (1 - adjustment.explained))
    chance[1:, 1:] += own * np.outer(spread, spread)
    moments = expected.explained * (noise["moment"] ** 2 + noise["contrast"] ** 2)
    leak = np.full(count, factor**2 * clip**2 * moments)
    levels = factor * found.sites * adjustment.levels[-len(inverse) :]
    leak[1:] += factor * levels
    leak += found.balance * imbalance_variance(found.between, expected.missed, expected)
    leak[0] = found.leak
    leak += tails.variance().mean(axis=1)
    covariance = np.diag(found.privacy + leak)
    # What a site's mean is off by moves the contrast's sum by -γ of what it moves the column's by.
    covariance[0, 1:] = covariance[1:, 0] = -adjustment.slopes * levels
    return Coefficients(
        solve @ rows,
        found.divisor**2 * chance,
        solve @ covariance @ solve.T,
        found.freedom,
        found.doubt / found.divisor**2,
    )


@dataclass(frozen=True, eq=False)
class MeanSums:
    """Released sums of the means of outcomes."""

    squares: Array
    """Length G. Of pairs, scaled as `ContrastSums.squares`."""
    products: Array
    """p x G. With the covariates, a (x - x̂) ūᵀ; zeros where no covariates are adjusted for."""
    spreads: Array
    """Length G. ū² over the number of persons; zeros where nothing was released before."""
    noise: dict[str, float]
    """By these three. Standard deviation of the noise in an entry of each."""
    missed: Array
    """Length G. As that of `Expected`, of the means."""
    tails: Array
    """Length G. As that of `ContrastSums`."""


def mean_effects(
    sums: ContrastSums,
    means: MeanSums,
    averages: Array,
    expected: Expected,
    found: Effects,
    adjustment: Adjustment,
    correlation: float,
) -> Estimates:
    """Effects on means of outcomes, whose variances by chance were released with the others.

    Parameters
    ----------
    sums : ContrastSums
        Of the single outcomes.
    means : MeanSums
        Of the G groups.
    averages : array, G x V
    found : Effects
        Of the single outcomes.
    correlation : float
        ρ.
    """
    own = np.square(averages).sum(axis=1)
    usual = (averages @ found.variances) * (correlation + (1 - correlation) * own)
    usual = np.maximum(usual, 1e-12 * expected.squares)
    noise = means.noise["squares"] ** 2 + 2.4 * usual**2 / expected.persons
    chance = np.maximum(_drawn(means.squares, noise, usual, usual), _LEAST_VARIANCE * usual)
    clipped = found.variances * (1.0 - found.lost)
    total = float(np.square(clipped).sum() + np.square(chance).sum())
    chance = chance / (1.0 - clipped_part(chance, total, sums.widest))
    doubt = np.minimum(np.sqrt(noise), _USUAL_DOUBT * usual)
    turned = correlation_power(averages.T, correlation, 0.25)
    privacy = sums.noise["effects"] ** 2 * np.square(turned).sum(axis=0)
    return effects_of(
        averages @ sums.effects,
        chance,
        privacy + means.tails + _leak_of_means(means, expected, found, adjustment, chance, doubt),
        found.divisor,
        found.doubt,
        freedom_of_squares(expected.persons),
    )


def _leak_of_means(
    means: MeanSums,
    expected: Expected,
    found: Effects,
    adjustment: Adjustment,
    chance: Array,
    doubt: Array,
) -> Array:
    """What noise in the adjustment lets through to a mean: what its own covariates and sites do.

    How far covariates act alike on the outcomes of a group, and sites differ alike in them, is
    released; where noise hides it, they count as if they did so on all in the same way, which is
    the worst that they can. ``chance`` is a mean's variance by chance, and ``doubt`` how far it may
    be off.
    """
    inverse, variance = adjustment.inverse, chance / expected.squares
    columns, left = max(len(inverse), 1), expected.clip**2
    prior = left * expected.explained
    slopes = np.square(inverse @ means.products).sum(axis=0)
    noise = means.noise["products"] ** 2 * np.square(inverse).sum() + np.trace(inverse) * variance
    unsure = (4 * prior + 2 * noise) * noise / columns
    explained = np.maximum(_drawn(slopes - noise, unsure, prior, 2 * prior), _LEAST_PART * prior)
    unsure = means.noise["spreads"] ** 2 + np.square(doubt / expected.squares)
    between = _drawn(means.spreads - variance, unsure, found.sites, left * PRIOR_WIDTH)
    between = np.maximum(between, _LEAST_PART * found.sites)
    leak: Array = explained * expected.adjustment_noise + between * expected.offset_noise
    leak += found.balance[0] * imbalance_variance(between / found.clip**2, means.missed, expected)
    return leak


def _drawn(found: Array, noise: Array, centre: Array | float, width: Array | float) -> Array:
    """Draw numbers that were found with noise of a variance to what is expected of them."""
    kept = shrinkage_factor(np.square(width), noise)
    drawn: Array = centre + kept * (found - centre)
    return drawn
