"""Released sums of covariates, turned into what a contrast is adjusted by.

Symbols are those of `contrast_regression`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from consortium.base.array import Array
from consortium.kernels.shrinkage import shrinkage_factor

LEAST_KEPT = 0.5
"""Least that slopes are shrunk to, however much noise is in them."""
_MOST_EXPLAINED = 0.9
_LEAST_BETWEEN, _USUAL_BETWEEN, _MOST_BETWEEN = 0.01, 0.2, 3.0
"""Variance of sites' means, in public deviations."""
_USUAL_WITHIN, _WIDTH_WITHIN, _LEAST_WITHIN = 0.6, 0.3, 0.05
"""Of a slope's column: its variance within sites, what that may be off by, and its least."""
_DOUBTED = 0.75  # deviations of its noise
TOGETHER = 0.7
"""Correlation, in an error, of sites' levels with what shrinking hides of their means."""
_CUT_GAP, _CUT_POWER = 0.6, 3  # fitted to simulated groups that differ by 0.8 and 1.4 deviations
_COLLINEAR = 1e-9  # of the persons' weight: an eigenvalue below is rounding


@dataclass(frozen=True, eq=False)
class Adjustment:
    """How the covariates are taken out of the contrast."""

    slopes: Array
    """Length p. γ, of the contrast on the covariates within sites, shrunk as far as they are
    noise."""
    centres: Array
    """S x p. x̂_s, the covariates' means by site, drawn to zero as far as they are noise."""
    explained: float
    """R², part of the contrast that the covariates explain with these slopes."""
    offsets: Array
    """Length columns. Σ a_s² v_s: what of a column's means by site the noise hides, times their
    persons squared; of a slope its own column first. 0 where means are declared."""
    information: float
    """N_a, weight of the contrast within sites."""
    inverse: Array
    """p x p. Of Â, the covariates' moment within sites."""
    products: Array
    """Length p. G, of contrast and covariates within sites."""
    kept: float = 1.0
    """What the slopes were multiplied by: 1 without noise."""
    confounded: Array = field(default_factory=lambda: np.zeros(0))
    """Length columns. Σ a_s n_s (1 - k_s) t: what shrinking leaves of a column's means by site, of
    deviation t."""
    square: float = 0.0
    """Mean squared norm of a participant's clipped covariates, over their number."""

    @property
    def levels(self) -> Array:
        """Length columns. Variance of a column's sum by the levels of sites, over theirs.

        Noise in its means by site goes with nothing; what shrinking hides may go with levels.
        """
        return np.asarray(self.offsets + np.square(TOGETHER * self.confounded))

    def cut_bias(self, explained: float) -> float:
        """Return how far effects may be off since covariates were cut, in total deviations.

        Formula: κ β k ‖G‖/N_a, with κ = 0.6 (m/2)³/p. G/N_a is the groups' difference in the
        covariates and β² the part of an outcome's variance that they explain. A covariate that is
        cut at both ends lacks a part κ of the difference, which becomes part of the effect. Right
        deviations have a mean square m of about 0.9, and halved ones of 1.3 to 1.6; κ was fitted
        to .05 to .2 for one covariate and .01 to .2 for two.

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
        """Σ γ² of numbers that stand by column; a slope's own column counts as it is."""
        own = len(columns) - len(self.slopes)
        return float(columns[:own].sum() + np.square(self.slopes) @ columns[own:])


@dataclass(frozen=True, eq=False)
class CovariateSums:
    """Released sums of the first round."""

    contrast: Array
    """Length p. G."""
    moment: Array
    """p x p. A."""
    means: Array
    """S x p. M; of a slope S x (p + 1), the contrast's own column first. 0 where means are
    declared."""
    hidden: Array
    """True or false, of as many columns. Whose means were released."""
    noise: dict[str, float]
    """By G, A, M and C. σ_j."""
    column: float | None = None
    """C, Σ t² of a slope."""


def adjust(sums: CovariateSums, persons: Array, weights: Array, information: float) -> Adjustment:
    """Fit the contrast on the covariates within sites.

    Parameters
    ----------
    persons : array, length S
        n_s, 0 for sites that are missing.
    weights : array, length S
        a_s.
    information : float
        N_a, Σ a n q (1 - q); of a slope, for which Σ t² was released, it is worked out from that.
    """
    sites = _site_means(sums, persons)
    whole, own = float(weights @ persons), slice(len(sums.hidden) - len(sums.contrast), None)
    between, products = sites.between(weights * persons), sums.contrast
    if sums.column is not None:
        information = _within(sums, sites, persons)
        products = products - between[own, 0]
    within = sums.moment - between[own, own]
    doubt = sums.noise["moment"] / (0.3 * whole)
    trust = 1.0 / (1.0 + doubt**2)
    mixed = trust * within + (1 - trust) * whole * np.eye(len(within))
    inverse = _stable_inverse(mixed, min(whole / 4, 3 * sums.noise["moment"]), whole)
    slopes = inverse @ products
    fitted, noise = float(slopes @ products), sums.noise["contrast"] ** 2 * np.trace(inverse)
    kept = _kept(fitted, float(noise))
    explained = float(np.clip(kept * (fitted - noise) / information, 0, _MOST_EXPLAINED))
    left = 1 - sites.kept
    return Adjustment(
        kept * slopes,
        sites.centres,
        explained,
        np.square(weights * persons) @ left * sites.variances,
        information,
        inverse,
        products,
        kept,
        (weights * persons) @ left * np.sqrt(sites.variances),
        float(np.trace(sums.moment)) / (whole * max(len(within), 1)),
    )


