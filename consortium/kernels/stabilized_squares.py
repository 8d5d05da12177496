"""Coefficients of least squares for prediction, from a moment that carries known Gaussian noise.

Least squares as they stand divide by eigenvalues that may be noise alone. Here the normal
equations Σ w = cov(x, y) are read as an observation of w whose error has a known covariance R,
with a prior w ~ N(0, τ² I) whose τ² the moment itself tells. What comes of it predicts better, is
drawn to zero where noise is large, and is no finding: see `kernels.noisy_least_squares` for those.
"""

import numpy as np

from consortium.base.array import Array
from consortium.kernels.noisy_moment import NoisyMoment, residual_covariance

_PASSES = 4  # R depends on w; it settles in two or three


def stabilized_squares(moment: NoisyMoment) -> Array:
    """Posterior mean of w; least squares if there is no noise.

    Returns
    -------
    coefficients : array, length P'
        Of all of a person's entries.
    """
    found = _in_moment(moment)
    return np.asarray(moment.coefficients[: moment.entries, : len(found)] @ found)


def _in_moment(moment: NoisyMoment) -> Array:
    """W over the weights, in the moment's own coordinates, length P."""
    at, count = moment.constants, moment.constants.start
    products = moment.matrix[at, at]
    # Rows of x without their mean, or each site's, times the row of the constants.
    centre = np.hstack([np.eye(count), -np.linalg.solve(products, moment.matrix[at, :count]).T])
    rows = centre @ moment.matrix[:-1]
    # What the noise of those means is expected to take away.
    taken = moment.deviation**2 / 2.0 * float(np.sum(1.0 / np.diag(products)))
    values, vectors = np.linalg.eigh(rows[:, :count] + taken * np.eye(count))
    square = (vectors * np.maximum(values, 0.0)) @ vectors.T
    cross = rows[:, -1] / moment.weights[-1]
    if moment.deviation == 0:
        return np.asarray(np.linalg.pinv(square, hermitian=True) @ cross)
    found = np.zeros(count)
    prior = _prior_variance(square, cross, _error(moment, centre, found), moment.deviation)
    for _ in range(_PASSES):
        gain = np.linalg.solve(_error(moment, centre, found), square)
        precision = square @ gain
        precision[np.diag_indices_from(precision)] += 1.0 / prior
        found = np.linalg.solve(precision, gain.T @ cross)
    return np.asarray(found)


def _error(moment: NoisyMoment, centre: Array, coefficients: Array) -> Array:
    """Covariance of cov(x, y) − Σ w at given coefficients, P x P."""
    at, count = moment.constants, len(coefficients)
    response = moment.matrix[at, -1] / moment.weights[-1]
    levels = np.linalg.solve(
        moment.matrix[at, at], response - moment.matrix[at, :count] @ coefficients
    )
    q = np.concatenate([-coefficients, -levels, [1.0 / moment.weights[-1]]])
    error = centre @ residual_covariance(moment, q) @ centre.T
    # Noise of x's means times noise of y's, which is of second order and in no R(q).
    both = np.square(moment.deviation**2 / 2.0 / np.diag(moment.matrix)[at]).sum() * q[-1] ** 2
    return np.asarray(error + both * np.eye(count))


def _prior_variance(square: Array, cross: Array, error: Array, deviation: float) -> float:
    """τ²: what of ‖cov(x, y)‖² is not noise, not below what is left to chance, over tr Σ².

    tr Σ² is known without its noise, to about σ² P, and is at least (tr Σ)² / P.
    """
    size = len(cross)
    excess = float(cross @ cross) - float(np.trace(error))
    chance = float(np.sqrt(2.0)) * float(np.linalg.norm(error))
    noise = deviation**2 * size * (size + 1) / 2
    energy = float(np.vdot(square, square)) - noise
    least = max(float(np.trace(square)) ** 2 / size, deviation**2 * size, 1e-300)
    return max(excess, chance, 1e-300) / max(energy, least)
