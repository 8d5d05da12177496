"""Persons who share a smooth covariance and no network: what a network has to stand out of.

Directions of such persons are waves: eigenvectors of a covariance that falls with distance, and is
the same everywhere or changes slowly over the brain. So the part of a released matrix that is made
of these waves, the longer ones the stronger, is what it would be without networks; drawn again with
the release's noise and with other persons, it tells how much of a map chance and smoothness put
beyond that part.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import isotonic_regression

from consortium.algorithms.group_ica.kernels.smooth_shape import EVEN, estimate_shape
from consortium.base.array import Array
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.spatial_ica import one_sign
from consortium.kernels.surface_basis import SurfaceBasis

_LENGTHS = 8.0, 10.0, 12.0, 14.5, 18.0, 22.0, 27.0
KERNELS = *((length, 2) for length in _LENGTHS), (20.0, 1), (60.0, 1)
"""Length ℓ in mm and power p of covariances exp(-(distance/ℓ)^p), of which the best is taken."""
_ALONG = 6.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 37.0, 45.0
"""Widths at half height in mm of noise that was smoothed along a cortex."""
_THROUGH = tuple(
    (length, 2) for length in (6.5, 8.0, 10.0, 12.5, 15.0, 18.0, 22.0, 27.0, 33.0, 40.0)
)
"""As `KERNELS`, of noise that was smoothed in the volume: 1.18 times narrower than these."""
_FWHM = 2.3548
_NEAR = 60.0  # mm, width at half height of what counts as near a place: networks are narrower
_MOST_UNEVEN = 2.0  # times as strong, or as weak, as usual
_CLOSEST, _ROUNDS, _STEPS = 12, 2, 4
_CHANGES = 0.1, 10.0
_EXPECTED_DRAWS, _MOST_VOLUMES, _TINY = 8, 200, 1e-12
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
    """Gives covariances to take in the place of those of `KERNELS` between the coordinates."""

    def covariances(self, matrix: Array) -> tuple[Array, ...]:
        """Return covariances of participants who vary alike everywhere, each d x d.

        They are isotropic, or have the anisotropy and the left-right symmetry of ``matrix``, whose
        dimensions are the maps around the places.
        """
        if self.own is not None:
            return self.own()
        shapes = EVEN, estimate_shape(matrix, self.coordinates)
        return tuple(each for shape in shapes for each in shape.kernels(self.coordinates, KERNELS))

    @cached_property
    def around(self) -> Array:
        """Weights of a mean over the places near each, d x d."""
        weights = next(EVEN.kernels(self.coordinates, ((_NEAR * np.sqrt(2.0) / _FWHM, 2),)))
        found: Array = weights / weights.sum(axis=1, keepdims=True)
        return found


@lru_cache(maxsize=1)
def surface_covariances(basis: SurfaceBasis) -> tuple[Array, ...]:
    """Noise that was smoothed along a cortex or through the volume, as its basis sees it.

    A basis is orthonormal over vertices, which are denser in some places than in others: no modes
    are the eigenvectors of these, nor of kernels between single places in its folds.
    """
    return tuple(_on_surface(basis))


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
    for kernel in EVEN.kernels(basis.coordinates[some].astype(np.float32), _THROUGH):
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
    matrix: Array, places: SmoothPlaces, deviation: float, kept: int, persons: int, volumes: int
) -> SmoothNull:
    """The persons without networks that are most like a release.

    Parameters
    ----------
    matrix : array, shape (d, d)
    deviation : float
        Of the noise of privacy in a released number.
    kept : int
        K, directions of a person.
    volumes : int
        T, of a usual person.
    """
    turn = places.turn
    found = _fit_uneven(matrix if turn is None else turn.T @ matrix @ turn, places, (kept, volumes))
    waves = found.waves if turn is None else turn @ found.waves
    strengths = found.strengths
    # A wave that all persons have, or none, does not differ between them.
    part = np.clip(strengths, 0.0, 1.0)
    differs = part * (1.0 - part)
    total = max(kept - float(np.square(part).sum()), 0.0) / persons
    whole = max(float(differs.sum()), np.finfo(np.float64).tiny)
    strays = np.sqrt(differs / whole) * total**0.25
    law = SymmetricNoise(len(matrix), deviation)
    return SmoothNull(waves, strengths, strays, law)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Waves of a covariance, longest first, and how strong a release has them."""

    waves: Array
    strengths: Array
    size: float
    """How much of a release it is: of persons without networks nearly all."""

    @property
    def diagonal(self) -> Array:
        """How strong each place is in it."""
        return np.asarray(np.square(self.waves) @ self.strengths)


def _fit(matrix: Array, covariance: Array, usual: tuple[int, int] | None = None) -> _Fit:
    """Strengths that fall with the waves' length, no larger than the covariance leads to.

    That only with ``usual``, which is K and T: uneven covariances are so many that one would else
    pass for a few networks, whose strengths are larger than noise has.
    """
    values, vectors = eigh(covariance)
    waves = one_sign(vectors[:, ::-1])
    along = np.einsum("ij,ij->j", waves, matrix @ waves)
    strengths = np.asarray(isotonic_regression(along, increasing=False).x)
    if usual is not None:
        strengths = np.minimum(strengths, _expected_strengths(values[::-1], *usual))
    return _Fit(waves, strengths, float(strengths @ (2 * along - strengths)))


def _expected_strengths(values: Array, kept: int, volumes: int) -> Array:
    """How strong each wave is in the ``kept`` leading directions of Gaussian persons."""
    generator, total = np.random.default_rng(0), np.zeros(len(values))
    root = np.sqrt(np.maximum(values, 0.0))[:, None]
    volumes = max(kept, min(volumes, _MOST_VOLUMES))
    for _ in range(_EXPECTED_DRAWS):
        series = root * generator.standard_normal((len(values), volumes))
        own, right = eigh(series.T @ series, subset_by_index=(volumes - kept, volumes - 1))
        sizes = np.maximum(own, _TINY * own[-1])  # fewer waves than directions leave some of none
        total += (np.square(series @ right) / sizes).sum(axis=1) / _EXPECTED_DRAWS
    return np.asarray(isotonic_regression(total, increasing=False).x)


def _fit_uneven(matrix: Array, places: SmoothPlaces, usual: tuple[int, int]) -> _Fit:
    """The best covariance among those that are even, or vary more in some places than in others.

    How much persons vary around each place is raised or lowered until the null is as strong around
    it as the release is.
    """
    covariances = places.covariances(matrix)
    even = [_fit(matrix, each) for each in covariances]
    order = [int(number) for number in np.argsort([-each.size for each in even])[:_CLOSEST]]
    close = [covariances[number] for number in order]
    best, strong = even[order[0]], places.around @ np.diag(matrix)
    last, chosen, varies = best, close[0], np.ones(len(matrix))
    for _ in range(_ROUNDS):
        for _ in range(_STEPS):
            own = np.maximum(places.around @ last.diagonal, np.finfo(np.float64).tiny)
            varies = varies * np.sqrt(np.clip(strong / own, *_CHANGES))
            mean = np.exp(np.mean(np.log(varies)))
            varies = np.clip(varies / mean, 1 / _MOST_UNEVEN, _MOST_UNEVEN)
            last = _fit(matrix, varies[:, None] * chosen * varies, usual)
        tried = [_fit(matrix, varies[:, None] * each * varies, usual) for each in close]
        number = int(np.argmax([each.size for each in tried]))
        last, chosen = tried[number], close[number]
        best = last if last.size > best.size else best
    return best
