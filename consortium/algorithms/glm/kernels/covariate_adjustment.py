"""Adjustment of a contrast for covariates, from released sums of the covariates.

Symbols are those of `contrast_regression`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.base.array import Array

LEAST_KEPT = 0.5
"""Smallest factor by which slopes are multiplied, for any amount of noise."""
_MOST_EXPLAINED = 0.9
_LEAST_BETWEEN = 0.01
_USUAL_BETWEEN = 0.2
_MOST_BETWEEN = 3.0
"""Smallest, usual and largest variance of sites' means, in squared public standard deviations (c).

Sites whose noisy means agree by chance still differ by 0.1. The usual variance only weights sites
of unequal size. Means beyond √3 are not those of values within ±2.5, but of noise.
"""
_PRIOR_WITHIN = 0.6
_PRIOR_WIDTH_WITHIN = 0.3
_LEAST_WITHIN = 0.05
"""For a slope's column: prior mean of its variance within sites, the prior's standard deviation,
and the minimum (c). The variance is between 0.3 and 0.9 if the stated deviation is right or a third
too large. So the mean is below the 0.8 that a plan expects for a deviation that is right."""
_ADDED_ERRORS = 0.75  # standard deviations of its noise that are added to t²
LEVEL_CORRELATION = 0.7
"""Assumed correlation, in standard errors, of sites' levels with the part of their means that
shrinking removed."""
# Fitted to simulated groups that differ by 0.8 and 1.4 standard deviations.
_CUT_GAP = 0.6
_CUT_POWER = 3
_HALF_TRUSTED = 0.3
_ABOVE_NOISE = 3
_MOST_RAISED = 0.25
"""Choices for the inverse of a noisy moment of covariates in public standard deviations, whose
eigenvalues are usually near the sum of weights.

At a noise of 0.3 of this sum, the moment and its usual value have the same weight. Eigenvalues are
raised to three standard deviations of the noise, because smaller ones may be noise and have a large
inverse, but to no more than a quarter of the sum.
"""
_COLLINEAR = 1e-9  # relative to the sum of weights: smaller eigenvalues are rounding errors


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Regression of the contrast on the covariates within sites."""

    slopes: Array
    """γ, slopes of the contrast on the covariates within sites, shrunk in proportion to their
    noise. Length p."""
    centres: Array
    """x̂_s, the covariates' means by site, shrunk to zero in proportion to their noise. S x p."""
    explained: float
    """R², fraction of the contrast that the covariates explain with these slopes."""
    offsets: Array
    """Σ (a_s n_s)² (1 - k_s) t², for each column: variance of its means by site that noise hides,
    with t² the variance of the means and k_s their shrinkage factors. A slope's own column is
    first. 0 if means are declared."""
    information: float
    """N_a, information of the contrast within sites."""
    inverse: Array
    """Inverse of Â, the covariates' moment within sites, p x p."""
    products: Array
    """G, sums of contrast times covariates within sites, length p."""
    kept: float = 1.0
    """k, shrinkage factor of the slopes: 1 without noise."""
    confounded: Array = field(default_factory=lambda: np.zeros(0))
    """Σ a_s n_s (1 - k_s) t, for each column: part of its means by site that shrinking removed, for
    means with standard deviation t."""
    square: float = 0.0
    """Mean squared norm of a participant's clipped covariates, divided by their number."""
    errors: Array | float = 0.0
    """Variance of each entry of the second moment of contrast and covariates, (1 + p) x (1 + p); 0
    for its first entry."""

    @property
    def levels(self) -> Array:
        """V, for each column: variance of its weighted sum from sites' levels, relative to theirs.

        Noise in the means is independent of the levels. The part that shrinking removed is assumed
        to have a correlation of 0.7 with them.
        """
        return np.asarray(self.offsets + np.square(LEVEL_CORRELATION * self.confounded))

    def cut_bias(self, explained: float) -> float:
        """Return the possible bias of effects from clipped covariates, in total deviations.

        Formula: κ β k ‖G‖/N_a, with κ = 0.6 (m/2)³/p. G/N_a is the difference of the groups in the
        covariates and β² the fraction of an outcome's variance that they explain. A covariate that
        is clipped at both ends lacks a fraction κ of the difference, which becomes part of the
        effect. With correct standard deviations the mean square m is about 0.9, with halved ones
        1.3 to 1.6. κ was fitted to simulations: 0.05 to 0.2 for one covariate and 0.01 to 0.2 for
        two.

        Parameters
        ----------
        explained : float
            β².
        """
        columns = max(len(self.products), 1)
        lacking = _CUT_GAP * (min(self.square, 2.0) / 2) ** _CUT_POWER / columns
        gap = self.kept * float(np.linalg.norm(self.products)) / self.information
        return lacking * gap * float(np.sqrt(explained))

    def squared(self, columns: Array) -> float:
        """Return Σ γ² of numbers by column; a slope's own column has a factor of 1."""
        own = len(columns) - len(self.slopes)
        return float(columns[:own].sum() + np.square(self.slopes) @ columns[own:])


