"""Correlation of the vertices of smooth maps on the cortex, as `outcome_correlation` for voxels."""

from collections.abc import Iterator, Sequence
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

_ROWS = 4096  # rows of the modes in a chunk


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
        """d, number of modes."""
        return self.modes.below(self.cutoff)

    @cached_property
    def kept(self) -> float:
        """Fraction of the variance of images of this smoothness in the d modes."""
        weights, whole = self.modes.heat(self.variance)
        return float(weights[: self.size].sum() / whole)

    @cached_property
    def parts(self) -> tuple[Array, Array, Array]:
        """T, and eigenvalues and eigenvectors of R_Φ, each for d maps."""
        waves = self.modes.vectors[:, : self.size]
        basis = turn_of(self.modes, self.size)
        weights, whole = self.modes.heat(self.variance)
        strengths = self.modes.area / whole * weights[: self.size]
        turned = basis.T @ (waves.T @ waves)
        within = (1 - ROUGH) * (turned * strengths) @ turned.T + ROUGH * np.eye(self.size)
        values, vectors = np.linalg.eigh((within + within.T) / 2)
        return basis, np.maximum(values, ROUGH), vectors

    def power(self, exponent: float) -> Array:
        """Return R_Φ to a power, d x d."""
        _, values, vectors = self.parts
        return np.asarray((vectors * values**exponent) @ vectors.T)

    @cached_property
    def weights(self) -> Array:
        """R_Φ^-¼ Tᵀ, d x d."""
        return np.asarray(self.power(-0.25) @ self.parts[0].T)

    def sums(self, outcomes: Array, rows: slice = slice(None)) -> Array:
        """Return φᵀu of some rows of this side: d x n."""
        return np.asarray(self.modes.vectors[rows, : self.size].T @ outcomes)

    def waves(self, sums: Array, rows: slice = slice(None)) -> Array:
        """Return some rows of φ times d x K."""
        return np.asarray(self.modes.vectors[rows, : self.size] @ sums)


@dataclass(frozen=True, eq=False)
class SurfaceCorrelation(BasisCorrelation):
    """Correlation of the vertices of the cortex, for maps that a heat kernel along it smoothed.

    It corresponds to `SmoothCorrelation`, with the modes of each hemisphere instead of blobs. R is
    zero between hemispheres.
    """

    places: ClassVar[str] = "vertices"
    sides: Sequence[SurfaceModes]
    """Hemispheres, whose vertices are the outcomes, one side after the other."""
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
        """V, number of vertices."""
        return sum(len(side.vectors) for side in self.sides)

    @cached_property
    def spectrum(self) -> Array:
        """Eigenvalues of R, of one side after the other."""
        return np.concatenate([side.parts[1] for side in self._sides])

    @property
    def described(self) -> str:
        """Modes of the Laplace-Beltrami operator."""
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
        sums = (
            side.power(0.25) @ (side.parts[0].T @ side.sums(o, slice(None))) for side, o in ones
        )
        return float(sum(np.square(each).sum() for each in sums) / self.entries**2)

    @property
    def kept(self) -> float:
        """Fraction of its height that a narrow difference keeps, as in `SmoothCorrelation`.

        The height of a heat kernel is the sum over its modes, which here equals the variance.
        """
        return float(np.mean([side.kept for side in self._sides]))

    def _by_side(self, values: Array) -> Iterator[tuple[_Side, Array]]:
        """Return pairs of each side and its part of d rows."""
        starts = np.cumsum([side.size for side in self._sides])[:-1]
        return zip(self._sides, np.split(values, starts), strict=True)

    def _rows(self, rows: slice) -> Iterator[tuple[_Side, slice]]:
        """Yield each side with its own part of some rows."""
        first, last, _ = rows.indices(self.entries)
        start = 0
        for side in self._sides:
            many = len(side.modes.vectors)
            yield side, slice(*np.clip((first - start, last - start), 0, many).tolist())
            start += many

    def add(self, sums: Array, outcomes: Array, rows: slice) -> None:
        """Add φᵀu of some rows to the sums in place."""
        start = 0
        for (side, own), (_, some) in zip(self._by_side(sums), self._rows(rows), strict=True):
            many = some.stop - some.start
            own += side.sums(outcomes[start : start + many], some)
            start += many

    def weighed(self, sums: Array) -> Array:
        """Return R_Φ^-¼ Φᵀu: d x n."""
        return np.concatenate([side.weights @ own for side, own in self._by_side(sums)])

    def squares(self, sums: Array) -> Array:
        """Return ‖ΦΦᵀu‖², length n, for the orthonormal Φ."""
        each = (np.square(side.parts[0].T @ own) for side, own in self._by_side(sums))
        return np.asarray(sum(own.sum(axis=0) for own in each))

    def left(self, sums: Array) -> Array:
        """Return TTᵀφᵀu."""
        each = ((side.parts[0], own) for side, own in self._by_side(sums))
        return np.concatenate([turn @ (turn.T @ own) for turn, own in each])

    def maps(self, left: Array, rows: slice = slice(None)) -> Array:
        """Return rows of ΦΦᵀu."""
        pairs = zip(self._by_side(left), self._rows(rows), strict=True)
        return np.concatenate([side.waves(own, some) for (side, own), (_, some) in pairs])

    def decode(self, sums: Array) -> Array:
        """Return Φ R_Φ^¼ of sums: d x K to V x K."""
        each = ((s, s.parts[0] @ (s.power(0.25) @ own)) for s, own in self._by_side(sums))
        return np.concatenate([side.waves(own) for side, own in each])
