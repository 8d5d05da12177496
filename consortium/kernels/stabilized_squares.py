"""Least-squares coefficients for prediction, from a moment with known Gaussian noise.

Ordinary least squares divides by eigenvalues that may be only noise. Here the normal equations Σ w
= cov(x, y) are an observation of w with error covariance R, and the prior is w ~ N(0, τ² I) with τ²
estimated from the moment. The posterior mean predicts better and is shrunk to zero if noise is
large. It is not an estimate for inference: see `kernels.noisy_least_squares` for that.
"""

import numpy as np

from consortium.base.array import Array
from consortium.kernels.noisy_moment import NoisyMoment, residual_covariance

_PASSES = 4  # R depends on w, and converges in two or three


def stabilized_squares(moment: NoisyMoment) -> Array:
    """Return the posterior mean of w; least squares without noise.

    Returns
    -------
    coefficients : array, length P'
        For all of a participant's entries.
    """
    found = _in_moment(moment)
    return np.asarray(moment.coefficients[: moment.entries, : len(found)] @ found)


def _in_moment(moment: NoisyMoment) -> Array:
    """Return w divided by the weights, in the moment's own coordinates, length P."""
    count = moment.constants.start
    centre = _centring(moment)
    square = covariance_within(moment)
    cross = (centre @ moment.matrix[:-1])[:, -1] / moment.weights[-1]
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


def covariance_within(moment: NoisyMoment) -> Array:
    """Return the covariance of x within groups in the moment's coordinates, P x P.

    It is positive semidefinite.
    """
    at = moment.constants
    count = moment.constants.start
    rows = _centring(moment) @ moment.matrix[:-1]
    # Expected decrease by the noise of the groups' means.
    products = moment.matrix[at, at]
    taken = moment.deviation**2 / 2.0 * float(np.sum(1.0 / np.diag(products)))
    values, vectors = np.linalg.eigh(rows[:, :count] + taken * np.eye(count))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _centring(moment: NoisyMoment) -> Array:
    """Return what subtracts the mean of the rows of x, or each group's mean, P x (P + S)."""
    at = moment.constants
    count = moment.constants.start
    products = moment.matrix[at, at]
    return np.hstack([np.eye(count), -np.linalg.solve(products, moment.matrix[at, :count]).T])


def _error(moment: NoisyMoment, centre: Array, coefficients: Array) -> Array:
    """Return the covariance of cov(x, y) − Σ w at given coefficients, P x P."""
    at = moment.constants
    count = len(coefficients)
    response = moment.matrix[at, -1] / moment.weights[-1]
    levels = np.linalg.solve(
        moment.matrix[at, at], response - moment.matrix[at, :count] @ coefficients
    )
    q = np.concatenate([-coefficients, -levels, [1.0 / moment.weights[-1]]])
    error = centre @ residual_covariance(moment, q) @ centre.T
    # Noise of x's means times noise of y's, which is of second order and not part of R(q).
    both = np.square(moment.deviation**2 / 2.0 / np.diag(moment.matrix)[at]).sum() * q[-1] ** 2
    return np.asarray(error + both * np.eye(count))


def _prior_variance(square: Array, cross: Array, error: Array, deviation: float) -> float:
    """Return τ² = (‖cov(x, y)‖² less its noise)/tr Σ², with a minimum from the noise's chance.

    tr Σ² is corrected for its noise, to about σ² P, and is at least (tr Σ)² / P.
    """
    size = len(cross)
    excess = float(cross @ cross) - float(np.trace(error))
    chance = float(np.sqrt(2.0)) * float(np.linalg.norm(error))
    noise = deviation**2 * size * (size + 1) / 2
    energy = float(np.vdot(square, square)) - noise
    least = max(float(np.trace(square)) ** 2 / size, deviation**2 * size, 1e-300)
    return max(excess, chance, 1e-300) / max(energy, least)
