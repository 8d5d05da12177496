"""Other coefficients and means of outcomes, from the released sums of all coefficients.

No further release is needed: every coefficient, every combination of coefficients and every mean
over outcomes is computed from released sums. Symbols are those of `contrast_regression`.
"""

from dataclasses import dataclass, replace

import numpy as np

from consortium.algorithms.glm.kernels.clipped_squares import clipped_part
from consortium.algorithms.glm.kernels.contrast_regression import (
    PRIOR_WIDTH,
    ContrastSums,
    Effects,
    Estimates,
    Expected,
    chance_of_squares,
    effects_of,
    freedom_of_squares,
    imbalance_variance,
    tested_effects,
)
from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment
from consortium.algorithms.glm.kernels.lost_tails import LostTails
from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.base.array import Array

_LEAST_VARIANCE = 0.3  # least variance of a mean of outcomes, relative to the expected variance


@dataclass(frozen=True, eq=False)
class Coefficients:
    """All coefficients of every outcome, with the components of their error covariance."""

    values: Array
    """K x V, with the contrast's first."""
    sampling: Array
    """Sampling covariance, K x K, of an outcome whose contrast has a sampling variance of 1."""
    noise: Array
    """Covariance by privacy noise and first-round noise, K x K, equal for every outcome. Without
    the error of the second moment."""
    inverse_moment: Array
    """Inverse of the design's second moment within sites, K x K, over its first entry."""
    moment_noise: Array
    """Variance of each entry of that moment, K x K, times the square of the inverse's first entry;
    0 for the first entry, whose error is in ``relative_divisor_variance``."""
    usual: Array
    """Covariance by the error of that moment, K x K, if covariates explain the usual part of an
    outcome."""
    freedom: float
    """Degrees of freedom of the sampling variance that ``sampling`` is relative to."""
    relative_divisor_variance: float
    """Variance of the divisor divided by its square: a relative variance of every coefficient."""


def solve_coefficients(
    rows: Array,
    adjustment: Adjustment,
    found: Effects,
    importance: float,
    weight_ratio: float,
    noise: dict[str, float],
    expected: Expected,
    lost_tails: LostTails,
) -> Coefficients:
    """Solve the normal equations of all coefficients.

    Parameters
    ----------
    rows : array, K x V
        T of every coefficient, the contrast's first.
    found : Effects
        Of the contrast.
    importance : float
        κ, factor of the covariates in the released sums.
    weight_ratio : float
        Σ a² n / Σ a n.
    noise : mapping of float
        σ_G, σ_A and that of T.
    expected : Expected
        Of the contrast.
    lost_tails : LostTails
        Correction of all coefficients. If participants vary more with a covariate, its
        coefficient has a larger variance.
    """
    count = len(rows)
    information = adjustment.information * (1 - adjustment.explained)
    clip = expected.clip * found.divisor / expected.divisor
    # Weights of a slope are in units of ŝ and clipped, those of the other coefficients are not.
    scale = found.divisor / (clip * information)
    inverse = adjustment.inverse
    solve = np.zeros((count, count))
    solve[0, 0] = 1 / found.divisor
    solve[1:, 1:] = inverse / (importance * clip)
    solve[1:, 0] = -inverse @ adjustment.products / found.divisor
    chance = np.outer(solve[:, 0], solve[:, 0])
    spread = np.sqrt(1 + lost_tails.uneven[1:])
    own = weight_ratio * inverse / (clip**2 * expected.squares)
    chance[1:, 1:] += own * np.outer(spread, spread)
    explained = expected.clip**2 * expected.explained
    moments = expected.explained * (noise["moment"] ** 2 + noise["contrast"] ** 2)
    usual = np.full(count, importance**2 * clip**2 * moments)
    usual[0] = explained * expected.adjustment_noise
    leak = found.balance * imbalance_variance(found.between, expected.missed, expected)
    levels = importance * found.sites * adjustment.levels[-len(inverse) :]
    leak[1:] += importance * levels
    leak[0] = found.leak - usual[0]
    leak += lost_tails.variance().mean(axis=1)
    covariance = np.diag(found.privacy + leak)
    # An error of a site's mean moves the contrast's sum by -γ times that of the column's sum.
    covariance[0, 1:] = covariance[1:, 0] = -scale * adjustment.slopes * levels
    moment = np.broadcast_to(adjustment.errors, covariance.shape).copy()
    moment[0, 1:] += expected.count_noise
    moment[1:, 0] += expected.count_noise
    slopes = np.concatenate([[1.0], -inverse @ adjustment.products])
    design = np.outer(slopes, slopes)
    design[1:, 1:] += information * inverse
    return Coefficients(
        values=solve @ rows,
        sampling=found.divisor**2 * chance,
        noise=solve @ covariance @ solve.T,
        inverse_moment=design,
        moment_noise=moment / information**2,
        usual=solve @ np.diag(usual) @ solve.T,
        freedom=found.freedom,
        relative_divisor_variance=found.divisor_variance / found.divisor**2,
    )


def moment_covariances(
    inverse_moment: Array, moment_noise: Array, values: Array, directions: Array
) -> Array:
    """Return covariances of combinations of coefficients by errors N of the second moment.

    To first order, coefficients β have the error -M⁻¹ N β. N is symmetric with independent entries.

    Parameters
    ----------
    inverse_moment, moment_noise : array, K x K
        As in `Coefficients`.
    values : array, V x K
        Coefficients of every outcome.
    directions : array, J x K
        Factors of the coefficients.

    Returns
    -------
    array, V x J x J
    """
    moved = directions @ inverse_moment
    products = moved[None, :, :, None] * values[:, None, None, :]
    both = products + products.swapaxes(2, 3)
    # Each entry off the diagonal is counted twice, and those on it are doubled in ``both``.
    share = moment_noise / np.where(np.eye(len(moment_noise)), 4.0, 2.0)
    return np.asarray(np.einsum("vikl,kl,vjkl->vij", both, share, both, optimize=True))


