"""Networks out of a noisy mean of projectors, and how far each of them may be trusted.

Directions are taken apart, by weighted varimax or by spatial ICA. Then all of it is done again many
times for a mean of projectors that has these directions as its truth, with fresh noise of the same
law: how well a component is found again is how well it was found at first, and how much each voxel
differs between the replays is its standard error (a parametric bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment

from consortium.base.array import Array
from consortium.kernels.moments import packed_size
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.separations import Paint, SeparationMethod
from consortium.kernels.spatial_ica import non_gaussianity, one_sign

_SKEW = 1.5  # the law's 1, and what its median lies below its mean
_WEAKEST = 0.05


@dataclass(frozen=True, eq=False)
class NoisyDirections:
    """Leading directions of a noisy symmetric matrix."""

    vectors: Array
    """Shape (d, R). Orthonormal."""
    strengths: Array
    """Shape (R,). Their eigenvalues over the bulk, without what noise and the choice of the largest
    add."""
    excess: Array
    """Shape (R,). Their eigenvalues over the bulk, as released, and not below zero."""
    seen: int
    """Eigenvalues beyond the limit."""
    bulk: float
    """Median eigenvalue: what anybody's directions have in common by chance."""
    eigenvalues: Array
    """Shape (d,). All, descending."""
    rest: Array
    """Shape (d, d - R). The other directions, each as long as the root of its eigenvalue over the
    least: what persons' own structure looks like."""
    limit: float
    """An eigenvalue beyond it stands out."""
    law: SymmetricNoise

    @property
    def count(self) -> int:
        """R."""
        return int(self.vectors.shape[1])

    def again(self, generator: np.random.Generator) -> tuple[Array, Array]:
        """Vectors and excess of a matrix that has these directions as its truth, in fresh noise."""
        truth = (self.vectors * self.strengths) @ self.vectors.T
        return strongest_directions(truth + self.law.draw(generator), self.count)

    def of_chance(self, generator: np.random.Generator) -> Array:
        """R directions without any network: Gaussian, as smooth as persons' own structure."""
        weights = generator.standard_normal((self.rest.shape[1], self.count))
        return np.linalg.qr(self.rest @ weights)[0]


def law_of_mean(matrix: Array, deviation: float, kept: int, persons: int) -> SymmetricNoise:
    """Of a released number, around what more and more persons would lead to.

    Persons differ: a projector lies K − ‖M‖² from the mean M in squared norm, spread over all
    numbers of the release.

    Parameters
    ----------
    matrix : array, shape (d, d)
        The released mean of projectors.
    deviation : float
        Of the noise of privacy in a released number.
    kept : int
        K, directions of a person.
    """
    entries = packed_size(len(matrix))
    square = float(np.sum(matrix**2)) - deviation**2 * entries
    between = max(kept - max(square, 0.0), 0.0) / entries
    return SymmetricNoise(len(matrix), float(np.hypot(deviation, np.sqrt(between / persons))))


def strongest_directions(matrix: Array, count: int, bulk: float = 0.0) -> tuple[Array, Array]:
    """Vectors (d x R) of the largest eigenvalues, and these over the bulk, not below zero."""
    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(size - count, size - 1))
    return one_sign(vectors[:, ::-1]), np.maximum(values[::-1] - bulk, 0.0)


def find_directions(
    matrix: Array, law: SymmetricNoise, most: int, skew: float = 0.0, uncut: int = 0
) -> NoisyDirections:
    """Directions of a d x d matrix that stand out of bulk and noise, at most ``most``.

    The bulk of persons without anything in common is wider than noise alone; its lower half, where
    no network is, tells how wide.

    Parameters
    ----------
    matrix : array, shape (d, d)
    law : SymmetricNoise
        Of privacy and of the choice of persons.
    skew : float
        γ, dimensions over all persons' directions, d/(nK): the bulk of so few reaches further up
        than down, to (1 + √γ)² of its mean (Marchenko and Pastur).
    uncut : int
        So many directions are given, whether they stand out or not, if any does.
    """
    size = len(matrix)
    values, vectors = eigh(matrix)
    values, vectors = values[::-1], one_sign(vectors[:, ::-1])
    bulk = float(np.median(values))
    width = max(law.edge, bulk - float(values[-1]))
    # The largest eigenvalue of noise lies about size^(-2/3) around the edge (Tracy and Widom).
    chance = size ** (-2.0 / 3.0)
    limit = bulk * (1.0 + _SKEW * skew) + width * (1.0 + chance)
    seen = int(np.count_nonzero(values > limit))
    count = min(uncut, size) if uncut and seen else min(seen, most)
    excess = np.maximum(values[:count] - bulk, 0.0)
    # Near the edge those stand out that chance has lifted, mixed with others that don't; without
    # what it gave they are weaker.
    strengths = law.freed(values[:count] - bulk - chance * law.edge)
    if law.edge:  # within the edge nothing is told of a direction but that it is no stronger
        within = law.edge / 2.0 * np.clip(excess / law.edge, _WEAKEST, 1.0)
        strengths = np.where(values[:count] > limit, strengths, within)
    rest = vectors[:, count:] * np.sqrt(np.maximum(values[count:] - values[-1], 0.0))
    vectors = vectors[:, :count]
    return NoisyDirections(vectors, strengths, excess, seen, bulk, values, rest, limit, law)


@dataclass(frozen=True, eq=False)
class Networks:
    """Maps of the directions, the surest first."""

    weights: Array
    """Shape (d, R). Over the basis; painted and centred a map has variance 1 over the voxels. The
    larger tail of a map is positive."""
    correlations: Array
    """Shape (n, R). With what was found again in each of n replays."""
    replayed: Array
    """Shape (n, d, R). Weights of these."""
    contrast: Array
    """Shape (R,). How far from Gaussian each map is."""

    @property
    def replay_correlations(self) -> Array:
        """Mean correlation of each map with its replays, shape (R,)."""
        return np.asarray(self.correlations.mean(axis=0))

    def first(self, count: int) -> Networks:
        """The surest of them."""
        return Networks(
            self.weights[:, :count],
            self.correlations[:, :count],
            self.replayed[:, :, :count],
            self.contrast[:count],
        )

    def errors(self, paint: Paint, centre: Paint) -> Array:
        """Standard error of every voxel of the painted maps, shape (V, R).

        Parameters
        ----------
        paint : callable
            To the voxels whose errors are wanted.
        centre : callable
            To the voxels over which maps are centred.
        """
        total = squares = np.zeros(1)
        for weights in self.replayed:
            values = paint(weights)
            values = values - (values if paint is centre else centre(weights)).mean(axis=0)
            total, squares = total + values, squares + values**2
        count = len(self.replayed)
        return np.sqrt(np.maximum(squares - total**2 / count, 0.0) / (count - 1))


def find_networks(
    directions: NoisyDirections, way: SeparationMethod, replays: int, generator: np.random.Generator
) -> Networks:
    """Take directions apart, and do it again in fresh noise.

    Parameters
    ----------
    directions : NoisyDirections
        One or more.
    generator : numpy.random.Generator
        Of starts and of noise.
    """
    maps, weights = way.first(directions.vectors, directions.excess, generator)
    size = maps.shape[1]
    if not size:
        none = np.zeros((0, *weights.shape))
        return Networks(weights, none[:, 0], none, np.zeros(0))
    signs = np.where(np.mean(maps**3, axis=0) < 0, -1.0, 1.0)
    maps, weights = maps * signs, weights * signs
    correlations, replayed = [], []
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
