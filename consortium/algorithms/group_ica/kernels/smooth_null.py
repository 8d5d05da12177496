"""Persons who share a smooth covariance and no network: what a network has to stand out of.

Directions of such persons are waves: eigenvectors of a covariance that falls with distance and is
the same everywhere. So the part of a released matrix that is made of these waves, the longer ones
the stronger, is what it would be without networks; drawn again with the release's noise and with
other persons, it tells how much of a map chance and smoothness put beyond that part.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import isotonic_regression

from consortium.base.array import Array
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.surface_basis import SurfaceBasis

KERNELS = ((8.0, 2), (12.0, 2), (18.0, 2), (27.0, 2), (20.0, 1), (60.0, 1))
"""Length ℓ in mm and power p of covariances exp(-(distance/ℓ)^p), of which the best is taken."""
_ALONG = 6.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 37.0, 45.0
"""Widths at half height in mm of noise that was smoothed along a cortex."""
_THROUGH = tuple(
    (length, 2) for length in (6.5, 8.0, 10.0, 12.5, 15.0, 18.0, 22.0, 27.0, 33.0, 40.0)
)
"""As `KERNELS`, of noise that was smoothed in the volume: 1.18 times narrower than these."""
_FWHM = 2.3548
_MOST_VERTICES = 6000


@dataclass(frozen=True, eq=False)
class SmoothPlaces:
    """Where the dimensions of a basis are."""

    coordinates: Array
    """Shape (d, 3). In mm."""
    turn: Array | None = None
    """Shape (d, d). Orthogonal: its columns are, in the basis, maps that each lie around one place.
    By default the basis's own."""
    own: Callable[[], tuple[Array, ...]] | None = None
    """Gives waves to take in the place of those of `KERNELS` between the coordinates."""

    @cached_property
    def waves(self) -> tuple[Array, ...]:
        """Eigenvectors of each covariance, in the basis, longest first."""
        if self.own is not None:
            return self.own()
        vectors = waves_of(kernels_between(self.coordinates))
        return tuple(each if self.turn is None else self.turn @ each for each in vectors)


def waves_of(covariances: Iterable[Array]) -> tuple[Array, ...]:
    """Eigenvectors of each, longest first."""
    return tuple(eigh(each)[1][:, ::-1] for each in covariances)


def kernels_between(
    coordinates: Array, kernels: Sequence[tuple[float, int]] = KERNELS
) -> Iterator[Array]:
    """Each kernel between places, d x d."""
    squares = np.sum(coordinates**2, axis=1)
    apart = squares[:, None] + squares - 2.0 * coordinates @ coordinates.T
    apart = np.sqrt(np.maximum(apart, 0.0))
    for length, power in kernels:
        yield np.exp(-((apart / length) ** power))


@lru_cache(maxsize=1)
def surface_waves(basis: SurfaceBasis) -> tuple[Array, ...]:
    """Waves of noise that was smoothed along a cortex or through the volume, in its basis.

    A basis is orthonormal over vertices, which are denser in some places than in others: no modes
    are the eigenvectors of these, nor of kernels between single places in its folds.
    """
    return waves_of(_on_surface(basis))


def _on_surface(basis: SurfaceBasis) -> Iterator[Array]:
    matrix = basis.matrix
    sides = np.split(matrix, np.cumsum([len(side.vectors) for side in basis.modes])[:-1])
    for width in _ALONG:
        total = np.zeros((matrix.shape[1],) * 2)
        for side, own in zip(basis.modes, sides, strict=True):
            along = own.T @ side.vectors
            total += (along * side.heat((width / _FWHM) ** 2)[0]) @ along.T
        yield total
    some = slice(None, None, max(1, -(-len(matrix) // _MOST_VERTICES)))
    for kernel in kernels_between(basis.coordinates[some].astype(np.float32), _THROUGH):
        yield np.asarray(matrix[some].T @ (kernel @ matrix[some].astype(np.float32)))


@dataclass(frozen=True, eq=False)
class SmoothNull:
    """Means of projectors of persons without networks."""

    waves: Array
    """Shape (d, d). Orthonormal."""
    strengths: Array
    """Shape (d,). Of each wave, descending."""
    persons: Array
    """Shape (d,). Root of how far the mean of so many persons strays along each wave."""
    law: SymmetricNoise
    """Of privacy."""

    @cached_property
    def mean(self) -> Array:
        """What ever more persons would lead to, d x d."""
        return np.asarray((self.waves * self.strengths) @ self.waves.T)

    @property
    def bulk(self) -> float:
        """Median eigenvalue."""
        return float(np.median(self.strengths))

    def draw(self, generator: np.random.Generator) -> Array:
        """A release of other persons, d x d."""
        half = generator.standard_normal(self.mean.shape)
        own = (half + half.T) * np.outer(self.persons, self.persons) / np.sqrt(2.0)
        noise = self.law.draw(generator)
        return np.asarray(self.mean + noise + self.waves @ own @ self.waves.T)


def strengths_of(matrix: Array, weights: Array) -> Array:
    """wᵀ A w / wᵀ w of each column w of ``weights`` (d x R); 0 for one that is zero."""
    sizes = np.einsum("ij,ij->j", weights, matrix @ weights)
    squares = np.sum(np.square(weights), axis=0)
    return np.asarray(np.divide(sizes, squares, out=np.zeros_like(sizes), where=squares > 0))


def fit_smooth(
    matrix: Array, places: SmoothPlaces, deviation: float, kept: int, persons: int
) -> SmoothNull:
    """The persons without networks that are most like a release.

    Parameters
    ----------
    matrix : array, shape (d, d)
    deviation : float
        Of the noise of privacy in a released number.
    kept : int
        K, directions of a person.
    """
    fits = []
    for waves in places.waves:
        along = np.einsum("ij,ij->j", waves, matrix @ waves)
        fits.append(isotonic_regression(along, increasing=False).x)
    best = int(np.argmax([np.square(fit).sum() for fit in fits]))
    strengths = np.asarray(fits[best])
    # A wave that all persons have, or none, does not differ between them.
    part = np.clip(strengths, 0.0, 1.0)
    differs = part * (1.0 - part)
    total = max(kept - float(np.square(part).sum()), 0.0) / persons
    whole = max(float(differs.sum()), np.finfo(np.float64).tiny)
    strays = np.sqrt(differs / whole) * total**0.25
    law = SymmetricNoise(len(matrix), deviation)
    return SmoothNull(places.waves[best], strengths, strays, law)
