"""Second moment with known Gaussian noise, and the error of its normal equations.

The release is the moment of z = (x, c e, αy), with e being one for the participant's own group
(site) and zero for the others, or one constant. Directions in which no participants differ are
removed, on orthonormal coordinates of the rest, where the noise has the same distribution. At the
true residual r = y − wᵀx − b_group = qᵀz the normal equations E[z r] = 0 are violated only by noise
and sampling, whose covariance R(q) is known.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag, null_space

from consortium.base.array import Array

LEAST = 1e-12
"""Relative size of variances that are rounding errors."""
EMPTY = 1e-9
"""The same for participants' values, which may have single precision."""
_SEEN = 1e-6
"""Least part of a coefficient in a direction of norm one that counts as affected."""


@dataclass(frozen=True, eq=False)
class NoisyMoment:
    """A noisy second moment of z = d · (x, e, y)."""

    matrix: Array
    """E[z zᵀ], with entries that are known without data set to their values. Shape (P + S + 1) x (P
    + S + 1)."""
    weights: Array
    """d, weights of x, of the constants (c each), and of y. Length P + S + 1."""
    lift: Array
    """Map from coefficients of x to those of all P' entries of a participant. Shape (P', P)."""
    parts: Array
    """Fractions of the participants in each group, with sum one; empty without constants. Length
    S."""
    deviation: float
    """Standard deviation σ of the noise on a diagonal entry; off-diagonal entries have half the
    variance."""
    units: int
    """n, number of participants in the mean."""
    unknown: Array | None = None
    """Entries whose coefficients cannot be estimated, because participants do not differ in a
    direction that they affect. Boolean, length P'."""

    @property
    def constants(self) -> slice:
        """Positions of the constants."""
        return slice(len(self.weights) - 1 - len(self.parts), len(self.weights) - 1)

    @property
    def entries(self) -> int:
        """P', number of a participant's predictors."""
        return len(self.lift)

    @property
    def coefficients(self) -> Array:
        """Map from -q to coefficients w and constants b, (P' + S) x (P + S)."""
        own = self.lift * self.weights[: self.lift.shape[1]]
        return np.asarray(block_diag(own, np.diag(self.weights[self.constants])))

    def residual_variance(self, q: Array) -> float:
        """Return the mean of (qᵀz)², including noise."""
        return float(q @ self.matrix @ q)

    def noise_of_products(self, q: Array) -> Array:
        """Return the covariance of N q without the row of y: σ²/2 (‖q‖² I + q qᵀ) if all is noisy.

        Products of two constants have no noise.
        """
        own = q[:-1].copy()
        own[self.constants] = 0.0
        both = np.outer(own, q[:-1])
        error = both + both.T - np.outer(own, own)
        lengths = np.full(len(own), q @ q)
        lengths[self.constants] -= float(np.square(q[self.constants]).sum())
        error[np.diag_indices_from(error)] += lengths
        return np.asarray(self.deviation**2 / 2.0 * error)

    def noise_of_square(self, form: Array) -> float:
        """Return the variance of tr(N K) for a symmetric K: σ² ‖K‖² over the noisy entries."""
        known = form[self.constants, self.constants]
        return self.deviation**2 * (float(np.vdot(form, form)) - float(np.vdot(known, known)))


def noisy_moment(
    matrix: Array, weights: Array, parts: Array, deviation: float, units: int, still: Array
) -> NoisyMoment:
    """Return a released moment with known entries set, and directions without variation removed.

    Parameters
    ----------
    matrix, weights, parts, deviation, units
        As in `NoisyMoment`, as released.
    still : array, shape (P', R)
        Directions in which the entries of all participants are equal.
    """
    entries = len(still)
    turn = np.eye(len(weights))
    lift = np.eye(entries)
    if still.size:
        kept = null_space((still / weights[:entries, None]).T)
        lift = weights[:entries, None] * kept
        turn = block_diag(kept, np.eye(len(weights) - entries))
        weights = np.concatenate([np.ones(kept.shape[1]), weights[entries:]])
    known = turn.T @ matrix @ turn if still.size else matrix.copy()
    found = NoisyMoment(
        matrix=known,
        weights=weights,
        lift=lift,
        parts=parts,
        deviation=deviation,
        units=units,
    )
    at = found.constants
    known[at, at] = np.diag(parts * np.square(weights[at]))
    return found if deviation else _without_empty(found)


def _without_empty(moment: NoisyMoment) -> NoisyMoment:
    """Return the moment without directions in which participants do not differ within groups.

    It is for moments without noise. A level without participants leads to such a direction, and
    fewer participants than entries lead to many.
    """
    at = moment.constants
    count = moment.constants.start
    own = moment.matrix[:count, :count]
    mixed = moment.matrix[:count, at]
    within = own - mixed @ np.linalg.solve(moment.matrix[at, at], mixed.T)
    values, vectors = np.linalg.eigh(within)
    empty = values <= EMPTY * max(float(np.diag(own).max(initial=0.0)), np.finfo(float).tiny)
    if not empty.any():
        return moment
    turn = block_diag(vectors[:, ~empty], np.eye(len(moment.matrix) - count))
    scaled = moment.lift * moment.weights[:count]
    return replace(
        moment,
        matrix=turn.T @ moment.matrix @ turn,
        weights=np.concatenate([np.ones(int(np.sum(~empty))), moment.weights[count:]]),
        lift=scaled @ vectors[:, ~empty],
        unknown=np.any(np.abs(scaled @ vectors[:, empty]) > _SEEN, axis=1),
    )


def residual_covariance(moment: NoisyMoment, q: Array) -> Array:
    """Return R(q): covariance of M q without the row of y, from noise and sampling."""
    rows = positive_part(moment.matrix[:-1, :-1])
    left = max(moment.residual_variance(q), LEAST * abs(float(moment.matrix[-1, -1])) * q[-1] ** 2)
    error = moment.noise_of_products(q) + left / moment.units * rows
    least = LEAST * float(np.trace(error)) / len(error)
    error[np.diag_indices_from(error)] += max(least, np.finfo(np.float64).tiny)
    return np.asarray(error)


def positive_part(matrix: Array) -> Array:
    """Return the positive semidefinite part of a symmetric matrix."""
    if is_positive(matrix):
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def is_positive(matrix: Array) -> bool:
    """Return whether a symmetric matrix is finite and positive definite."""
    if not np.isfinite(matrix).all():
        return False
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
