"""Stated correlation of the outcomes, by which they are weighted before noise is added.

R is the stated correlation of V outcomes. A participant's R^-¼u is clipped and released, and R^¼ of
the noisy sum is reported. Of all such linear weightings this one leaves the least noise in the
outcomes. A wrong R costs precision only.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from consortium.algorithms.glm.kernels.equal_correlation import (
    correlation_power,
    powered_norms,
    root_diagonal,
    shared_part,
)
from consortium.base.array import Array
from consortium.kernels.smooth_basis import SmoothBasis

FWHM_PER_SIGMA = float(np.sqrt(8.0 * np.log(2.0)))
ROUGH = 0.02
"""Fraction of a smooth image's variance that is counted as noise of single voxels, as from rounding
and resampling. It avoids division by a spectrum that is nearly zero."""
_ROWS = 256  # rows of the kernel in a chunk
_MAPS = 64
_MOST_ROOM = 8  # largest number of places of a grid's box, relative to those in the mask


class OutcomeCorrelation(Protocol):
    """Correlation R of V outcomes, for which d numbers are released."""

    @property
    def entries(self) -> int:
        """V."""

    @property
    def released(self) -> int:
        """Number of released numbers, d."""

    @property
    def root(self) -> float:
        """Trace of R^½ divided by V."""

    @property
    def roots(self) -> Array | float:
        """Diagonal of R^½, or its common value."""

    @property
    def common(self) -> float:
        """Mean of all entries of R^½."""

    @property
    def freedom(self) -> float:
        """(tr R^½)² / tr R: degrees of freedom of ‖R^-¼u‖², for Gaussian u."""

    @property
    def shared(self) -> float:
        """Largest fraction of the expected squared norm of R^-¼u in one direction."""

    @property
    def resolved(self) -> float:
        """Fraction of the outcomes' variance that the d numbers represent."""

    @property
    def kept(self) -> float:
        """Fraction of its size that a difference keeps, if it is as narrow as outcomes allow."""

    @property
    def stretch(self) -> float:
        """Largest norm of R^-¼u relative to that of u."""

    def encode(self, outcomes: Array) -> Array:
        """Return R^-¼ u: V x n to d x n."""

    def decode(self, sums: Array) -> Array:
        """Return R^¼ of released sums: d x K to V x K."""

    def project(self, outcomes: Array) -> Array:
        """Return the outcomes as represented by the d numbers: V x n."""


@dataclass(frozen=True)
class EqualCorrelation:
    """Correlation with one value for any two outcomes, all of which are released."""

    entries: int
    """V."""
    correlation: float
    """ρ, from 0 to below 1."""

    @property
    def released(self) -> int:
        """V."""
        return self.entries

    @property
    def root(self) -> float:
        """g, every entry on the diagonal of R^½."""
        return root_diagonal(self.entries, self.correlation)

    @property
    def roots(self) -> float:
        """g, which is the same for every outcome."""
        return self.root

    @property
    def common(self) -> float:
        """√(1 + (V - 1) ρ) / V."""
        return float(np.sqrt(1 + (self.entries - 1) * self.correlation) / self.entries)

    @property
    def freedom(self) -> float:
        """V g²."""
        return self.entries * self.root**2

    @property
    def shared(self) -> float:
        """Fraction in the mean of all outcomes."""
        return shared_part(self.entries, self.correlation)

    @property
    def resolved(self) -> float:
        """1, as all outcomes are released."""
        return 1.0

    @property
    def kept(self) -> float:
        """1, as all outcomes are released."""
        return 1.0

    @property
    def stretch(self) -> float:
        """(1 - ρ)^-¼, for directions orthogonal to the mean."""
        return float((1 - self.correlation) ** -0.25)

    def encode(self, outcomes: Array, mean: Array | None = None) -> Array:
        """Return R^-¼ u; for some rows of it, if the mean of all rows is given."""
        whole = None if mean is None else (self.entries, mean)
        return correlation_power(outcomes, self.correlation, -0.25, whole)

    def encoded_norms(self, squares: Array, means: Array) -> Array:
        """Return ‖R^-¼ u‖ of columns with these sums of squares and means."""
        return powered_norms(squares, means, self.entries, self.correlation, -0.25)

    def decode(self, sums: Array) -> Array:
        """Return R^¼ of sums."""
        return correlation_power(sums, self.correlation, 0.25)

    def project(self, outcomes: Array) -> Array:
        """Return the outcomes unchanged."""
        return outcomes


