"""Persons who share a smooth covariance and no network: what a network has to stand out of.

Directions of such persons are waves: eigenvectors of a covariance that falls with distance and is
the same everywhere. So the part of a released matrix that is made of these waves, the longer ones
the stronger, is what it would be without networks; drawn again with the release's noise and with
other persons, it tells how much of a map chance and smoothness put beyond that part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import isotonic_regression

from consortium.kernels.noise_law import SymmetricNoise

Array = NDArray[Any]

KERNELS = ((8.0, 2), (12.0, 2), (18.0, 2), (27.0, 2), (20.0, 1), (60.0, 1))
"""Length ℓ in mm and power p of covariances exp(-(distance/ℓ)^p), of which the best is taken."""


@dataclass(frozen=True, eq=False)
class SmoothPlaces:
    """Where the dimensions of a basis are.

    Parameters
    ----------
    coordinates : array, shape (d, 3)
        In mm.
    turn : array, shape (d, d), optional
        Orthogonal: its columns are, in the basis, maps that each lie around one place. By default
        the basis's own.
    own : array, shape (d, d), optional
        Waves along a surface, on which places that are near by may lie far apart.
    """

    coordinates: Array
    turn: Array | None = None
    own: Array | None = None

    @cached_property
    def waves(self) -> tuple[Array, ...]:
        """A surface's own, and eigenvectors of each of `KERNELS`, in the basis, longest first."""
        return (*([] if self.own is None else [self.own]), *self._waves())

    def _waves(self) -> Iterator[Array]:
        squares = np.sum(self.coordinates**2, axis=1)
        products = self.coordinates @ self.coordinates.T
        apart = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * products, 0.0))
        for length, power in KERNELS:
            _, vectors = eigh(np.exp(-((apart / length) ** power)))
            vectors = vectors[:, ::-1]
            yield vectors if self.turn is None else self.turn @ vectors


@dataclass(frozen=True, eq=False)
class SmoothNull:
    """Means of projectors of persons without networks.

    Parameters
    ----------
    waves : array, shape (d, d)
        Orthonormal.
    strengths : array, shape (d,)
        Of each wave, descending.
    persons : array, shape (d,)
        Root of how far the mean of so many persons strays along each wave.
    law : SymmetricNoise
        Of privacy.
    """

    waves: Array
    strengths: Array
    persons: Array
    law: SymmetricNoise

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
