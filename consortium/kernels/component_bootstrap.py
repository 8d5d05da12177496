"""Networks from a noisy mean of projectors, with reliabilities and standard errors.

Directions are separated into maps by weighted varimax or by spatial ICA. A parametric bootstrap
then repeats this many times for a mean of projectors that has these directions as its truth, with
new noise of the same distribution. The correlation of a component with its replays estimates its
correlation with the truth. The standard deviation of each voxel over the replays is its standard
error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from consortium.base.array import Array
from consortium.kernels.moments import packed_size
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.separations import Paint, SeparationMethod
from consortium.kernels.spatial_ica import non_gaussianity, one_sign

_SKEW = 1.5  # 1 by the law of Marchenko and Pastur, plus its mean less its median
_WEAKEST = 0.05


@dataclass(frozen=True, eq=False)
class NoisyDirections:
    """Leading directions of a noisy symmetric matrix."""

    vectors: Array
    """Orthonormal, shape (d, R)."""
    strengths: Array
    """Eigenvalues minus the bulk, corrected for noise and for the selection of the largest. Shape
    (R,)."""
    excess: Array
    """Eigenvalues minus the bulk, as released, at least 0. Shape (R,)."""
    seen: int
    """Number of eigenvalues beyond the limit."""
    bulk: float
    """Median eigenvalue, which unrelated directions have in common by chance."""
    eigenvalues: Array
    """All eigenvalues, descending, shape (d,)."""
    rest: Array
    """The other directions, each scaled by the root of its eigenvalue minus the smallest, which
    describes participants' individual structure. Shape (d, d - R)."""
    limit: float
    """Eigenvalues above it exceed the noise."""
    law: SymmetricNoise
    whole: tuple[Array, Callable[[np.random.Generator], Array]] | None = None
    """The matrix, and a function that draws its errors, if they are not those of ``law``."""

    @property
    def count(self) -> int:
        """R."""
        return int(self.vectors.shape[1])

    def again(self, generator: np.random.Generator) -> tuple[Array, Array]:
        """Return vectors and excess of a matrix with these directions as truth and new noise.

        If entries have unequal errors, the truth is the whole matrix.
        """
        if self.whole is not None:
            matrix, draw_errors = self.whole
            return strongest_directions(matrix + draw_errors(generator), self.count, self.bulk)
        truth = (self.vectors * self.strengths) @ self.vectors.T
        return strongest_directions(truth + self.law.draw(generator), self.count)

    def of_chance(self, generator: np.random.Generator) -> Array:
        """Return R Gaussian directions without networks, as smooth as participants' structure."""
        weights = generator.standard_normal((self.rest.shape[1], self.count))
        return np.linalg.qr(self.rest @ weights)[0]


def law_of_mean(matrix: Array, deviation: float, kept: int, persons: int) -> SymmetricNoise:
    """Return the distribution of a released number around its expectation over participants.

    The squared distance of a participant's projector from the mean M is K − ‖M‖², spread over all
    numbers of the release.

    Parameters
    ----------
    matrix : array, shape (d, d)
        The released mean of projectors.
    deviation : float
        Standard deviation of the privacy noise in a released number.
    kept : int
        K, number of a participant's directions.
    """
    entries = packed_size(len(matrix))
    square = float(np.sum(matrix**2)) - deviation**2 * entries
    between = max(kept - max(square, 0.0), 0.0) / entries
    return SymmetricNoise(len(matrix), float(np.hypot(deviation, np.sqrt(between / persons))))


def strongest_directions(matrix: Array, count: int, bulk: float = 0.0) -> tuple[Array, Array]:
    """Return the vectors (d x R) of the largest eigenvalues, and these minus the bulk (or 0)."""
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(size - count, size - 1))
    return one_sign(vectors[:, ::-1]), np.maximum(values[::-1] - bulk, 0.0)