class SummedCorrelation(OutcomeCorrelation, ABC):
    """Correlation whose released numbers follow from sums over all outcomes of a participant."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """V."""

    @property
    @abstractmethod
    def spectrum(self) -> Array:
        """Eigenvalues of R, length d."""

    @abstractmethod
    def add(self, sums: Array, outcomes: Array, rows: slice) -> None:
        """Add the part of some rows of outcomes, v x n, to the sums, d x n, in place."""

    @abstractmethod
    def weighed(self, sums: Array) -> Array:
        """Return R_Φ^-¼ Φᵀu: d x n."""

    @abstractmethod
    def squares(self, sums: Array) -> Array:
        """Return ‖ΦΦᵀu‖², length n."""

    @abstractmethod
    def left(self, sums: Array) -> Array:
        """Return the argument of `maps`, d x n."""

    @abstractmethod
    def maps(self, left: Array, rows: slice = slice(None)) -> Array:
        """Return rows of ΦΦᵀu, v x n."""

    def encode(self, outcomes: Array) -> Array:
        """Return R_Φ^-¼ Φᵀu: V x n to d x n."""
        return self.weighed(self.sums(outcomes))

    def sums(self, outcomes: Array) -> Array:
        """Return the sums of all rows: V x n to d x n."""
        sums = np.zeros((self.released, outcomes.shape[1]))
        self.add(sums, outcomes, slice(0, self.entries))
        return sums

    def project(self, outcomes: Array) -> Array:
        """Return Φ Φᵀu: V x n."""
        return self.maps(self.left(self.sums(outcomes)))

    @property
    def released(self) -> int:
        """d, number of maps in the basis."""
        return len(self.spectrum)

    @property
    def root(self) -> float:
        """Trace of R^½ divided by V, mean factor of the noise variance."""
        return float(np.sqrt(self.spectrum).sum() / self.entries)

    @property
    def freedom(self) -> float:
        """(tr R^½)² / tr R, about the number of waves with similar strength."""
        return float(np.sqrt(self.spectrum).sum() ** 2 / self.spectrum.sum())

    @property
    def shared(self) -> float:
        """Fraction in the longest wave."""
        roots = np.sqrt(self.spectrum)
        return float(roots.max() / roots.sum())

    @property
    def resolved(self) -> float:
        """Fraction of the variance of such images in waves longer than the cut-off."""
        return float(min(self.spectrum.sum() / self.entries, 1.0))

    @property
    def stretch(self) -> float:
        """Factor of the shortest wave."""
        return float(self.spectrum.min() ** -0.25)


class BasisCorrelation(SummedCorrelation, ABC):
    """Correlation of smooth images, whose coefficients in a basis are released."""

    smoothness: float
    cutoff: float
    places: ClassVar[str]
    """Name of the outcomes, in the plural."""

    @property
    @abstractmethod
    def described(self) -> str:
        """Description of the basis for a methods section."""


@dataclass(frozen=True, eq=False)
class SmoothCorrelation(BasisCorrelation):
    """Correlation of voxels in images that were smoothed with a Gaussian kernel.

    Only waves longer than a cut-off are released: the coefficients of an image in a public
    orthonormal basis Φ (`SmoothBasis`). R is Φ R_Φ Φᵀ, of the rank d of the basis, where R_Φ is the
    covariance of Φᵀu for smoothed white noise. Powers of R_Φ do not depend on the choice of the
    orthonormal basis of the same space, and little on rounding.

    Examples
    --------
    >>> steps = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3)
    >>> smooth = SmoothCorrelation(8 * steps, smoothness=16.0, cutoff=32.0)
    >>> image = np.random.default_rng(0).standard_normal((216, 1))
    >>> bool(np.linalg.norm(smooth.project(image)) < np.linalg.norm(image))
    True
    >>> np.allclose(smooth.decode(smooth.encode(image)), smooth.project(image))
    True
    """

    places: ClassVar[str] = "voxels"
    coordinates: Array
    """Centres of the voxels in mm, V x 3."""
    smoothness: float
    """Full width of the kernel at half its maximum in mm."""
    cutoff: float
    """Shortest wavelength in mm."""

    @property
    def entries(self) -> int:
        """V, number of voxels."""
        return len(self.coordinates)

    @property
    def spectrum(self) -> Array:
        """Eigenvalues of R_Φ."""
        return self._spectrum[0]

    @property
    def described(self) -> str:
        """Gaussian blobs on a lattice."""
        return "Gaussian blobs on a lattice"

    @cached_property
    def basis(self) -> Array:
        """Φ, orthonormal columns: V x d."""
        return SmoothBasis(self.coordinates, self.cutoff).matrix

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of R_Φ."""
        deviation = np.sqrt(2.0) * self.smoothness / FWHM_PER_SIGMA
        smoothed = smoothed_maps(self.coordinates, self.basis, deviation)
        within = (1 - ROUGH) * self.basis.T @ smoothed + ROUGH * np.eye(self.basis.shape[1])
        values, vectors = np.linalg.eigh((within + within.T) / 2)
        return np.maximum(values, ROUGH), vectors

    def _power(self, power: float) -> Array:
        values, vectors = self._spectrum
        raised: Array = (vectors * values**power) @ vectors.T
        return raised

    @cached_property
    def _gram(self) -> Array:
        """ΦᵀΦ, which is I except for the ridge that ensures a Cholesky factor."""
        return np.asarray(self.basis.T @ self.basis)

    @cached_property
    def _weights(self) -> Array:
        return self._power(-0.25)

    @cached_property
    def _decoder(self) -> Array:
        return np.asarray(self.basis @ self._power(0.25))

    @cached_property
    def roots(self) -> Array:
        """Diagonal of R^½, length V."""
        return np.asarray(np.square(self._decoder).sum(axis=1))

    @cached_property
    def common(self) -> float:
        """Mean of all entries of R^½."""
        return float(np.square(self._decoder.mean(axis=0)).sum())

    @cached_property
    def kept(self) -> float:
        """Fraction of its height that a narrow difference keeps in the middle of the voxels.

        The difference is a Gaussian of √2 times the smoothness, as a difference at a single voxel
        would be after smoothing of signal and noise.
        """
        away = np.square(self.coordinates - self.coordinates.mean(axis=0)).sum(axis=1)
        middle = int(np.argmin(away))
        away = np.square(self.coordinates - self.coordinates[middle]).sum(axis=1)
        narrow = np.exp(-0.5 * away / (np.sqrt(2.0) * self.smoothness / FWHM_PER_SIGMA) ** 2)
        return float(self.project(narrow[:, None])[middle, 0])

    def add(self, sums: Array, outcomes: Array, rows: slice) -> None:
        """Add Φᵀu of some rows to the sums in place."""
        sums += self.basis[rows].T @ outcomes

    def weighed(self, sums: Array) -> Array:
        """Return R_Φ^-¼ Φᵀu: d x n."""
        return np.asarray(self._weights @ sums)

    def squares(self, sums: Array) -> Array:
        """Return ‖ΦΦᵀu‖², length n."""
        return np.asarray(np.einsum("dn,dn->n", sums, self._gram @ sums))

    def left(self, sums: Array) -> Array:
        """Return Φᵀu."""
        return sums

    def maps(self, left: Array, rows: slice = slice(None)) -> Array:
        """Return rows of ΦΦᵀu."""
        return np.asarray(self.basis[rows] @ left)

    def decode(self, sums: Array) -> Array:
        """Return Φ R_Φ^¼ of sums: V x K."""
        return np.asarray(self._decoder @ sums)


