"""Least squares from moments with known Gaussian noise, and intervals with correct coverage.

The residual of the normal equations at the true q has a known distribution
(`kernels.noisy_moment`). The statistic F(q) = gᵀ R(q)⁻¹ g, with g = M q without the row of y,
measures how well any q fits (Anderson and Rubin 1949). The interval of one coefficient is the set
of its values for which some q with that value fits (Guggenberger, Kleibergen, Mavroeidis and Chen
2012): nothing is assumed about the others, the moment is not inverted, and no prior is used.

The shape of R(q) is taken at the solution q̂, its size as tr(R(q̂)⁻¹ R(q)), a quadratic form. The
set {q : F(q) ≤ c} is then {q : qᵀ G q ≤ 0} with one symmetric matrix G, and the interval of each
entry of q over that of y is the solution of a quadratic equation in two entries of G⁻¹ (as
Fieller's). It is bounded if and only if G without y is positive definite, so either all intervals
are bounded or none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from consortium.base.array import Array
from consortium.kernels.noisy_moment import (
    LEAST,
    NoisyMoment,
    is_positive,
    positive_part,
    residual_covariance,
)

_STEPS = 2001  # grid points of the explained share from 0 to 1


@dataclass(frozen=True)
class ExplainedShare:
    """Explained share with its interval, and the variance within groups that it refers to."""

    value: float
    low: float
    high: float
    variance: float


@dataclass(frozen=True, eq=False)
class Fit:
    """Estimates of w and b from a moment."""

    moment: NoisyMoment
    """Moment of P directions of a participant's P' entries."""
    solution: Array
    """q̂ = (−w, −b, 1) divided by the weights, length P + S + 1."""
    error: Array
    """R(q̂), shape (P + S) x (P + S)."""
    widening: Array
    """Factors on the half-widths of intervals, for unequal variances of participants' residuals.
    Length P' + S."""

    @property
    def coefficients(self) -> Array:
        """Coefficients w and constants b, length P' + S."""
        return np.asarray(-self.moment.coefficients @ self.solution[:-1])

    @cached_property
    def _forms(self) -> tuple[Array, Array]:
        """AᵀWA and H: F(q) is the ratio of their quadratic forms."""
        moment = self.moment
        rows = moment.matrix[:-1]
        inverse = np.linalg.inv(self.error)
        below = np.asarray(rows.T @ inverse @ rows)
        own = np.ones(len(self.error), dtype=bool)
        own[moment.constants] = False
        traces = np.diag(inverse)
        scale = np.zeros_like(moment.matrix)
        within = np.where(np.outer(own, own), inverse, 0.0)
        across = np.where(own[:, None] != own, inverse, 0.0)  # counted twice in q_xᵀ W q_s
        scale[:-1, :-1] = within + across
        places = np.diag_indices_from(scale)
        scale[places] += traces[own].sum() + np.where([*own, True], traces[~own].sum(), 0.0)
        scale *= moment.deviation**2 / 2.0
        chance = float(np.vdot(inverse, positive_part(rows[:, :-1]))) / moment.units
        scale += chance * positive_part(moment.matrix)
        scale[places] += LEAST * float(np.trace(scale)) / len(scale)
        return below, scale / float(self.solution @ scale @ self.solution)

    def freedom(self) -> int:
        """Return the degrees of freedom of the sampling variance."""
        return max(self.moment.units - len(self.error), 1)

    def _limit(self, confidence: float) -> float:
        return float(stdtrit(self.freedom(), (1.0 + confidence) / 2.0)) ** 2

    def intervals(self, confidence: float) -> tuple[Array, Array] | None:
        """Return lower and upper ends for w and b, each of length P' + S; None if unbounded."""
        below, scale = self._forms
        form = below - self._limit(confidence) * scale
        if self.moment.units <= len(self.error) or not is_positive(form[:-1, :-1]):
            return None
        inner = _inverse(form)
        if inner is None:
            return None
        # Eliminating all except q_k and q_y leaves the inverse of this 2 x 2 part of the inverse.
        wanted = self.moment.coefficients
        own = _squares(wanted, inner[:-1, :-1])
        mixed = wanted @ inner[:-1, -1]
        last = inner[-1, -1]
        root = np.sqrt(np.maximum(mixed**2 - own * last, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(mixed - root) / last, (mixed + root) / last])
        if not np.isfinite(ends).all():
            return None
        ends_at = -ends / self.moment.weights[-1]
        value = self.coefficients
        low = ends_at.min(axis=0)
        high = ends_at.max(axis=0)
        return value - self.widening * (value - low), value + self.widening * (high - value)

    def apart(self, confidence: float) -> Array:
        """Return whether the interval of each of w and b excludes zero: length P' + S."""
        ends = self.intervals(confidence)
        if ends is None:
            return np.zeros(len(self.moment.coefficients), dtype=bool)
        return np.asarray((ends[0] > 0) | (ends[1] < 0))

    @cached_property
    def directions(self) -> Array:
        """Factors from the score's error to the error of each of w and b, (P' + S) x (P + S)."""
        return np.asarray(self.moment.coefficients @ np.linalg.inv(self.moment.matrix[:-1, :-1]))

    def chance(self) -> Array:
        """Return n times the sampling variance of w and b, for residuals of equal variance."""
        left = max(self.moment.residual_variance(self.solution), 0.0)
        return left * _squares(self.directions, self.moment.matrix[:-1, :-1])

    def widened(self, ratios: Array) -> Fit:
        """Return a copy with the sampling variances of w and b multiplied by measured ratios."""
        chance = self.chance() / self.moment.units
        noise = _squares(self.directions, self.moment.noise_of_products(self.solution))
        with np.errstate(all="ignore"):
            share = np.where(chance > 0, chance / (chance + noise), 0.0)
        return replace(self, widening=np.sqrt(1.0 + share * (ratios - 1.0)))

    def explained(self, confidence: float) -> ExplainedShare | None:
        """Return the explained share of y's variance within groups.

        Both variances are corrected for noise and sampling. The error of their ratio follows from
        the noise's distribution and, for sampling, from that of Gaussian participants. The result
        is None if the ends are 0 and 1.
        """
        moment = self.moment
        null = np.zeros_like(self.solution)
        null[-1] = 1.0 / moment.weights[-1]
        if len(moment.parts):
            at = moment.constants
            products = np.diag(moment.matrix)[at]
            null[at] = -moment.matrix[at, -1] * null[-1] / products
        whole, whole_variance = self._freed(null, moment.constants)
        left, left_variance = self._freed(self.solution, slice(0, len(self.error)))
        if not (whole > 0 and np.isfinite(left)):
            return None
        shares = np.linspace(0.0, 1.0, _STEPS)
        both = [np.outer(each, each) for each in (null, self.solution)]
        alone = [moment.noise_of_square(form) for form in both]
        joint = (moment.noise_of_square(both[0] + both[1]) - sum(alone)) / 2.0
        kept = 1.0 - shares
        noise = kept**2 * alone[0] + alone[1] - 2.0 * kept * joint
        chance = 4.0 * np.square(max(left, 0.0)) * shares / moment.units
        missed = np.abs(kept * whole - left)
        spread = np.sqrt(np.maximum(noise + chance + left_variance + kept**2 * whole_variance, 0.0))
        holds = missed <= ndtri((1.0 + confidence) / 2.0) * spread
        value = float(np.clip(1.0 - left / whole, 0.0, 1.0))
        if not holds.any():  # the interval is shorter than the steps of the grid
            return ExplainedShare(value, value, value, whole)
        low, high = shares[holds][[0, -1]]
        low = min(float(low), value)
        high = max(float(high), value)
        return None if low <= 0.0 and high >= 1.0 else ExplainedShare(value, low, high, whole)

    def _freed(self, q: Array, places: slice) -> tuple[float, float]:
        """Return the mean of (qᵀz)² corrected for the number of fitted entries.

        The second number is the sampling variance of this correction.
        """
        moment = self.moment
        if places.stop == places.start:
            return moment.residual_variance(q), 0.0
        inner = moment.matrix[places, places]
        error = residual_covariance(moment, q)[places, places]
        try:
            taken = np.linalg.solve(inner, error)
        except np.linalg.LinAlgError:
            return float("nan"), 0.0
        return (
            moment.residual_variance(q) + float(np.trace(taken)),
            2.0 * float(np.einsum("ij,ji->", taken, taken)),
        )


def least_squares(moment: NoisyMoment) -> Fit:
    """Solve the normal equations without regularization."""
    weights = moment.weights
    rows = moment.matrix[:-1]
    right = -rows[:, -1] / weights[-1]
    try:
        solution = np.linalg.solve(rows[:, :-1], right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(rows[:, :-1], right, rcond=None)[0]
    q = np.append(solution, 1.0 / weights[-1])
    return Fit(moment, q, residual_covariance(moment, q), np.ones(len(moment.coefficients)))


def _squares(wanted: Array, inner: Array) -> Array:
    """Return lᵀ C l for each row l of ``wanted``."""
    return np.asarray(np.einsum("ij,ij->i", wanted @ inner, wanted))


def _inverse(matrix: Array) -> Array | None:
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return None