@dataclass(frozen=True, eq=False)
class CovariateSums:
    """Released sums of the covariates in the first round."""

    contrast: Array
    """G, length p."""
    moment: Array
    """A, p x p."""
    means: Array
    """M, S x p; for a slope S x (p + 1), with the contrast's own column first. 0 if means are
    declared."""
    noisy: Array
    """Columns whose means by site were released with noise, boolean. Others are declared."""
    noise: dict[str, float]
    """σ_j of G, A, M and C."""
    column: float | None = None
    """C, Σ t² of a slope."""


def adjust(sums: CovariateSums, persons: Array, weights: Array, information: float) -> Adjustment:
    """Fit the contrast on the covariates within sites by least squares.

    The moment is mixed with a multiple of the identity in proportion to its noise. Slopes are
    multiplied by a factor of the kind of James and Stein, which is never below a half.

    Parameters
    ----------
    persons : array, length S
        n_s, 0 for sites that are missing.
    weights : array, length S
        a_s.
    information : float
        N_a, Σ a n q (1 - q). For a slope it is computed from the released Σ t² instead.
    """
    sites = _site_means(sums, persons)
    whole = float(weights @ persons)
    p = len(sums.contrast)
    own = slice(len(sums.noisy) - p, None)
    between = sites.between(weights * persons)
    products = sums.contrast
    if sums.column is not None:
        information = _within(sums, sites, persons)
        products = products - between[own, 0]
    within = sums.moment - between[own, own]
    noise_ratio = sums.noise["moment"] / (_HALF_TRUSTED * whole)
    trust = 1.0 / (1.0 + noise_ratio**2)
    mixed = trust * within + (1 - trust) * whole * np.eye(len(within))
    least = min(_MOST_RAISED * whole, _ABOVE_NOISE * sums.noise["moment"])
    inverse, inverted = _stable_inverse(mixed, least, whole)
    slopes = inverse @ products
    fitted = float(slopes @ products)
    noise = sums.noise["contrast"] ** 2 * np.trace(inverse)
    kept = _kept(fitted, float(noise))
    explained = float(np.clip(kept * (fitted - noise) / information, 0, _MOST_EXPLAINED))
    left = 1 - sites.kept
    return Adjustment(
        slopes=kept * slopes,
        centres=sites.centres,
        explained=explained,
        offsets=np.square(weights * persons) @ left * sites.variances,
        information=information,
        inverse=inverse,
        products=products,
        kept=kept,
        confounded=(weights * persons) @ left * np.sqrt(sites.variances),
        square=float(np.trace(sums.moment)) / (whole * max(len(within), 1)),
        errors=_moment_errors(sums, sites, weights, inverted - within, left_of_noise(kept, p)),
    )


def _moment_errors(
    sums: CovariateSums, sites: _SiteMeans, weights: Array, added: Array, left: float
) -> Array:
    """Return the variance of each entry of the second moment of contrast and covariates.

    It has the noise of A, which has half the variance off the diagonal; that of G, of which a
    fraction ``left`` remains; and that of the sites' means, whose outer product is subtracted.
    A matrix was ``added`` to A to make its inverse stable, and counts as an error of that size.

    Returns
    -------
    array, (1 + p) x (1 + p)
    """
    p = len(added)
    found = np.zeros((1 + p, 1 + p))
    if sums.noise["moment"] > 0:  # otherwise ``added`` is a rounding error
        found[1:, 1:] = sums.noise["moment"] ** 2 / 2 * (1 + np.eye(p)) + np.square(added)
    found[0, 1:] = found[1:, 0] = left * sums.noise["contrast"] ** 2
    own = slice(1 + p - len(sums.noisy), None)
    squares = sums.noise["means"] ** 2 * np.square(weights) @ np.square(sites.centres)
    between = np.outer(squares, sums.noisy)
    found[own, own] += (between + between.T) * (1 + np.eye(len(squares)))
    found[0, 0] = 0.0
    return found