def smoothed_maps(coordinates: Array, maps: Array, deviation: float) -> Array:
    """Return maps (V x d) after smoothing with a Gaussian kernel over all places.

    A Gaussian is a product over axes, so on a grid it is applied along one axis after another.

    Parameters
    ----------
    coordinates : array, shape (V, 3)
        Places in mm.
    deviation : float
        Standard deviation of the kernel, in mm.
    """
    axes = [np.unique(along, return_inverse=True) for along in coordinates.T]
    sizes = [len(places) for places, _ in axes]
    smoothed = np.zeros_like(maps)
    if np.prod(sizes) > _MOST_ROOM * len(coordinates):
        for start in range(0, len(smoothed), _ROWS):
            rows = slice(start, start + _ROWS)
            squared = cdist(coordinates[rows], coordinates, "sqeuclidean")
            smoothed[rows] = np.exp(-0.5 * squared / deviation**2) @ maps
        return smoothed
    kernels = [np.exp(-0.5 * np.square(np.subtract.outer(p, p) / deviation)) for p, _ in axes]
    inside = tuple(where for _, where in axes)
    for start in range(0, maps.shape[1], _MAPS):
        some = slice(start, start + _MAPS)
        room = np.zeros((*sizes, maps[:, some].shape[1]))
        room[inside] = maps[:, some]
        for axis, kernel in enumerate(kernels):
            along = np.tensordot(kernel, room, axes=(1, axis))
            room = np.moveaxis(along, 0, axis)
        smoothed[:, some] = room[inside]
    return smoothed
