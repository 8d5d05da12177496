"""Regularized logistic regression within a ball, to a certified precision.

Newton's method for the cost

    F(u) = 1/d Σ over participants log(1 + exp(-mᵀu - o)) + Λ/2 ‖u‖² - pᵀu,   ‖u‖ <= R,

where m is a participant's vector times its label, o the margin at u = 0, and d a public number.
Each step minimizes the quadratic model within the ball (Moré and Sorensen 1983). No iterate ever
leaves it.
F is Λ-strongly convex: with u on the ball's border or inside, ν >= 0 (0 inside) and
‖∇F(u) + ν u‖ <= β, the minimizer is at most β/Λ away, because ⟨∇F(u), z - u⟩ >= -β ‖z - u‖ for
every z of the ball.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.optimize import brentq
from scipy.special import expit

from consortium.base.array import Array
from consortium.errors import PrivacyError
from consortium.privacy.clipping import clip_vector

_STEPS = 2_000
_HALVINGS = 40
_ROUNDING = 1e-12  # relative rounding of a cost
_CHORD = 0.1  # fall of the residual that makes a new Hessian unnecessary


@dataclass(frozen=True)
class LogisticCost:
    """Regularized logistic cost of one site's participants."""

    columns: Array
    """D x N, float64. m, each participant's vector times the label -1 or +1."""
    offsets: Array
    """N. o, margins at u = 0."""
    curvature: float
    """Λ > 0."""
    pull: Array
    """D. p."""
    divisor: float
    """d > 0."""

    def value(self, point: Array) -> float:
        """Return F(u)."""
        loss = np.logaddexp(0.0, -self.margins(point)).sum() / self.divisor
        return float(loss + (self.curvature / 2 * point - self.pull) @ point)

    def fall(self, point: Array) -> float:
        """Return F(0) - F(u), with at most |mᵀu| of each participant for any o and rounding."""
        moved = point @ self.columns
        before, after = (np.logaddexp(0.0, -self.offsets - way) for way in (0.0, moved))
        parts = np.clip(before - after, -np.abs(moved), np.abs(moved))
        return float(parts.sum() / self.divisor - (self.curvature / 2 * point - self.pull) @ point)

    def margins(self, point: Array) -> Array:
        """Return mᵀu + o, one number per participant."""
        margins: Array = point @ self.columns + self.offsets
        return margins

    def slope(self, point: Array) -> Array:
        """Return ∇F(u)."""
        weights = expit(-self.margins(point)) / self.divisor
        slope: Array = self.curvature * point - self.pull - self.columns @ weights
        return slope

    def hessian(self, point: Array) -> Array:
        """Return ∇²F(u), D x D."""
        half = 1 / (2 * self.divisor**0.5 * np.cosh(np.clip(self.margins(point) / 2, -350, 350)))
        upper = dsyrk(1.0, (self.columns * half).T, trans=True)
        found: Array = upper + np.triu(upper, 1).T
        found[np.diag_indices_from(found)] += self.curvature
        return found


def minimize_in_ball(cost: LogisticCost, radius: float, start: Array, precision: float) -> Array:
    """Minimize a site's logistic cost F over the ball of allowed models.

    Raises PrivacyError if that precision is not reached, since the charged loss assumes it.

    Parameters
    ----------
    radius : float
        R.
    start : array, D
        Where to begin; if outside, the nearest point of the ball.
    precision : float
        β: the result is at most β/Λ from the minimizer.

    Returns
    -------
    array, D
    """
    here = _place(cost, clip_vector(start, radius), radius)
    before = 0.0
    hessian: Array = np.zeros(0)
    for _ in range(_STEPS):
        if here.residual <= precision:
            break
        if here.residual > _CHORD * before:  # else the last one is good enough
            hessian = cost.hessian(here.point)
        goal = _quadratic_in_ball(hessian, here.point, here.slope, radius)
        before = here.residual
        here = _advance(cost, here, goal, radius)
    if not here.residual <= precision:
        raise PrivacyError(
            f"The gradient at the minimum of the local cost must be at most {precision:g}, which "
            f"the privacy loss assumes, got {here.residual:g}. Raise analysis.penalty."
        )
    return here.point


@dataclass(frozen=True)
class _Place:
    point: Array
    slope: Array
    residual: float
    """‖∇F + ν u‖ for the best multiplier ν, which is 0 off the border."""


def _place(cost: LogisticCost, point: Array, radius: float) -> _Place:
    slope = cost.slope(point)
    size = float(np.linalg.norm(point))
    rest = slope
    if size >= radius * (1 - 1e-14):
        rest = slope + max(0.0, -float(point @ slope) / size**2) * point
    return _Place(point, slope, float(np.linalg.norm(rest)))


def _quadratic_in_ball(hessian: Array, point: Array, slope: Array, radius: float) -> Array:
    """Return the minimizer within the ball of the quadratic model at a point."""
    right = hessian @ point - slope
    found: Array = cho_solve(cho_factor(hessian, check_finite=False), right, check_finite=False)
    if np.linalg.norm(found) <= radius:
        return found
    values, vectors = np.linalg.eigh(hessian)
    turned = vectors.T @ right

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(turned / (values + multiplier))) / radius - 1

    multiplier = _falling_root(excess, float(np.linalg.norm(turned)) / radius)
    found = vectors @ (turned / (values + multiplier))
    on_border: Array = found * (radius / np.linalg.norm(found))
    return on_border


def _falling_root(excess: Callable[[float], float], most: float) -> float:
    """Return the root between 0 and `most` of a function that falls from positive to negative.

    If rounding hides the sign at an end, that end is as near to the root as possible.
    """
    if excess(0.0) <= 0:
        return 0.0
    if excess(most) >= 0:
        return most
    found, _ = brentq(
        excess, 0.0, most, xtol=1e-16 * most, rtol=1e-14, full_output=True, disp=False
    )
    return float(found)


def _advance(cost: LogisticCost, here: _Place, goal: Array, radius: float) -> _Place:
    """Take the longest of the steps 1, 1/2, 1/4 ... with a sufficient decrease.

    Sufficient is a decrease of the cost in proportion to its slope (Armijo 1966), or half the
    residual if rounding hides the decrease. With only the latter, steps could cycle, because the
    cost may rise.
    """
    step = goal - here.point
    before = cost.value(here.point)
    fall = 1e-4 * float(here.slope @ step)
    hidden = _ROUNDING * (1.0 + abs(before))
    for halving in range(_HALVINGS):
        length = 0.5**halving
        reached = _place(cost, clip_vector(here.point + length * step, radius), radius)
        rise = cost.value(reached.point) - before
        if rise <= length * fall or (rise <= hidden and reached.residual <= here.residual / 2):
            break
    return reached
