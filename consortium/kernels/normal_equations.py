"""Least squares from moments that carry known Gaussian noise.

With the released moment of z = (x, c, αy) come all terms of a quadratic cost (dissertation
section 8.2.1). Minimizing it as it stands divides by eigenvalues that may be noise alone, or
negative. Here the normal equations Σ w = cov(x, y) are read as an observation of w whose
error has a known covariance R (noise of privacy, and chance among the persons), with a prior
w ~ N(0, τ² I) whose τ² the moment itself tells. The posterior is always well posed, equals least
squares where there is no noise, and its covariance gives intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_PASSES = 4  # R depends on w; it settles in two or three


@dataclass(frozen=True)
class NoisyMoment:
    """A noisy second moment of (x, 1, y), in their own units.

    Parameters
    ----------
    matrix : array, (P + 2) x (P + 2)
        E[z zᵀ] / (d dᵀ) for z = d · (x, 1, y).
    weights : array, length P + 2
        d: of x, then c (0 if there is no intercept), then α.
    deviation : float
        Standard deviation of the noise on a diagonal entry of E[z zᵀ]; an off-diagonal one has
        half the variance.
    units : int
        Persons in the mean.
    """

    matrix: Array
    weights: Array
    deviation: float
    units: int

    @property
    def intercept(self) -> bool:
        """Whether means were released."""
        return bool(self.weights[-2] > 0)

    @property
    def mean(self) -> Array:
        """E[x], or zeros."""
        column: Array = self.matrix[:-2, -2] * float(self.intercept)
        return column

    @property
    def response(self) -> float:
        """E[y], or 0."""
        return float(self.matrix[-1, -2]) if self.intercept else 0.0

    @property
    def square(self) -> Array:
        """Σ: covariance of x, or its second moment if there is no intercept."""
        centred: Array = self.matrix[:-2, :-2] - np.outer(self.mean, self.mean)
        return centred

    @property
    def cross(self) -> Array:
        """Covariance of x and y, or E[y x]."""
        centred: Array = self.matrix[:-2, -1] - self.mean * self.response
        return centred

    @property
    def variance(self) -> float:
        """Variance of y, or E[y²]."""
        return float(self.matrix[-1, -1]) - self.response**2


@dataclass(frozen=True)
class Fit:
    """Coefficients w (length P) with their covariance, and the mean squared residual."""

    coefficients: Array
    covariance: Array
    residual: float


def noisy_moment(matrix: Array, weights: Array, deviation: float, units: int) -> NoisyMoment:
    """Undo the weights; what is known without data takes its known value.

    Parameters
    ----------
    matrix : array, (P + 2) x (P + 2)
        Released E[z zᵀ].
    weights, deviation, units
        As in `NoisyMoment`.
    """
    scale = np.where(weights > 0, weights, 1.0)
    plain = matrix / np.outer(scale, scale)
    plain[-2, -2] = 1.0
    return NoisyMoment(plain, weights, deviation, units)


def noise_edge(moment: NoisyMoment) -> float:
    """Spectral norm that noise alone would have in Σ of weights one, about σ √(2P)."""
    return moment.deviation * float(np.sqrt(2.0 * (len(moment.matrix) - 2)))


def posterior_fit(moment: NoisyMoment) -> Fit:
    """Posterior mean and covariance of w; least squares if there is no noise."""
    square = _positive_part(moment)
    if moment.deviation == 0:
        return _plain_fit(moment, np.linalg.pinv(square, hermitian=True))
    coefficients = np.zeros(len(square))
    blank = residual_covariance(moment, coefficients, square)
    prior = _prior_variance(moment, blank)
    for _ in range(_PASSES):
        error = residual_covariance(moment, coefficients, square)
        gain = np.linalg.solve(error, square)
        precision = square @ gain
        precision[np.diag_indices_from(precision)] += 1.0 / prior
        covariance = np.linalg.inv(precision)
        coefficients = covariance @ (gain.T @ moment.cross)
    return Fit(coefficients, covariance, _residual(moment, coefficients, square))


def _positive_part(moment: NoisyMoment) -> Array:
    """Σ without what is negative in its weighted entries."""
    values, vectors = np.linalg.eigh(_weighted(moment))
    weights = moment.weights[:-2]
    positive: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T / np.outer(weights, weights)
    return positive


def trimmed_fit(moment: NoisyMoment) -> Fit:
    """Least squares over the eigenvectors of Σ whose eigenvalues exceed the noise edge."""
    values, vectors = np.linalg.eigh(moment.square)
    most = max(noise_edge(moment), 1e-12 * float(np.abs(values).max(initial=0.0)))
    kept = values > most
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return _plain_fit(moment, inverse)


def _plain_fit(moment: NoisyMoment, inverse: Array) -> Fit:
    square = moment.square
    coefficients = inverse @ moment.cross
    error = residual_covariance(moment, coefficients, square)
    covariance = inverse @ error @ inverse
    return Fit(coefficients, covariance, _residual(moment, coefficients, square))


def residual_covariance(moment: NoisyMoment, coefficients: Array, square: Array) -> Array:
    """Covariance R of cov(x, y) - Σ w, P x P, at given coefficients.

    A symmetric noise matrix N with variance σ² on and σ²/2 off its diagonal has
    Cov(N q) = σ²/2 (‖q‖² I + q qᵀ); here q = (-w, -w0, 1) over the weights d, the rows are
    divided by d too, and those of x lose their mean times the row of the constant. Chance adds Σ
    times the residual's variance over the number of persons.
    """
    size = len(coefficients)
    scale = np.where(moment.weights > 0, moment.weights, 1.0)
    offset = moment.response - moment.mean @ coefficients
    q = np.concatenate([-coefficients, [-offset if moment.intercept else 0.0], [1.0]]) / scale
    half = moment.deviation**2 / 2
    length = float(q @ q)
    own_rows = q[:size] / scale[:size]
    error: Array = half * np.outer(own_rows, own_rows)
    error[np.diag_indices(size)] += half * length / scale[:size] ** 2
    if moment.intercept:
        mean, c = moment.mean, scale[-2]
        shared = half * q[size] / c * np.outer(own_rows, mean)
        # The constant's own square carries no noise once its known value is put in.
        own = half * (length - q[size] ** 2) / c**2
        error += own * np.outer(mean, mean) - shared - shared.T
    return error + (_residual(moment, coefficients, square) / moment.units) * square


def _residual(moment: NoisyMoment, coefficients: Array, square: Array) -> float:
    """Mean squared residual, not below a thousandth of the response's variance."""
    explained = 2 * moment.cross @ coefficients - coefficients @ square @ coefficients
    return max(moment.variance - float(explained), 1e-3 * abs(moment.variance), 0.0)


def _prior_variance(moment: NoisyMoment, error: Array) -> float:
    """τ²: what of ‖cov(x, y)‖² is not noise, not below what is left to chance, over tr Σ².

    tr Σ² is known without its noise, and is at least (tr Σ)² / P. With weights d other than one
    each entry counts with d⁴, as it is known; τ² is then not too small.
    """
    squares = moment.weights[:-2] ** 2
    cross, known = squares * moment.cross, np.outer(squares, squares) * error
    excess = float(cross @ cross) - float(np.trace(known))
    chance = np.sqrt(2.0) * float(np.linalg.norm(known))
    square, size = _weighted(moment), len(squares)
    noise = moment.deviation**2 * size * (size + 1) / 2
    energy = max(float(np.vdot(square, square)) - noise, float(np.trace(square)) ** 2 / size)
    return float(max(excess, chance, 1e-300) / max(energy, 1e-300))


def _weighted(moment: NoisyMoment) -> Array:
    """Σ of the weighted entries, in which noise is equal everywhere."""
    weights = moment.weights[:-2]
    square: Array = moment.square * np.outer(weights, weights)
    return square