def find_directions(
    matrix: Array, law: SymmetricNoise, most: int, skew: float = 0.0, uncut: int = 0
) -> NoisyDirections:
    """Return the directions of a d x d matrix that exceed bulk and noise, at most ``most``.

    The bulk of participants without common networks is wider than noise. Its lower half, which has
    no network, gives its width.

    Parameters
    ----------
    matrix : array, shape (d, d)
    law : SymmetricNoise
        Distribution of privacy noise and sampling of participants.
    skew : float
        γ = d/(nK), dimensions over all participants' directions. The bulk of few directions is
        skewed, up to (1 + √γ)² of its mean (Marchenko and Pastur).
    uncut : int
        Number of directions to return if any exceeds the noise; 0 for those that do.
    """
    size = len(matrix)
    values, vectors = eigh(matrix)
    values = values[::-1]
    vectors = one_sign(vectors[:, ::-1])
    bulk = float(np.median(values))
    width = max(law.edge, bulk - float(values[-1]))
    # The largest eigenvalue of noise is about size^(-2/3) around the edge (Tracy and Widom).
    chance = size ** (-2.0 / 3.0)
    limit = bulk * (1.0 + _SKEW * skew) + width * (1.0 + chance)
    seen = int(np.count_nonzero(values > limit))
    count = min(uncut, size) if uncut and seen else min(seen, most)
    excess = np.maximum(values[:count] - bulk, 0.0)
    # Near the edge, the largest eigenvalues are those raised by chance, which is subtracted.
    strengths = law.freed(values[:count] - bulk - chance * law.edge)
    if law.edge:  # below the edge, a direction has only an upper bound of its strength
        within = law.edge / 2.0 * np.clip(excess / law.edge, _WEAKEST, 1.0)
        strengths = np.where(values[:count] > limit, strengths, within)
    rest = vectors[:, count:] * np.sqrt(np.maximum(values[count:] - values[-1], 0.0))
    vectors = vectors[:, :count]
    return NoisyDirections(
        vectors=vectors,
        strengths=strengths,
        excess=excess,
        seen=seen,
        bulk=bulk,
        eigenvalues=values,
        rest=rest,
        limit=limit,
        law=law,
    )


def directions_of_mean(
    matrix: Array, deviation: float, kept: int, persons: int, most: int, uncut: int = 0
) -> NoisyDirections:
    """Return the directions of a released mean of projectors that exceed noise and sampling.

    Parameters
    ----------
    matrix : array, shape (d, d)
        The released mean.
    deviation : float
        Standard deviation of the privacy noise in a released number.
    kept : int
        K, number of a participant's directions.
    persons : int
        n.
    most, uncut : int
        As of `find_directions`.
    """
    law = law_of_mean(matrix, deviation, kept, persons)
    return find_directions(matrix, law, most, len(matrix) / (kept * persons), uncut)


@dataclass(frozen=True, eq=False)
class Networks:
    """Maps of the directions, the most reliable first."""

    weights: Array
    """Weights over the basis, shape (d, R). A painted and centred map has variance 1 over the
    voxels. The larger tail of a map is positive."""
    correlations: Array
    """Correlation with the matching map of each of n replays, shape (n, R)."""
    replayed: Array
    """Weights of these, shape (n, d, R)."""
    contrast: Array
    """Deviation of each map from a Gaussian, shape (R,)."""

    @property
    def replay_correlations(self) -> Array:
        """Mean correlation of each map with its replays, shape (R,)."""
        return np.asarray(self.correlations.mean(axis=0))

    def first(self, count: int) -> Networks:
        """Return the most reliable of them."""
        return Networks(
            self.weights[:, :count],
            self.correlations[:, :count],
            self.replayed[:, :, :count],
            self.contrast[:count],
        )

    def errors(self, paint: Paint, centre: Paint) -> Array:
        """Return the standard error of every voxel of the painted maps, shape (V, R).

        Parameters
        ----------
        paint : callable
            Function to values of the voxels whose errors are returned.
        centre : callable
            Function to values of the voxels over which maps are centred.
        """
        total = squares = np.zeros(1)
        for weights in self.replayed:
            values = paint(weights)
            values = values - (values if paint is centre else centre(weights)).mean(axis=0)
            total = total + values
            squares = squares + values**2
        count = len(self.replayed)
        return np.sqrt(np.maximum(squares - total**2 / count, 0.0) / (count - 1))


def find_networks(
    directions: NoisyDirections, way: SeparationMethod, replays: int, generator: np.random.Generator
) -> Networks:
    """Separate directions into maps, and repeat it with new noise.

    Parameters
    ----------
    directions : NoisyDirections
        One or more.
    generator : numpy.random.Generator
        Random generator of starts and noise.
    """
    maps, weights = way.first(directions.vectors, directions.excess, generator)
    size = maps.shape[1]
    if not size:
        none = np.zeros((0, *weights.shape))
        return Networks(weights, none[:, 0], none, np.zeros(0))
    signs = np.where(np.mean(maps**3, axis=0) < 0, -1.0, 1.0)
    maps = maps * signs
    weights = weights * signs
    correlations = []
    replayed = []
    for _ in range(replays):
        other, again = way.again(*directions.again(generator), size, generator)
        cosines = maps.T @ other / len(maps)
        _, order = linear_sum_assignment(-np.abs(cosines))
        matched = np.take_along_axis(cosines, order[:, None], axis=1)[:, 0]
        correlations.append(np.abs(matched))
        replayed.append(again[:, order] * np.where(matched < 0, -1.0, 1.0))
    order = np.argsort(-np.mean(correlations, axis=0), kind="stable")
    return Networks(
        weights[:, order],
        np.array(correlations)[:, order],
        np.array(replayed)[:, :, order],
        non_gaussianity(maps)[order],
    )