def _within(sums: CovariateSums, sites: _SiteMeans, persons: Array) -> float:
    """Return Σ (t - x̂_t)² of a slope's column, as a posterior mean around the usual value."""
    assert sums.column is not None  # noqa: S101 - for the type checker
    whole = float(persons.sum())
    centres = sites.centres[:, 0]
    raw = sites.raw[:, 0]
    lost = float(persons @ (centres * (2 * raw - centres)))
    if sums.noisy[0]:
        kept = sites.kept[:, 0]
        lost -= float(persons @ ((2 * kept - kept**2) * sites.noise))
    found = sums.column - lost
    noise = sums.noise["column"] ** 2
    usual = _PRIOR_WITHIN * whole
    width = (_PRIOR_WIDTH_WITHIN * whole) ** 2
    return max((found * width + usual * noise) / (width + noise), _LEAST_WITHIN * whole)


def _kept(fitted: float, noise: float) -> float:
    """Return the factor of James and Stein for slopes, at least a half.

    Slopes that are mostly noise are halved. This divides the variance from their noise by four, and
    loses at most half of a real adjustment.

    Parameters
    ----------
    fitted : float
        Sum of squares that the slopes explain.
    noise : float
        Its expectation from noise only.
    """
    if noise == 0:
        return 1.0
    return max(1 - noise / fitted, LEAST_KEPT) if fitted > 0 else LEAST_KEPT


def left_of_noise(kept: float, columns: int) -> float:
    """Return the fraction of the noise variance that remains as an error in shrunk slopes.

    Parameters
    ----------
    kept : float
        k, shrinkage factor of the slopes.
    columns : int
        p, number of slopes.

    Returns
    -------
    float
        k + 1/(p + 2), at most 1. k is exact if the factor is known; 1/(p + 2) accounts for its
        estimation from the same slopes. The result is at least 0.9 of the measured mean squared
        error for three slopes or more. For two it may be a sixth too low, for one a third.
    """
    return min(1.0, kept + 1 / (columns + 2)) if kept < 1 else 1.0


def _stable_inverse(matrix: Array, least: float, whole: float) -> tuple[Array, Array]:
    """Raise eigenvalues to at least ``least``; return the inverse and the matrix so raised.

    Eigenvalues of zero have an inverse of 0.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised = np.maximum(values, least)
    real = raised > _COLLINEAR * whole
    inverse: Array = (vectors * np.where(real, 1 / np.where(real, raised, 1.0), 0.0)) @ vectors.T
    return inverse, (vectors * raised) @ vectors.T


@dataclass(frozen=True, eq=False)
class _SiteMeans:
    """Means by site, and the same shrunk in proportion to their noise."""

    raw: Array
    centres: Array
    """Means before and after shrinking, S x columns."""
    noisy: Array
    """Columns whose means were released with noise, boolean; others are declared."""
    kept: Array
    """k_s, shrinkage factors, S x columns; 1 for declared means."""
    noise: Array
    """Variance of the noise in released means, length S."""
    variances: Array
    """t², variance of the means among participants, for each column."""

    def between(self, weights: Array) -> Array:
        """Return Σ a n x̂ x̄ᵀ less its expected noise: the part of a moment that centring removes.

        Only one factor is shrunk, as weights are centred by x̂ and participants vary around x̄.
        """
        both = (self.centres * weights[:, None]).T @ self.raw
        noise = (weights * self.noise) @ self.kept
        found: Array = (both + both.T) / 2 - np.diag(np.where(self.noisy, noise, 0.0))
        return found


def _site_means(sums: CovariateSums, persons: Array) -> _SiteMeans:
    """Return the sites' means shrunk in proportion to their noise."""
    present = persons > 0
    noisy = sums.noisy
    count = np.where(present, persons, 1.0)
    raw = np.where(present[:, None], sums.means / count[:, None], 0.0)
    noise = np.where(present, (sums.noise["means"] / count) ** 2, 0.0)
    variances = np.where(noisy, _between_sites(raw, noise, present), 0.0)
    kept = np.where(noisy, shrinkage_factor(variances, noise[:, None]), 1.0)
    return _SiteMeans(
        raw=raw,
        centres=kept * raw,
        noisy=noisy,
        kept=kept,
        noise=noise,
        variances=variances,
    )


def _between_sites(raw: Array, noise: Array, present: Array) -> Array:
    """Return t² of every column, estimated separately.

    A column that differs among sites is therefore not shrunk as one that does not. 0.75 standard
    errors are added, because standard errors of effects would be too small if t² were.
    """
    weights = present / np.square(_USUAL_BETWEEN + noise)
    weights = weights / weights.sum()
    own = weights @ (np.square(raw) - noise[:, None])
    hides = noise[:, None] * (noise[:, None] + 2 * np.maximum(own, 0.0))
    errors = np.sqrt(2 * np.square(weights) @ hides)
    found: Array = np.clip(own + _ADDED_ERRORS * errors, _LEAST_BETWEEN, _MOST_BETWEEN)
    return found
