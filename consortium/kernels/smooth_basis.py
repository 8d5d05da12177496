"""Public basis of smooth maps: Gaussian blobs on a lattice in millimetres, orthonormalized.

Networks are smooth and the noise of a release is not, so fewer numbers represent the networks with
less noise. Every party computes the basis by itself from the study's voxels and a cut-off: blobs
and their Cholesky factor are unique and change little with rounding, unlike the eigenvectors of a
symmetric brain. Blobs can be evaluated anywhere, and so can every map that consists of them.

The lattice is body-centred cubic: of all lattices it keeps the most waves longer than a cut-off per
blob, in every direction (Petersen and Middleton 1962).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csc_array, csr_array
from scipy.spatial import cKDTree

from consortium.base.array import Array
from consortium.errors import StudyError
from consortium.kernels.spatial_ica import nearest_rotation

WIDTH = 0.36
"""Standard deviation of a blob relative to the cut-off."""
_REACH = 4.0
"""Standard deviations at which blobs are cut."""
_INSIDE = 0.35
"""Least energy of a blob within the mask, relative to the largest."""
_RIDGE = 1e-9
"""Added to the Gram matrix, relative to the mean squared norm of a blob, to ensure a Cholesky
factor."""
_MOST_PLACES = 200_000  # places of the lattice; a brain and 1,500 maps require about 10,000
_MOST_MAPS = 4_000  # their Gram matrix is 128 MB


@dataclass(frozen=True, eq=False)
class SmoothBasis:
    """Maps over D voxels whose waves are longer than a cut-off.

    Computed properties raise StudyError if the voxels' lattice or the number of maps is so large
    that a party who only reads the study would run out of memory.
    """

    coordinates: Array
    """Centres of the voxels in mm, shape (D, 3)."""
    cutoff: float
    """Shortest wavelength in mm."""

    @property
    def size(self) -> int:
        """d, number of maps."""
        return len(self.centres)

    @cached_property
    def centres(self) -> Array:
        """Places of the blobs in mm, shape (d, 3)."""
        low = self.coordinates.min(axis=0)
        high = self.coordinates.max(axis=0)
        cell = self.cutoff / math.sqrt(2.0)
        middle = (low + high) / 2.0
        reach = np.ceil((high - low) / 2.0 / cell) + 1
        if not 2 * np.prod(2 * reach + 1) <= _MOST_PLACES:
            raise StudyError(
                f"The cutoff of {self.cutoff:g} mm is too short for the extent of the mask's "
                "voxels. Set a longer cutoff, or another mask."
            )
        steps = np.stack(
            np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij"), axis=-1
        ).reshape(-1, 3)
        places = middle + cell * np.concatenate([steps, steps + 0.5])
        energies = np.asarray(self._blobs(self.coordinates, places).power(2).sum(axis=0)).ravel()
        return np.asarray(places[energies >= _INSIDE * energies.max()])

    @cached_property
    def factor(self) -> Array:
        """Upper triangular R with RᵀR the blobs' Gram matrix, d x d."""
        if self.size > _MOST_MAPS:
            raise StudyError(
                f"The cutoff must lead to at most {_MOST_MAPS:,} smooth maps, got {self.size:,} "
                f"with {self.cutoff:g} mm. Set a longer cutoff."
            )
        blobs = self._blobs(self.coordinates, self.centres)
        gram = (blobs.T @ blobs).toarray()
        gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
        return np.asarray(cholesky(gram))

    @cached_property
    def matrix(self) -> Array:
        """Φ, orthonormal columns, shape (D, d)."""
        return self.at(self.coordinates)

    @property
    def for_series(self) -> Array:
        """Φ, in the type of this space's series, if it is known."""
        return self.matrix

    def times(self, weights: Array) -> Array:
        """Return Φ ``weights`` (d x K) for a small K: shape (D, K)."""
        return self._paint(weights)

    @cached_property
    def _paint(self) -> Callable[[Array], Array]:
        return self.painter(self.coordinates)

    def coefficients(self, values: Array) -> Array:
        """Return Φᵀ ``values`` (D x K) for a small K: shape (d, K)."""
        blobs = self._blobs(self.coordinates, self.centres)
        return np.asarray(solve_triangular(self.factor, blobs.T @ values, trans="T"))

    @cached_property
    def local(self) -> Array:
        """Orthogonal matrix, d x d: Φ times it gives the maps nearest to the blobs themselves."""
        return nearest_rotation(self.factor)

    def at(self, coordinates: Array) -> Array:
        """Return values of the d maps at other places, shape (V, d)."""
        return self.evaluate(np.eye(len(self.factor)), coordinates)

    def evaluate(self, weights: Array, coordinates: Array) -> Array:
        """Return values of maps Φ ``weights`` (d x K) at other places, shape (V, K)."""
        return self.painter(coordinates)(weights)

    def painter(self, coordinates: Array) -> Callable[[Array], Array]:
        """Return a function that does `evaluate` repeatedly for the same places.

        It stores the blobs there, about 70 numbers for each place, from the first call on.
        """

        @cache
        def blobs() -> csr_array:
            return self._blobs(
                coordinates, self.centres
            ).tocsr()  # rows of a product are then contiguous

        def paint(weights: Array) -> Array:
            spread = np.ascontiguousarray(solve_triangular(self.factor, weights))
            return np.asarray(blobs() @ spread)

        return paint

    def _blobs(self, coordinates: Array, centres: Array) -> csc_array:
        width = WIDTH * self.cutoff
        voxels = cKDTree(coordinates)
        places = cKDTree(centres)
        near = voxels.sparse_distance_matrix(places, _REACH * width, output_type="coo_matrix")
        values = np.exp(-0.5 * np.square(near.data / width))
        return csc_array((values, (near.row, near.col)), shape=near.shape)
