"""A public basis of smooth maps: Gaussian blobs on a lattice in millimetres, made orthonormal.

Networks are smooth and the noise of a release is not, so that fewer numbers carry the networks
with less noise. Every party computes the basis by itself from the study's voxels and a cut-off:
blobs and their Cholesky factor are unique and change little with rounding, where eigenvectors of
a symmetric brain are neither. Blobs can be evaluated anywhere, and so can every map that is made
of them.

The lattice is body-centred cubic: of all lattices it keeps the most waves longer than a cut-off
per blob, in every direction (Petersen and Middleton 1962).
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
"""Standard deviation of a blob over the cut-off."""
_REACH = 4.0
"""Blobs are cut at so many standard deviations."""
_INSIDE = 0.35
"""A blob is kept if so much of its energy lies in the mask, as a part of the most that one has."""
_RIDGE = 1e-9
"""Of the mean squared norm of a blob, added so that a factor always exists."""
_MOST_PLACES = 200_000  # of the lattice: that of a brain and 1,500 maps has about 10,000
_MOST_MAPS = 4_000  # their Gram matrix is 128 MB


@dataclass(frozen=True, eq=False)
class SmoothBasis:
    """Maps over D voxels whose waves are longer than a cut-off.

    Raises StudyError by all that is worked out, if the voxels span a lattice, or the maps are so
    many, that a party who only reads the study would run out of memory.
    """

    coordinates: Array
    """Shape (D, 3). Centres of the voxels in mm."""
    cutoff: float
    """Shortest wavelength in mm."""

    @property
    def size(self) -> int:
        """d, number of maps."""
        return len(self.centres)

    @cached_property
    def centres(self) -> Array:
        """Places of the blobs in mm, shape (d, 3)."""
        low, high = self.coordinates.min(axis=0), self.coordinates.max(axis=0)
        cell, middle = self.cutoff / math.sqrt(2.0), (low + high) / 2.0
        reach = np.ceil((high - low) / 2.0 / cell) + 1
        if not 2 * np.prod(2 * reach + 1) <= _MOST_PLACES:
            raise StudyError(
                "field 'analysis.cutoff': it is too short for the space of the mask's voxels; "
                "take a longer one, or another mask."
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
                f"field 'analysis.cutoff': {self.size:,} smooth maps are too many to work with; "
                "take a longer cutoff."
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
        """Φ, in the type that series of this space have, as far as it is known."""
        return self.matrix

    def times(self, weights: Array) -> Array:
        """Φ ``weights`` (d x K), of which K are few: shape (D, K)."""
        return self._paint(weights)

    @cached_property
    def _paint(self) -> Callable[[Array], Array]:
        return self.painter(self.coordinates)

    def coefficients(self, values: Array) -> Array:
        """Φᵀ ``values`` (D x K), of which K are few: shape (d, K)."""
        blobs = self._blobs(self.coordinates, self.centres)
        return np.asarray(solve_triangular(self.factor, blobs.T @ values, trans="T"))

    @cached_property
    def local(self) -> Array:
        """Orthogonal, d x d: Φ times its columns are the maps nearest to the blobs themselves."""
        return nearest_rotation(self.factor)

    def at(self, coordinates: Array) -> Array:
        """Values of the d maps at other places, shape (V, d)."""
        return self.evaluate(np.eye(len(self.factor)), coordinates)

    def evaluate(self, weights: Array, coordinates: Array) -> Array:
        """Values of maps Φ ``weights`` (d x K) at other places, shape (V, K)."""
        return self.painter(coordinates)(weights)

    def painter(self, coordinates: Array) -> Callable[[Array], Array]:
        """As `evaluate`, for who asks again and again.

        It keeps the blobs there, some 70 numbers for each place, from the first call on.
        """

        @cache
        def blobs() -> csr_array:
            return self._blobs(coordinates, self.centres).tocsr()  # whose rows are written at once

        def paint(weights: Array) -> Array:
            spread = np.ascontiguousarray(solve_triangular(self.factor, weights))
            return np.asarray(blobs() @ spread)

        return paint

    def _blobs(self, coordinates: Array, centres: Array) -> csc_array:
        width = WIDTH * self.cutoff
        voxels, places = cKDTree(coordinates), cKDTree(centres)
        near = voxels.sparse_distance_matrix(places, _REACH * width, output_type="coo_matrix")
        values = np.exp(-0.5 * np.square(near.data / width))
        return csc_array((values, (near.row, near.col)), shape=near.shape)
