"""Released sums of covariates, turned into what a contrast is adjusted by.

Symbols are those of `contrast_regression`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LEAST_KEPT = 0.5
"""Least that slopes are shrunk to, however much noise is in them."""
_MOST_EXPLAINED = 0.9
_COLLINEAR = 1e-9  # of the persons' weight: an eigenvalue below is rounding


@dataclass(frozen=True, eq=False)
class Adjustment:
    """How the covariates are taken out of the contrast.

    Parameters
    ----------
    slopes : array, length p
        γ, of the contrast on the covariates within sites, shrunk as far as they are noise.
    centres : array, S x p
        x̂_s, the covariates' means by site, drawn to zero as far as they are noise.
    explained : float
        R², part of the contrast that the covariates explain with these slopes.
    offsets : float
        Σ a_s² v_s: what of the sites' means the noise hides, times their persons squared.
    information : float
        N_a, weight of the contrast within sites.
    inverse : array, p x p
        Of Â, the covariates' moment within sites.
    products : array, length p
        G, of contrast and covariates within sites.
    kept : float
        What the slopes were multiplied by: 1 without noise.
    """

    slopes: Array
    centres: Array
    explained: float
    offsets: float
    information: float
    inverse: Array
    products: Array
    kept: float = 1.0


@dataclass(frozen=True, eq=False)
class CovariateSums:
    """Released sums of the first round.

    Parameters
    ----------
    contrast : array, length p
        G.
    moment : array, p x p
        A.
    means : array, S x p
        M; of a slope S x (p + 1), the contrast's own column first.
    noise : mapping of G, A and M to float
        σ_j.
    """

    contrast: Array
    moment: Array
    means: Array
    noise: dict[str, float]


def adjust(
    sums: CovariateSums, persons: Array, weights: Array, information: float | None
) -> Adjustment:
    """Fit the contrast on the covariates within sites.

    Parameters
    ----------
    sums : CovariateSums
    persons : array, length S
        n_s, 0 for sites that are missing.
    weights : array, length S
        a_s.
    information : float, optional
        N_a, Σ a n q (1 - q); of a slope it is worked out from the means of its column.
    """
    centres, offsets = _site_means(sums.means, persons, weights, sums.noise["means"])
    whole = float(weights @ persons)
    own, products = centres[:, centres.shape[1] - len(sums.contrast) :], sums.contrast
    if information is None:
        information = whole * float(np.clip(1 - _variance(centres[:, 0], persons), 0.3, 1.0))
        products = products - own.T @ (weights * persons * centres[:, 0])
    within = sums.moment - (own * (weights * persons)[:, None]).T @ own
    doubt = sums.noise["moment"] / (0.3 * whole)
    trust = 1.0 / (1.0 + doubt**2)
    mixed = trust * within + (1 - trust) * whole * np.eye(len(within))
    inverse = _stable_inverse(mixed, min(whole / 4, 3 * sums.noise["moment"]), whole)
    slopes = inverse @ products
    fitted, noise = float(slopes @ products), sums.noise["contrast"] ** 2 * np.trace(inverse)
    kept = _kept(fitted, float(noise))
    explained = float(np.clip(kept * (fitted - noise) / information, 0, _MOST_EXPLAINED))
    return Adjustment(
        kept * slopes, centres, explained, offsets, information, inverse, products, kept
    )


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


def _variance(means: Array, persons: Array) -> float:
    """Variance of the sites' means among persons."""
    return float(np.average(np.square(means - np.average(means, weights=persons)), weights=persons))


def _stable_inverse(matrix: Array, least: float, whole: float) -> Array:
    """Inverse with eigenvalues of at least what noise makes of zero; 0 where there is neither."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised = np.maximum(values, least)
    real = raised > _COLLINEAR * whole
    inverse: Array = (vectors * np.where(real, 1 / np.where(real, raised, 1.0), 0.0)) @ vectors.T
    return inverse


def _site_means(means: Array, persons: Array, weights: Array, noise: float) -> tuple[Array, float]:
    """Shrink the sites' means by the noise that is known to be in them."""
    total, there = persons.sum(), persons > 0
    count = np.where(there, persons, 1.0)
    raw = np.where(there[:, None], means / count[:, None], 0.0)
    found = float(np.sum(persons[:, None] * raw**2) / (total * raw.shape[1]))
    between = float(np.clip(found - noise**2 * np.sum(there / count) / total, 0.01, 0.3))
    kept = np.where(there, between / (between + noise**2 / count**2), 0.0)
    left = between * (1 - kept) * persons**2
    return kept[:, None] * raw, float(weights**2 @ left)
