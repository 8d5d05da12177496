"""A second moment that carries known Gaussian noise, and what its normal equations are missed by.

Released is the moment of z = (x, c e, αy), e being one for the person's own group (site) and zero
for the others, or one constant. What nobody differs in is left out, on orthonormal coordinates of
the rest, where the noise has the same law. At the true residual r = y − wᵀx − b_group = qᵀz the
normal equations E[z r] = 0 are missed by noise and chance alone, whose covariance R(q) is known.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag, null_space

from consortium.base.array import Array

LEAST = 1e-12
"""Of variances, over the largest: what rounding leaves."""
EMPTY = 1e-9
"""The same of persons' values, which may have been of single precision."""
_SEEN = 1e-6
"""Part of a coefficient that shows in a direction of norm one."""


@dataclass(frozen=True, eq=False)
class NoisyMoment:
    """A noisy second moment of z = d · (x, e, y)."""

    matrix: Array
    """Shape (P + S + 1) x (P + S + 1). E[z zᵀ], with what is known without data in its place."""
    weights: Array
    """Length P + S + 1. d: of x, of the constants (c each), and of y."""
    lift: Array
    """Shape (P', P). Coefficients of all P' entries of a person, from those of x."""
    parts: Array
    """Length S. Parts of the persons in each group, adding up to one; none without constants."""
    deviation: float
    """Standard deviation σ of the noise on a diagonal entry; another has half the variance."""
    units: int
    """n, persons in the mean."""
    unknown: Array | None = None
    """True or false, length P'. Entries whose coefficient these persons don't tell, as nobody
    differs where it shows."""

    @property
    def constants(self) -> slice:
        """Places of the constants."""
        return slice(len(self.weights) - 1 - len(self.parts), len(self.weights) - 1)

    @property
    def entries(self) -> int:
        """P', explaining entries of a person."""
        return len(self.lift)

    @property
    def coefficients(self) -> Array:
        """What coefficients w and constants b are of -q, (P' + S) x (P + S)."""
        own = self.lift * self.weights[: self.lift.shape[1]]
        return np.asarray(block_diag(own, np.diag(self.weights[self.constants])))

    def residual_variance(self, q: Array) -> float:
        """Mean of (qᵀz)², noise and all."""
        return float(q @ self.matrix @ q)

    def noise_of_products(self, q: Array) -> Array:
        """Covariance of N q without the row of y: σ²/2 (‖q‖² I + q qᵀ) but for what is known.

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
        """Variance of tr(N K) for a symmetric K: σ² ‖K‖², without what is known."""
        known = form[self.constants, self.constants]
        return self.deviation**2 * (float(np.vdot(form, form)) - float(np.vdot(known, known)))


def noisy_moment(
    matrix: Array, weights: Array, parts: Array, deviation: float, units: int, still: Array
) -> NoisyMoment:
    """Put what is known of a released moment in its place, and leave out what nobody differs in.

    Parameters
    ----------
    matrix, weights, parts, deviation, units
        As in `NoisyMoment`, as released.
    still : array, shape (P', R)
        Directions along which all persons' entries are at one place.
    """
    entries = len(still)
    turn, lift = np.eye(len(weights)), np.eye(entries)
    if still.size:
        kept = null_space((still / weights[:entries, None]).T)
        lift = weights[:entries, None] * kept
        turn = block_diag(kept, np.eye(len(weights) - entries))
        weights = np.concatenate([np.ones(kept.shape[1]), weights[entries:]])
    known = turn.T @ matrix @ turn if still.size else matrix.copy()
    found = NoisyMoment(known, weights, lift, parts, deviation, units)
    at = found.constants
    known[at, at] = np.diag(parts * np.square(weights[at]))
    return found if deviation else _without_empty(found)


def _without_empty(moment: NoisyMoment) -> NoisyMoment:
    """Without directions in which these persons don't differ within groups, which no noise hides.

    A level that nobody has leads to one, and fewer persons than entries to many.
    """
    at, count = moment.constants, moment.constants.start
    own, mixed = moment.matrix[:count, :count], moment.matrix[:count, at]
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
    """R(q): covariance of M q without the row of y, from noise and from chance among persons."""
    rows = positive_part(moment.matrix[:-1, :-1])
    left = max(moment.residual_variance(q), LEAST * abs(float(moment.matrix[-1, -1])) * q[-1] ** 2)
    error = moment.noise_of_products(q) + left / moment.units * rows
    least = LEAST * float(np.trace(error)) / len(error)
    error[np.diag_indices_from(error)] += max(least, np.finfo(np.float64).tiny)
    return np.asarray(error)


def positive_part(matrix: Array) -> Array:
    """Without what is negative in it."""
    if is_positive(matrix):
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def is_positive(matrix: Array) -> bool:
    """Whether a symmetric matrix is finite and positive definite."""
    if not np.isfinite(matrix).all():
        return False
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
