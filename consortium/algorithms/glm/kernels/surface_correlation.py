"""How alike the vertices of smooth maps on the cortex are, as `outcome_correlation` of voxels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from consortium.algorithms.glm.kernels.outcome_correlation import (
    FWHM_PER_SIGMA,
    ROUGH,
    BasisCorrelation,
)
from consortium.base.array import Array
from consortium.kernels.surface_basis import turn_of
from consortium.kernels.surface_modes import SurfaceModes

_ROWS = 4096  # of the modes at a time


@dataclass(frozen=True, eq=False)
class _Side:
    """One hemisphere of a `SurfaceCorrelation`: φ are its d longest modes at V vertices.

    Φ = φT is the basis of `surface_basis`.
    """

    modes: SurfaceModes
    variance: float
    cutoff: float

    @property
    def size(self) -> int:
        """D."""
        return self.modes.below(self.cutoff)

    @cached_property
    def kept(self) -> float:
        """Part of the variance of images of this smoothness that lies in the d modes."""
        weights, whole = self.modes.heat(self.variance)
        return float(weights[: self.size].sum() / whole)

    @cached_property
    def parts(self) -> tuple[Array, Array, Array]:
        """T, and eigenvalues and eigenvectors of R_Φ, each for d maps."""
        waves, basis = self.modes.vectors[:, : self.size], turn_of(self.modes, self.size)
        weights, whole = self.modes.heat(self.variance)
        strengths = self.modes.area / whole * weights[: self.size]
        turned = basis.T @ (waves.T @ waves)
        within = (1 - ROUGH) * (turned * strengths) @ turned.T + ROUGH * np.eye(self.size)
        values, vectors = np.linalg.eigh((within + within.T) / 2)
        return basis, np.maximum(values, ROUGH), vectors

    def power(self, exponent: float) -> Array:
        """R_Φ to a power, d x d."""
        _, values, vectors = self.parts
        return np.asarray((vectors * values**exponent) @ vectors.T)

    def coefficients(self, outcomes: Array) -> Array:
        """Φᵀu: V x n to d x n."""
        return np.asarray(self.parts[0].T @ (self.modes.vectors[:, : self.size].T @ outcomes))

    def maps(self, coefficients: Array) -> Array:
        """Φ times coefficients: d x K to V x K."""
        return np.asarray(self.modes.vectors[:, : self.size] @ (self.parts[0] @ coefficients))


@dataclass(frozen=True, eq=False)
class SurfaceCorrelation(BasisCorrelation):
    """Outcomes are vertices of the cortex, whose maps a heat kernel along it made smooth.

    As `SmoothCorrelation`, with the modes of each hemisphere in the place of blobs; R is zero
    between hemispheres.
    """

    places: ClassVar[str] = "vertices"
    sides: Sequence[SurfaceModes]
    """Whose vertices are the outcomes, one side after the other."""
    smoothness: float
    """Full width of the kernel at half its maximum in mm."""
    cutoff: float
    """Shortest wavelength in mm."""

    @cached_property
    def _sides(self) -> tuple[_Side, ...]:
        variance = (self.smoothness / FWHM_PER_SIGMA) ** 2  # of white noise that was smoothed
        return tuple(_Side(side, variance, self.cutoff) for side in self.sides)

    @property
    def entries(self) -> int:
        """V, vertices."""
        return sum(len(side.vectors) for side in self.sides)

    @cached_property
    def spectrum(self) -> Array:
        """Eigenvalues of R, of one side after the other."""
        return np.concatenate([side.parts[1] for side in self._sides])

    @property
    def described(self) -> str:
        """Modes."""
        return "the lowest modes of the cortex's Laplace-Beltrami operator"

    @cached_property
    def roots(self) -> Array:
        """Diagonal of R^½, length V."""
        found = []
        for side in self._sides:
            half = side.power(0.25)
            for start in range(0, len(side.modes.vectors), _ROWS):
                waves = side.modes.vectors[start : start + _ROWS, : side.size]
                found.append(np.square(waves @ (side.parts[0] @ half)).sum(axis=1))
        return np.concatenate(found)

    @cached_property
    def common(self) -> float:
        """Mean of all entries of R^½."""
        ones = ((side, np.ones((len(side.modes.vectors), 1))) for side in self._sides)
        sums = (side.power(0.25) @ side.coefficients(one) for side, one in ones)
        return float(sum(np.square(each).sum() for each in sums) / self.entries**2)

    @property
    def kept(self) -> float:
        """Part of its height that a narrow difference keeps, as in `SmoothCorrelation`.

        A heat kernel's height is the sum over its modes, which here is the variance's as well.
        """
        return float(np.mean([side.kept for side in self._sides]))

    def _split(self, values: Array, sizes: Sequence[int]) -> list[Array]:
        return np.split(values, np.cumsum(sizes)[:-1])

    def _by_vertex(self, values: Array) -> list[Array]:
        return self._split(values, [len(side.vectors) for side in self.sides])

    def encode(self, outcomes: Array) -> Array:
        """R_Φ^-¼ Φᵀu: d x n."""
        pairs = zip(self._sides, self._by_vertex(outcomes), strict=True)
        return np.concatenate([side.power(-0.25) @ side.coefficients(u) for side, u in pairs])

    def decode(self, sums: Array) -> Array:
        """Φ R_Φ^¼ of sums: d x K to V x K."""
        pairs = zip(self._sides, self._split(sums, [s.size for s in self._sides]), strict=True)
        return np.concatenate([side.maps(side.power(0.25) @ own) for side, own in pairs])

    def project(self, outcomes: Array) -> Array:
        """Φ Φᵀu: V x n."""
        pairs = zip(self._sides, self._by_vertex(outcomes), strict=True)
        return np.concatenate([side.maps(side.coefficients(u)) for side, u in pairs])
