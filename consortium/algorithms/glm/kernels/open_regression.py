"""Regression of an open cohort's outcomes on its columns, within the cohort's own sites.

The participants are public, so nothing here costs privacy.
"""

from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array

_LEAST_VARIANCE = 0.02  # within sites, in squared public standard deviations of a column
_COLLINEAR = 1e-6  # relative to the largest eigenvalue of the columns' correlation
_LEAST_BETWEEN = 0.05**2
"""Least variance of a slope between sites, in squared standard deviations of the outcome. A choice:
few sites look alike by chance."""
_FEW_SITES_BETWEEN = 0.1**2  # the same if a cohort has too few sites to estimate it
_FEW_SITES = 4


@dataclass(frozen=True, eq=False)
class WithinFit:
    """Regression of V outcomes on q columns within sites."""

    slopes: Array
    """V x q; 0 for columns that hardly vary."""
    varied: Array
    """Which columns vary within sites, boolean, length q."""
    left: Array
    """What columns and sites' means leave of the outcomes, V x n."""
    deviation: Array
    """Standard deviation of that, length V."""
    error: float
    """Standard error of the first slope, in these standard deviations; infinite without one."""
    between: float
    """Variance of the first slope between sites, in these squared standard deviations."""


def fit_within(outcomes: Array, columns: Array, sites: Array) -> WithinFit:
    """Fit an open cohort's outcomes by least squares on the columns that vary within its sites.

    Parameters
    ----------
    outcomes : array, V x n
    columns : array, q x n
        In public standard deviations, the contrast's first.
    sites : array of int, length n
        Index of each participant's site.
    """
    y = centred_within(outcomes, sites)
    x = centred_within(columns, sites)
    varied = np.square(x).mean(axis=1) > _LEAST_VARIANCE
    slopes = np.zeros((len(y), len(x)))
    inverse = _inverse(x[varied] @ x[varied].T)
    slopes[:, varied] = y @ x[varied].T @ inverse
    left = y - slopes @ x
    freedom = max(y.shape[1] - len(np.unique(sites)) - int(varied.sum()), 1)
    deviation = np.sqrt(np.square(left).sum(axis=1) / freedom)
    error = np.inf
    between = 0.0
    if varied[0]:
        own = (inverse @ x[varied])[0]
        error = float(np.linalg.norm(own))
        # The first column without the part that other columns explain.
        column = own / error**2
        alone = (left + np.outer(slopes[:, 0], column)) / deviation[:, None]
        between = _between_sites(alone, column, sites)
    return WithinFit(
        slopes=slopes,
        varied=varied,
        left=left,
        deviation=deviation,
        error=error,
        between=between,
    )


def centred_within(values: Array, sites: Array) -> Array:
    """Return values (K x n) less the mean of each participant's site."""
    counts = np.bincount(sites)
    sums = np.zeros((len(values), len(counts)))
    np.add.at(sums.T, sites, values.T)
    centred: Array = values - (sums / np.maximum(counts, 1))[:, sites]
    return centred


def _inverse(moment: Array) -> Array:
    """Return the inverse of a moment; collinear columns share their slope."""
    if not len(moment):
        return moment
    scales = np.sqrt(np.diag(moment))
    inverse = np.linalg.pinv(moment / np.outer(scales, scales), rcond=_COLLINEAR, hermitian=True)
    found: Array = inverse / np.outer(scales, scales)
    return found


def _between_sites(outcomes: Array, column: Array, sites: Array) -> float:
    """Return the variance of a slope between sites after DerSimonian and Laird, over all outcomes.

    Parameters
    ----------
    outcomes : array, V x n
        In standard deviations within sites.
    column : array, length n
        The slope's column without the part that other columns explain.
    """
    information = np.bincount(sites, weights=np.square(column))
    usable = information > 1e-9 * information.sum()
    if int(usable.sum()) < _FEW_SITES:
        return _FEW_SITES_BETWEEN
    sums = np.zeros((len(outcomes), len(information)))
    np.add.at(sums.T, sites, (outcomes * column).T)
    weights = information[usable]
    slopes = sums[:, usable] / weights
    whole = weights.sum()
    about = slopes - (slopes @ weights / whole)[:, None]
    excess = float((np.square(about) @ weights).mean()) - (len(weights) - 1)
    found = excess / float(whole - weights @ weights / whole)
    return max(found, _LEAST_BETWEEN)