def with_found_slopes(found: Effects, every: Coefficients, expected: Expected) -> Effects:
    """Return effects whose errors know how much the covariates explain of each outcome.

    Without released slopes, all outcomes count as if covariates explained the usual part of them.
    """
    first = np.eye(1, len(every.inverse_moment))
    error = moment_covariances(
        every.inverse_moment, every.moment_noise, values=every.values.T, directions=first
    )[:, 0, 0]
    more = error - every.usual[0, 0]
    each = found.each
    return replace(
        found,
        each=tested_effects(
            effects=each.effects,
            sampling=found.sum_variances / found.divisor**2,
            total=np.square(each.errors) + more,
            freedom=found.freedom,
            relative_divisor_variance=every.relative_divisor_variance + expected.presence_variance,
            offset=0.0,
        ),
    )


@dataclass(frozen=True, eq=False)
class MeanSums:
    """Released sums of the means of outcomes."""

    squares: Array
    """Pairs' squared differences, length G, scaled as `ContrastSums.squares`."""
    products: Array
    """Products with the covariates, a (x - x̂) ūᵀ, p x G; 0 without covariates."""
    spreads: Array
    """Mean of ū², length G; 0 if it was not released."""
    noise: dict[str, float]
    """Standard deviation of the noise in an entry of each of these three."""
    missed: Array
    """Variance of the learned centres of the means, length G, as `Expected.missed`."""
    tail_variance: Array
    """Variance from the correction of long tails, length G, as `ContrastSums.tail_variance`."""


def mean_effects(
    sums: ContrastSums,
    means: MeanSums,
    averages: Array,
    expected: Expected,
    found: Effects,
    adjustment: Adjustment,
    correlation: float,
    turned: Array,
    offset: Array | float = 0.0,
) -> Estimates:
    """Return the effects on means of outcomes, with sampling variances from released squares.

    The sampling variance of a mean is expected from those of its outcomes and their correlation ρ,
    with a prior standard deviation of the same size, and combined with the released square. It is
    at least 0.3 of the expected one (c): noise must not make it negative, or small by chance.

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
    turned : array, V x G
        R^¼ of the groups' weights.
    offset : array or float
        Known effects that are added, length G.
    """
    own = np.square(averages).sum(axis=1)
    usual = (averages @ found.sum_variances) * (correlation + (1 - correlation) * own)
    usual = np.maximum(usual, 1e-12 * expected.squares)
    noise = means.noise["squares"] ** 2 + usual**2 * chance_of_squares(expected.persons)
    shrunk, deviations = _posterior(means.squares, noise, usual, usual)
    chance = np.maximum(shrunk, _LEAST_VARIANCE * usual)
    clipped = found.sum_variances * (1.0 - found.lost)
    total = float(np.square(clipped).sum() + np.square(chance).sum())
    chance = chance / (1.0 - clipped_part(chance, total, sums.widest))
    privacy = sums.noise["effects"] ** 2 * np.square(turned).sum(axis=0)
    return effects_of(
        sums=averages @ sums.effects,
        sampling=chance,
        other=privacy
        + means.tail_variance
        + _leak_of_means(
            means=means,
            expected=expected,
            found=found,
            adjustment=adjustment,
            chance=chance,
            deviations=deviations,
        ),
        divisor=found.divisor,
        divisor_variance=found.divisor_variance,
        freedom=freedom_of_squares(expected.persons),
        offset=offset,
    )


def _leak_of_means(
    means: MeanSums,
    expected: Expected,
    found: Effects,
    adjustment: Adjustment,
    chance: Array,
    deviations: Array,
) -> Array:
    """Return the variance of means of outcomes from noise of the first round.

    How similarly covariates act on the outcomes of a group, and how similarly sites differ in them,
    is estimated from released sums. If noise hides it, all outcomes of the group count as fully
    alike, which is the largest possible variance. The variance that covariates explain has a prior
    standard deviation of its size, that between sites the one of single outcomes.

    Parameters
    ----------
    chance, deviations : array, length G
        Sampling variance of each mean, and the standard deviation of this estimate.
    """
    inverse = adjustment.inverse
    variance = chance / expected.squares
    columns = max(len(inverse), 1)
    left = expected.clip**2
    prior = left * expected.explained
    slopes = np.square(inverse @ means.products).sum(axis=0)
    noise = means.noise["products"] ** 2 * np.square(inverse).sum() + np.trace(inverse) * variance
    error_variance = (4 * prior + 2 * noise) * noise / columns
    explained, _ = _posterior(slopes - noise, error_variance, prior, prior)
    error_variance = means.noise["spreads"] ** 2 + np.square(deviations / expected.squares)
    between, _ = _posterior(
        means.spreads - variance, error_variance, found.sites, left * PRIOR_WIDTH
    )
    explained = np.maximum(explained, 0.0)
    between = np.maximum(between, 0.0)
    leak: Array = explained * expected.adjustment_noise + between * expected.offset_noise
    leak += found.balance[0] * imbalance_variance(between / found.clip**2, means.missed, expected)
    return leak


def _posterior(
    found: Array, noise: Array, centre: Array | float, width: Array | float
) -> tuple[Array, Array]:
    """Return posterior means and standard deviations of numbers with a normal prior.

    Parameters
    ----------
    noise : array
        Noise variances of ``found``.
    centre, width : array or float
        Prior means and standard deviations.
    """
    kept = shrinkage_factor(np.square(width), noise)
    return np.asarray(centre + kept * (found - centre)), np.sqrt(kept * noise)
