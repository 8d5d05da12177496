"""Shrinkage of a noisy release to its template, by the known noise.

A map is released as y = θ + noise of standard deviation τ, and θ = s a + z for a template a of norm
one and a deviation z orthogonal to all R templates (`dual_regression`). s has one coordinate and is
used as released. z has p = d − R, and is shrunk as by James and Stein: f w with
f = 1 − (p − 2)τ²/‖w‖². If ‖w‖² is not larger than by noise, f = 0 and the map is the template. So
the error is that of the better of the two, or less: about pλ/(p + λ)·τ² for λ = ‖z‖²/τ², while the
template's is λτ² and the release's pτ².
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import orth
from scipy.special import chdtri, ndtri

from consortium.base.array import Array

FALSE_ALARM = 1e-4
"""Probability for one map that noise is taken for a deviation from its template."""
_NORMAL_95 = 1.96
_ENDS = (0.025, 0.975)
_VALUES = 32
"""Number of equally likely values of each kind of noise; all combinations are used."""


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Maps between their templates and the release."""

    strengths: Array
    """Shape (R,). s, of the template in each map; 0 or more."""
    deviations: Array
    """Shape (d, R). w, released part orthogonal to all templates, with noise."""
    kept: Array
    """Shape (R,). f, the factor of the deviation, 0 to 1; 0 for the template itself."""
    squares: Array
    """Shape (3, R). ‖z‖²: low end of its 95 % interval, estimate, and high end."""
    span: Array
    """Shape (d, R). Orthonormal basis of the templates."""
    deviation: float
    """τ."""

    @property
    def moved(self) -> Array:
        """Shrunk deviations: f w, shape (d, R)."""
        return np.asarray(self.kept * self.deviations)

    @property
    def expected(self) -> Array:
        """Expected correlation of each map with the truth, (3, R).

        In the middle row, between the ends of its 95 % interval.
        """
        sizes = np.square(self.deviations).sum(axis=0)
        own = np.square(self.strengths)
        found = np.sqrt(own + np.square(self.kept) * sizes)
        top = own + self.kept * self.squares[1]
        whole = np.sqrt(own + self.squares[1])
        middle = _ratio(top, found * whole)
        return np.sort(np.vstack([*self._interval(sizes, found), middle]), axis=0)

    def _interval(self, sizes: Array, found: Array) -> Array:
        """Return limits of the correlations for released s and ‖w‖², over the noise's distribution.

        The noise orthogonal to the templates has e τ along z, and χ² τ² is the square of the rest:
        ‖w‖² = (‖z‖ + e τ)² + χ² τ², and wᵀz = ‖z‖ (‖z‖ + e τ). For z solved at equally likely
        values of e, χ² and the noise of s, the truth is the map's correlation with s a + z.
        """
        freedom = len(self.deviations) - self.deviations.shape[1]
        tail = (np.arange(_VALUES) + 0.5) / _VALUES
        normal = ndtri(tail)
        square = chdtri(freedom - 1, tail)
        ends = []
        for strength, size, kept, norm in zip(self.strengths, sizes, self.kept, found, strict=True):
            along = np.sqrt(np.maximum(size - self.deviation**2 * square, 0.0))[:, None, None]
            orthogonal = np.maximum(along - self.deviation * normal[:, None], 0.0)
            own = strength - self.deviation * normal
            top = strength * own + kept * orthogonal * along
            values = _ratio(top, norm * np.hypot(own, orthogonal))
            ends.append(np.quantile(values, _ENDS))
        return np.array(ends).T

    @property
    def similarity(self) -> Array:
        """Estimated correlation of each template with the truth, without the noise, (R,)."""
        return _ratio(self.strengths, np.sqrt(np.square(self.strengths) + self.squares[1]))

    @property
    def errors(self) -> Array:
        """Standard error of a coordinate orthogonal to the templates, shape (R,).

        For a map that is its template, the upper limit of the deviation.
        """
        freedom = max(len(self.deviations) - self.deviations.shape[1], 1)
        unknown = np.sqrt(self.squares[2] / freedom)
        return np.where(self.kept > 0, self.deviation * np.sqrt(self.kept), unknown)


def shrink(released: Array, templates: Array, deviation: float) -> Shrunk:
    """Shrink every released map towards its template.

    Parameters
    ----------
    released, templates : array, shape (d, R)
        Templates have norm one and are independent; d is R + 3 or more.
    deviation : float
        τ, of every entry of the release.
    """
    span = orth(templates)
    orthogonal = released - span @ (span.T @ released)
    strengths = np.maximum(np.einsum("ij,ij->j", templates, released), 0.0)
    freedom = released.shape[0] - released.shape[1]
    squares = np.square(orthogonal).sum(axis=0)
    noise = deviation**2
    believed = squares > noise * chdtri(freedom, FALSE_ALARM)
    least = np.where(believed, squares, 1.0)
    kept = np.where(believed, np.maximum(1.0 - (freedom - 2) * noise / least, 0.0), 0.0)
    own = np.maximum(squares - freedom * noise, 0.0)
    spread = _NORMAL_95 * deviation * np.sqrt(2.0 * freedom * noise + 4.0 * own)
    ends = np.maximum(np.stack([own - spread, own, own + spread]), 0.0)
    return Shrunk(
        strengths=strengths,
        deviations=orthogonal,
        kept=kept,
        squares=ends,
        span=span,
        deviation=deviation,
    )


def _ratio(top: Array, product: Array) -> Array:
    """Return correlations, 0 for a map that is zero."""
    product = np.broadcast_to(product, np.shape(top))
    return np.clip(np.divide(top, product, out=np.zeros(top.shape), where=product > 0), 0.0, 1.0)


@dataclass(frozen=True)
class Agreement:
    """A group's map and its template, within a basis, and the noise of its release."""

    freedom: int
    """p, dimensions of the basis orthogonal to the templates."""
    deviation: float
    """τ."""
    strength: float
    """‖θ‖, norm of the group's map."""
    agreement: float
    """Its correlation with the template."""

    @property
    def squared_difference(self) -> float:
        """‖z‖², squared norm of the part of the group's map that is orthogonal to the templates."""
        return self.strength**2 * (1.0 - self.agreement**2)

    @property
    def is_reported(self) -> bool:
        """Whether the deviation is more likely than not to stand out of the noise."""
        noise = self.deviation**2
        limit = float(chdtri(self.freedom, FALSE_ALARM)) - self.freedom
        return self.squared_difference > noise * limit

    @property
    def captured(self) -> float:
        """Part of the squared norm of the group's map that comes out, 0 to 1."""
        if not self.is_reported:
            return self.agreement**2
        kept = self.squared_difference / (
            self.squared_difference + self.freedom * self.deviation**2
        )
        return self.agreement**2 + kept * (1.0 - self.agreement**2)

    @property
    def expected(self) -> float:
        """Correlation of the shrunk map with the group's."""
        return math.sqrt(self.captured)