def _within(sums: CovariateSums, sites: _SiteMeans, persons: Array) -> float:
    """Σ (t - x̂_t)² of a slope's column, between what was found and what is usual."""
    assert sums.column is not None  # noqa: S101 - for the type checker
    whole, centres, raw = float(persons.sum()), sites.centres[:, 0], sites.raw[:, 0]
    lost = float(persons @ (centres * (2 * raw - centres)))
    if sums.hidden[0]:
        kept = sites.kept[:, 0]
        lost -= float(persons @ ((2 * kept - kept**2) * sites.noise))
    found, noise = sums.column - lost, sums.noise["column"] ** 2
    usual, width = _USUAL_WITHIN * whole, (_WIDTH_WITHIN * whole) ** 2
    return max((found * width + usual * noise) / (width + noise), _LEAST_WITHIN * whole)


def _kept(fitted: float, noise: float) -> float:
    """Factor for slopes that fit so much, of which so much is expected of noise alone.

    That of James and Stein, cut from below: slopes that are as good as noise are halved, which
    quarters what their noise lets through and loses no more than half of a real adjustment.
    """
    if noise == 0:
        return 1.0
    return max(1 - noise / fitted, LEAST_KEPT) if fitted > 0 else LEAST_KEPT


def left_of_noise(kept: float, columns: int) -> float:
    """Part of the noise's variance that slopes have as an error after they were shrunk.

    Parameters
    ----------
    kept : float
        k, what they were multiplied by.
    columns : int
        p, how many there are.

    Returns
    -------
    float
        k, which is exact where k is known, and 1/(p + 2) for that it was found from the slopes
        themselves: within a tenth of the mean squared error of three slopes or more, or above it;
        of two it may be a sixth too low, of one a third.
    """
    return min(1.0, kept + 1 / (columns + 2)) if kept < 1 else 1.0


def _stable_inverse(matrix: Array, least: float, whole: float) -> Array:
    """Inverse with eigenvalues of at least what noise makes of zero; 0 where there is neither."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised = np.maximum(values, least)
    real = raised > _COLLINEAR * whole
    inverse: Array = (vectors * np.where(real, 1 / np.where(real, raised, 1.0), 0.0)) @ vectors.T
    return inverse


@dataclass(frozen=True, eq=False)
class _SiteMeans:
    """Means by site, and the same shrunk by the noise that is known to be in them."""

    raw: Array
    centres: Array
    """S x columns."""
    hidden: Array
    """True or false, length columns. Which were released with noise."""
    kept: Array
    """S x columns. k_s; 1 of what is declared."""
    noise: Array
    """Length S. Variance of the noise in released means."""
    variances: Array
    """Length columns. t², of their means among persons."""

    def between(self, weights: Array) -> Array:
        """Σ a n x̂ x̄ᵀ without what noise adds: what centring takes from a moment.

        One factor only is shrunk, as weights are centred by x̂ and persons lie about x̄.
        """
        both = (self.centres * weights[:, None]).T @ self.raw
        noise = (weights * self.noise) @ self.kept
        found: Array = (both + both.T) / 2 - np.diag(np.where(self.hidden, noise, 0.0))
        return found


def _site_means(sums: CovariateSums, persons: Array) -> _SiteMeans:
    """Shrink the sites' means by the noise that is known to be in them."""
    there, hidden = persons > 0, sums.hidden
    count = np.where(there, persons, 1.0)
    raw = np.where(there[:, None], sums.means / count[:, None], 0.0)
    noise = np.where(there, (sums.noise["means"] / count) ** 2, 0.0)
    variances = np.where(hidden, _between_sites(raw, noise, there), 0.0)
    kept = np.where(hidden, shrinkage_factor(variances, noise[:, None]), 1.0)
    return _SiteMeans(raw, kept * raw, hidden, kept, noise, variances)


def _between_sites(raw: Array, noise: Array, there: Array) -> Array:
    """t² of every column by itself: one that differs among sites is not drawn to one that doesn't.

    A little more than was found, by how much noise may hide: what errors state of means that were
    shrunk by too small a t² would be less than they are off.
    """
    weights = there / np.square(_USUAL_BETWEEN + noise)
    weights = weights / weights.sum()
    own = weights @ (np.square(raw) - noise[:, None])
    hides = noise[:, None] * (noise[:, None] + 2 * np.maximum(own, 0.0))
    doubt = np.sqrt(2 * np.square(weights) @ hides)
    found: Array = np.clip(own + _DOUBTED * doubt, _LEAST_BETWEEN, _MOST_BETWEEN)
    return found
