"""Participants who share smooth noise and no network: the null model of a network.

Directions of such participants are waves: eigenvectors of a covariance that falls with distance,
and is the same everywhere or differs between places. The null mean is the part of a released
matrix that these waves explain, the longer waves the more strongly. Simulated releases of the null
have this mean, the noise of the release, and the variation between participants. They show how
much of a map chance and smoothness put beyond the mean.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import isotonic_regression

from consortium.algorithms.group_ica.kernels.local_noise import (
    LocalNoise,
    NearPlaces,
    Shrinkage,
)
from consortium.algorithms.group_ica.kernels.smooth_shape import (
    EVEN,
    SmoothShape,
    estimate_shape,
)
from consortium.base.array import Array
from consortium.kernels.component_bootstrap import law_of_mean
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.spatial_ica import one_sign
from consortium.kernels.surface_basis import SurfaceBasis

_LENGTHS = 8.0, 10.0, 12.0, 14.5, 18.0, 22.0, 27.0
KERNELS = *((length, 2) for length in _LENGTHS), (20.0, 1), (60.0, 1)
"""Length ℓ in mm and power p of candidate covariances exp(-(distance/ℓ)^p)."""
_ALONG = 6.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 37.0, 45.0
"""Widths at half height in mm of noise that was smoothed along a cortex."""
_THROUGH = tuple(
    (length, 2) for length in (6.5, 8.0, 10.0, 12.5, 15.0, 18.0, 22.0, 27.0, 33.0, 40.0)
)
"""As `KERNELS`, of noise that was smoothed in the volume: 1.18 times narrower than these."""
_FWHM = 2.3548
_NEAR = 60.0  # mm, width at half height of what counts as near a place: networks are narrower
_CLOSEST = 12
_ROUNDS = 3
_STEPS = 5
_MOST_FALL = 3.0
"""Largest ratio of the strengths of two successive waves of noise. After the waves of a few
networks it is larger."""
_TOLERANCE = 1.25
"""Largest ratio of a strength of noise to the expected one."""
_CALIBRATED = 4
"""Waves from K to this multiple of K show how much of a release is noise."""
_UNEXPLAINED = 0.15
"""Fraction of a release's squares that its own null may leave unexplained. Uneven noise without
networks leaves 0.02 or less."""
_CLEARLY = 3.0  # standard deviations of the noise's squares
_EXPECTED_DRAWS = 8
_MOST_VOLUMES = 200
_TINY = 1e-12
_MOST_VERTICES = 6000


@dataclass(frozen=True, eq=False)
class SmoothPlaces:
    """Places of the dimensions of a smooth basis, for the null model."""

    coordinates: Array
    """Shape (d, 3). In mm."""
    turn: Array | None = None
    """Shape (d, d). Orthogonal: its columns are, in the basis, maps around one place each (default:
    the basis's own)."""
    own: Callable[[], tuple[Array, ...]] | None = None
    """Returns covariances instead of those of `KERNELS` between the coordinates."""

    def covariances(self, shape: SmoothShape) -> tuple[Array, ...]:
        """Return covariances of participants who vary alike everywhere, each d x d.

        They are isotropic, or have the anisotropy and the left-right symmetry of ``shape``.
        """
        if self.own is not None:
            return self.own()
        return tuple(
            covariance
            for each in (EVEN, shape)
            for covariance in each.kernels(self.coordinates, KERNELS)
        )

    def candidates(self, shape: SmoothShape) -> tuple[Callable[[LocalNoise], Array], ...]:
        """Return functions that make each of `covariances` uneven."""
        if self.own is not None:
            return tuple(partial(_stronger, covariance=each) for each in self.own())
        return tuple(
            partial(LocalNoise.covariance, coordinates=self.coordinates, shape=each, kernel=kernel)
            for each in (EVEN, shape)
            for kernel in KERNELS
        )

    def shape(self, matrix: Array) -> SmoothShape:
        """Return the anisotropy and symmetry of a matrix, d x d, of maps around the places.

        On a cortex neither is estimated.
        """
        return EVEN if self.own is not None else estimate_shape(matrix, self.coordinates)

    @cached_property
    def neighbours(self) -> NearPlaces:
        """Places near each place, and near its mirror image."""
        return NearPlaces.of(self.coordinates)

    @cached_property
    def around(self) -> Array:
        """Weights of a mean over the places near each, d x d."""
        weights = next(EVEN.kernels(self.coordinates, ((_NEAR * np.sqrt(2.0) / _FWHM, 2),)))
        found: Array = weights / weights.sum(axis=1, keepdims=True)
        return found


def _stronger(noise: LocalNoise, covariance: Array) -> Array:
    return noise.stronger(covariance)


@lru_cache(maxsize=1)
def surface_covariances(basis: SurfaceBasis) -> tuple[Array, ...]:
    """Return covariances of noise smoothed along a cortex or through the volume, in its basis.

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
    """Means of projectors of participants without networks."""

    waves: Array
    """Shape (d, d). Orthonormal."""
    strengths: Array
    """Shape (d,). Strength of each wave, descending."""
    persons: Array
    """Shape (d,). Standard error of the mean over participants along each wave."""
    law: SymmetricNoise
    """Of privacy."""
    complete: bool = True
    """Whether it may be all that a release contains. An uneven null that is not has fitted a part
    of the release's networks."""

    @cached_property
    def mean(self) -> Array:
        """Expectation over participants, d x d."""
        return np.asarray((self.waves * self.strengths) @ self.waves.T)

    @property
    def bulk(self) -> float:
        """Median eigenvalue."""
        return float(np.median(self.strengths))

    def draw(self, generator: np.random.Generator) -> Array:
        """Draw a release of other participants, d x d."""
        half = generator.standard_normal(self.mean.shape)
        own = (half + half.T) * np.outer(self.persons, self.persons) / np.sqrt(2.0)
        noise = self.law.draw(generator)
        return np.asarray(self.mean + noise + self.waves @ own @ self.waves.T)


def strengths_of(matrix: Array, weights: Array) -> Array:
    """Return wᵀ A w / wᵀ w of each column w of ``weights`` (d x R); 0 for one that is zero."""
    sizes = np.einsum("ij,ij->j", weights, matrix @ weights)
    squares = np.sum(np.square(weights), axis=0)
    return np.asarray(np.divide(sizes, squares, out=np.zeros_like(sizes), where=squares > 0))


def _explains(matrix: Array, mean: Array, deviation: float) -> bool:
    """Return whether a mean leaves little of a noisy matrix (both d x d) unexplained."""
    entries = len(matrix) * (len(matrix) + 1) / 2.0
    noise = entries * deviation**2
    chance = _CLEARLY * np.sqrt(2.0 * entries) * deviation**2
    left = float(np.square(matrix - mean).sum()) - noise
    whole = float(np.square(matrix).sum()) - noise
    return bool(left <= max(_UNEXPLAINED * whole, chance))


def _variation(strengths: Array, kept: int, persons: int) -> Array:
    """Return the standard error of the mean over participants along each wave, shape (d,)."""
    # A wave that all participants have, or none, does not differ between them.
    part = np.clip(strengths, 0.0, 1.0)
    differs = part * (1.0 - part)
    total = max(kept - float(np.square(part).sum()), 0.0) / persons
    whole = max(float(differs.sum()), np.finfo(np.float64).tiny)
    return np.asarray(np.sqrt(differs / whole) * total**0.25)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Waves of a covariance, longest first, and how strong a release has them."""

    waves: Array
    """Shape (d, d). Of either sign."""
    strengths: Array
    size: float
    """Part of the release's squares that it explains; nearly all if there are no networks."""
    gap: bool = False
    """Whether its expected strengths fall as those of a few networks do."""

    @property
    def mean(self) -> Array:
        """Mean of projectors, d x d."""
        return np.asarray((self.waves * self.strengths) @ self.waves.T)


def _fit(matrix: Array, covariance: Array, usual: tuple[int, int] | None = None) -> _Fit:
    """Fit strengths that fall with the waves' length, for uneven noise none above the expected.

    Parameters
    ----------
    matrix, covariance : array, shape (d, d)
    usual : (int, int), optional
        K and T, for uneven noise. Uneven covariances are so many that one of them has the waves of
        a few networks, whose strengths are larger than those of noise, and fall by a gap to the
        next wave.
    """
    values, vectors = eigh(covariance)
    waves = vectors[:, ::-1]
    along = np.einsum("ij,ij->j", waves, matrix @ waves)
    strengths = np.asarray(isotonic_regression(along, increasing=False).x)
    if usual is None:
        return _Fit(waves, strengths, float(strengths @ (2 * along - strengths)))
    kept = usual[0]
    expected = _expected_strengths(values[::-1], *usual)
    strengths = np.minimum(strengths, _part_of_noise(along, expected, kept) * expected)
    leading = expected[: kept + 1]
    gap = bool(np.any(leading[:-1] > _MOST_FALL * leading[1:]))
    return _Fit(waves, strengths, float(strengths @ (2 * along - strengths)), gap)


def _part_of_noise(along: Array, expected: Array, kept: int) -> float:
    """Return the fraction of expected strengths of a release in waves beyond the K leading ones.

    Networks take directions of the participants away from noise, and have little of these waves.
    """
    beyond = slice(kept, _CALIBRATED * kept)
    whole = float(np.square(expected[beyond]).sum())
    part = float(along[beyond] @ expected[beyond]) / whole if whole > _TINY else 1.0
    return _TOLERANCE * min(max(part, 0.0), 1.0)


def _expected_strengths(values: Array, kept: int, volumes: int) -> Array:
    """Return the strength of each wave in the ``kept`` leading directions of Gaussian series."""
    total = np.zeros(len(values))
    root = np.sqrt(np.maximum(values, 0.0))[:, None]
    volumes = max(kept, min(volumes, _MOST_VOLUMES))
    for steps in _gaussian_series(len(values), volumes):
        series = root * steps
        own, right = eigh(series.T @ series, subset_by_index=(volumes - kept, volumes - 1))
        sizes = np.maximum(own, _TINY * own[-1])  # fewer waves than directions leave some of none
        total += (np.square(series @ right) / sizes).sum(axis=1) / _EXPECTED_DRAWS
    return np.asarray(isotonic_regression(total, increasing=False).x)


@lru_cache(maxsize=1)  # the same for all covariances of a release
def _gaussian_series(size: int, volumes: int) -> Array:
    """Return the public draws of `_expected_strengths`, draws x d x T."""
    return np.random.default_rng(0).standard_normal((_EXPECTED_DRAWS, size, volumes))


@dataclass(frozen=True, eq=False)
class SmoothRelease:
    """A release whose maps are compared with smooth noise."""

    matrix: Array
    """Shape (d, d)."""
    places: SmoothPlaces
    deviation: float
    """Of the noise of privacy in a released number."""
    kept: int
    """K, directions of a participant."""
    persons: int
    volumes: int
    """T, of a usual participant."""

    @cached_property
    def even(self) -> SmoothNull:
        """The even null that is most like the release."""
        return self._null(self._closest[0][1], self.kept)

    @cached_property
    def local(self) -> SmoothNull | None:
        """The local null that is most like the whole release, as `uneven` returns it."""
        return self.uneven(np.zeros((len(self.matrix), 0)))

    def uneven(self, networks: Array) -> SmoothNull | None:
        """Return the local null that is most like the release without maps of networks.

        None if its strengths fall as those of a few networks do.

        Parameters
        ----------
        networks : array, shape (d, S)
        """
        turned = networks if self.places.turn is None else self.places.turn.T @ networks
        basis = np.linalg.qr(turned)[0]
        matrix = _without(self._local, basis)
        # Networks take directions of the participants, each as many as it has strength.
        kept = max(round(self.kept - float(np.trace(self._local - matrix))), 1)
        fit = self._local_fit(matrix, basis, (kept, self.volumes))
        if fit.gap:
            return None
        null = self._null(fit, kept)
        return replace(null, complete=_explains(matrix, fit.mean, self._noise))

    @cached_property
    def _local(self) -> Array:
        """The matrix of maps around one place each."""
        turn = self.places.turn
        return self.matrix if turn is None else np.asarray(turn.T @ self.matrix @ turn)

    @cached_property
    def _noise(self) -> float:
        """Standard deviation of an entry from privacy noise and from participants."""
        return law_of_mean(self.matrix, self.deviation, self.kept, self.persons).deviation

    @cached_property
    def _shape(self) -> SmoothShape:
        return self.places.shape(self._local)

    @cached_property
    def _closest(self) -> tuple[tuple[int, _Fit], ...]:
        """The even covariances that explain most, by number, and their fits, the best first."""
        even = [_fit(self._local, each) for each in self.places.covariances(self._shape)]
        order = np.argsort([-each.size for each in even])[:_CLOSEST]
        return tuple((int(number), even[number]) for number in order)

    def _null(self, fit: _Fit, kept: int) -> SmoothNull:
        turn = self.places.turn
        waves = one_sign(fit.waves)
        return SmoothNull(
            waves=waves if turn is None else turn @ waves,
            strengths=fit.strengths,
            persons=_variation(fit.strengths, kept, self.persons),
            law=SymmetricNoise(len(self.matrix), self.deviation),
        )

    def _local_fit(self, matrix: Array, basis: Array, usual: tuple[int, int]) -> _Fit:
        """Return the best fit of noise that differs between places.

        Local strength, width and symmetry are adjusted until the null has those of the matrix.

        Parameters
        ----------
        matrix : array, shape (d, d)
            The release without maps of networks.
        basis : array, shape (d, S)
            Orthonormal, of these maps.
        """
        candidates = self.places.candidates(self._shape)
        neighbours = self.places.neighbours
        close = [candidates[number] for number, _ in self._closest]
        chosen = close[0]
        noise = LocalNoise.even(self._shape.mirrored, neighbours)
        released = neighbours.moments(matrix)
        shrunk = Shrinkage.of(released, self.places.around, self._noise)
        target = shrunk(released)

        def fit(covariance: Callable[[LocalNoise], Array]) -> _Fit:
            return _fit(matrix, _without(covariance(noise), basis), usual)

        mean = _without(self._closest[0][1].mean, basis)
        for _ in range(_ROUNDS):
            for step in range(_STEPS):
                if step:
                    mean = fit(chosen).mean
                noise = noise.adjusted(target, shrunk(neighbours.moments(mean)))
            tried = [fit(each) for each in close]
            number = int(np.argmax([each.size for each in tried]))
            mean = tried[number].mean
            chosen = close[number]
        return tried[number]


def orthogonal_to(maps: Array) -> Array:
    """Return the projection orthogonal to maps of networks (d x S), d x d."""
    basis = np.linalg.qr(maps)[0]
    return np.asarray(np.eye(len(maps)) - basis @ basis.T)


def _without(matrix: Array, basis: Array) -> Array:
    """Return the part of a symmetric matrix (d x d) orthogonal to an orthonormal basis (d x S)."""
    if not basis.shape[1]:
        return matrix
    half = matrix - basis @ (basis.T @ matrix)
    return np.asarray(half - (half @ basis) @ basis.T)
