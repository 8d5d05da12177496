"""An open cohort's exact mean projector and a private release, combined, and the maps of each.

The open cohort gives f, the mean projector of n_o participants, without noise. The hospitals give
the release R, the mean of n participants with noise τ. The noise has the same distribution in every
orthonormal basis, so R can be expressed in the eigenvectors of f, where the entry (i, j) of one
participant varies with the variance v_ij. Both estimate the hospitals' mean. The errors are

    E(f)_ij = v_ij (1/n_o + b_ij)    and    E(R)_ij = t_ij² + v_ij/n,

where b_ij v_ij is the variance between the two populations and t_ij² that of the noise. Three b are
estimated. The first is for the entries among the K leading eigenvectors of f, which differ if only
one population has a network. The second is for the entries between these and the rest, which differ
if networks have other places. The third is for the rest. The combined estimate f + A ∘ (R − f)
weights each entry by A_ij = E(f)_ij / (E(f)_ij + E(R)_ij). An eigenvector of R − f that exceeds all
chance is a network that only one of the two populations has: its part is taken from the release
completely.

At a hospital its own mean f_s of n_s participants is a third source, with the error

    E(f_s)_ij = v_ij (c/n_s + b'_ij),

where b' is estimated like b, from f_s and the combination of the other two, and c is the larger
error of the leading directions of few participants.

The combined estimate can show a network that the hospitals do not have. So each map of the open
cohort is confirmed by R alone: wᵀRw is one number with the noise of one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import ndtr, ndtri

from consortium.algorithms.group_ica.kernels.smooth_null import SmoothNull, strengths_of
from consortium.base.array import Array
from consortium.kernels.home_posterior import BETWEEN
from consortium.kernels.noise_law import SymmetricNoise

UNLIKE = 0.08
"""Value of b, between leading eigenvectors and the rest, from which on nothing is taken from the
open cohort. Cohorts with networks in the same places have 0.00 to 0.03, and mirrored brains 0.19
(`python -m benchmarks.open_cohort FOLDER`)."""
_PARTS = (np.arange(10_000) + 0.5) / 10_000
_VALUES = BETWEEN * (1.0 / np.sqrt(1.0 - _PARTS) - 1.0)
"""Equally likely values of b before a study. Their mean is that of real hospitals and their median
0.010: most cohorts are alike, and few very different."""
_ROUNDS = 3
_DRAWS = 20
"""A direction exceeds the largest of so many draws by chance in one of 21 runs."""
_TINY = 1e-9
_FALSE = 0.05
"""Probability that any map is confirmed by noise."""
_SURELY = 1.96
"""Standard errors from which on a network is named new."""
LEAST_PART = 1.0 / 3.0
"""Least strength of a confirmed map in the release, as a fraction of that in the open cohort."""


@dataclass(frozen=True, eq=False)
class OpenMean:
    """Mean projector of an open cohort, which has no noise."""

    matrix: Array
    """F, shape (d, d)."""
    vectors: Array
    """Its eigenvectors, the strongest first. Shape (d, d)."""
    variances: Array
    """Variance of one participant's entries between these. Shape (d, d)."""
    directions: Array
    """Of each participant, shape (n, d, K)."""

    @classmethod
    def of(cls, directions: Array) -> OpenMean:
        """Compute the mean and the variances over participants."""
        persons, size, _ = directions.shape
        flat = directions.transpose(1, 0, 2).reshape(size, -1)
        matrix = flat @ flat.T / persons
        vectors = eigh(matrix)[1][:, ::-1]
        squares = np.zeros((size, size))
        for own in directions:
            turned = vectors.T @ own
            squares += np.square(turned @ turned.T)
        mean = vectors.T @ matrix @ vectors
        variances = (squares / persons - np.square(mean)) * persons / (persons - 1)
        return cls(matrix, vectors, np.maximum(variances, _TINY), directions)

    @property
    def persons(self) -> int:
        """Number of participants."""
        return len(self.directions)

    @property
    def kept(self) -> int:
        """Number of directions of a participant."""
        return int(self.directions.shape[2])

    def spread_of(self, weights: Array) -> Array:
        """Return the variance over participants of each map's strength, shape (R,)."""
        unit = weights / np.maximum(np.linalg.norm(weights, axis=0), _TINY)
        own = np.square(np.einsum("ndk,dr->nkr", self.directions, unit)).sum(axis=1)
        return np.asarray(own.var(axis=0, ddof=1))


@dataclass(frozen=True, eq=False)
class Combined:
    """The hospitals' mean projector by both sources."""

    matrix: Array
    """Shape (d, d)."""
    release_weight: float
    """Mean weight of the release in the entries that rotate the leading directions."""
    weights: Array
    """Weight of the release in each entry between eigenvectors of the open cohort, shape (d, d)."""
    error: Array
    """Expected squared error of these entries."""
    stated: Array
    """The same for the reported precision, which allows for populations that differ more."""
    persons: float
    """Number of participants whose mean has the same sampling error."""
    deviation: float
    """Standard deviation of a packed entry in excess of that sampling error."""
    between: float
    """Estimate of b between leading eigenvectors and the rest."""
    apart: Array
    """Directions that only one of both has, shape (d, k)."""
    chance: float
    """Largest absolute eigenvalue of R − f that noise and sampling explain."""
    own_weight: float = 0.0
    """Mean weight of a hospital's own mean, in the same entries as the release's."""


def combine(
    cohort: OpenMean, release: Array, deviation: float, persons: int, generator: np.random.Generator
) -> Combined:
    """Combine an open cohort with a release.

    Parameters
    ----------
    release : array, shape (d, d)
        R.
    deviation : float
        Standard deviation of the privacy noise in a released number, τ.
    persons : int
        Number of participants of all hospitals, n.
    generator : numpy.random.Generator
        Random generator for draws of noise.
    """
    variances = cohort.variances
    kept = cohort.kept
    sampling = 1.0 / cohort.persons + 1.0 / persons
    apart = cohort.vectors.T @ (release - cohort.matrix) @ cohort.vectors
    noise = _noise_variances(len(release), deviation)
    between, errors = _between_blocks(apart, noise, variances, sampling, kept)
    of_open = variances * (1.0 / cohort.persons + between)
    of_release = noise + variances / persons
    weights = of_open / (of_open + of_release)
    spread = np.sqrt(variances * (sampling + between))
    taken, only, chance = _take_whole(weights * apart, apart, spread, deviation, generator)
    leading = (slice(None, kept), slice(kept, None))
    # The reported precision allows for populations that differ more than the estimate says, and for
    # the larger errors of the leading directions of few participants.
    few = (1.0 + 0.3 * np.sqrt(len(release) / kept / cohort.persons)) ** 2
    stated = variances * (few / cohort.persons + np.maximum(between + errors, BETWEEN))
    stated = np.square(1.0 - weights) * stated + np.square(weights) * of_release
    left = float(stated[leading].mean())
    weight = float(weights[leading].mean())
    alike = 1.0 / ((1.0 - weight) ** 2 / cohort.persons + weight**2 / persons)
    beyond = max(left - float(variances.mean()) / alike, 0.0)
    return Combined(
        matrix=cohort.matrix + cohort.vectors @ taken @ cohort.vectors.T,
        release_weight=weight,
        weights=weights,
        error=of_open * of_release / (of_open + of_release),
        stated=stated,
        persons=alike,
        deviation=float(np.sqrt(2.0 * beyond)),
        between=float(between[0, -1]),
        apart=cohort.vectors @ only,
        chance=chance,
    )


@dataclass(frozen=True, eq=False)
class OwnMean:
    """A hospital's own mean projector."""

    matrix: Array
    """f_s, shape (d, d)."""
    persons: int
    """n_s."""
    others: int
    """Number of participants of the release without this hospital."""


def add_own(
    both: Combined, cohort: OpenMean, own: OwnMean, *, own_patients: bool = False
) -> Combined:
    """Add a hospital's own mean to the combination of an open cohort and of the others' release.

    Parameters
    ----------
    both : Combined
        Combination that contains no participant of the hospital.
    own_patients : bool
        Whether the truth is the mean of the hospital's own population, instead of that of all
        hospitals. Then a difference between the two is an error of ``both``.
    """
    variances = cohort.variances
    kept = cohort.kept
    size = len(variances)
    apart = cohort.vectors.T @ (own.matrix - both.matrix) @ cohort.vectors
    between, errors = _between_blocks(apart, both.error, variances, 1.0 / own.persons, kept)
    allowed = np.maximum(between + errors, BETWEEN)
    sampling = variances * (1.0 + 0.5 * np.sqrt(size / kept / own.persons)) ** 2 / own.persons
    # The difference between both populations is an error of the one that is not the truth.
    own_differs, others_differ = (0.0, 1.0) if own_patients else (1.0, 0.0)
    of_both = both.error + others_differ * variances * between
    of_own = sampling + own_differs * variances * between
    share = of_both / (of_both + of_own)
    stated = np.square(1.0 - share) * (both.stated + others_differ * variances * allowed)
    stated += np.square(share) * (sampling + own_differs * variances * allowed)
    leading = (slice(None, kept), slice(kept, None))
    of_release = (1.0 - share) * both.weights
    weight = float(of_release[leading].mean())
    own_weight = float(share[leading].mean())
    openly = 1.0 - weight - own_weight
    alike = 1.0 / (
        openly**2 / cohort.persons + weight**2 / own.others + own_weight**2 / own.persons
    )
    beyond = max(float(stated[leading].mean()) - float(variances.mean()) / alike, 0.0)
    return replace(
        both,
        matrix=both.matrix + cohort.vectors @ (share * apart) @ cohort.vectors.T,
        release_weight=weight,
        weights=of_release,
        error=of_both * of_own / (of_both + of_own),
        stated=stated,
        persons=alike,
        deviation=float(np.sqrt(2.0 * beyond)),
        own_weight=own_weight,
    )


def _noise_variances(size: int, deviation: float) -> Array:
    noise = np.full((size, size), deviation**2 / 2.0)
    noise[np.diag_indices(size)] *= 2.0
    return noise


def _between_blocks(
    apart: Array, noise: Array, variances: Array, sampling: float, kept: int
) -> tuple[Array, Array]:
    """Return the estimate of b in each entry and its standard error, both d x d."""
    leading = np.arange(len(apart)) < kept
    inside = np.outer(leading, leading)
    across = np.logical_xor.outer(leading, leading)
    between = np.zeros(apart.shape)
    errors = np.zeros(apart.shape)
    for block in (inside, across, ~(inside | across)):
        between[block], errors[block] = _between(
            apart[block], noise[block], variances[block], sampling
        )
    return between, errors


def _between(apart: Array, noise: Array, variances: Array, sampling: float) -> tuple[float, float]:
    """Return the expected value of b over some entries, each twice, and its standard error.

    Both are for the mean of squares of these entries, weighted by their precision.
    """
    excess = np.square(apart) - noise - variances * sampling
    between = BETWEEN
    measured = error = 0.0
    for _ in range(_ROUNDS):
        usual = noise + variances * (sampling + between)
        weights = variances / np.square(usual)
        total = float((weights * variances).sum())
        measured = float((weights * excess).sum()) / total
        error = 2.0 * float(np.sqrt(np.square(weights * usual).sum())) / total
        between = max(measured, 0.0)
    distances = np.square((_VALUES - measured) / error)
    likely = np.exp(-0.5 * (distances - distances.min()))
    likely /= likely.sum()
    expected = float(likely @ _VALUES)
    return expected, float(np.sqrt(likely @ np.square(_VALUES - expected)))


def _take_whole(
    taken: Array, apart: Array, spread: Array, deviation: float, generator: np.random.Generator
) -> tuple[Array, Array, float]:
    """Replace directions of R − f that exceed chance; also return these, and chance's largest."""
    law = SymmetricNoise(len(apart), deviation)
    chance = 0.0
    for _ in range(_DRAWS):
        drawn = law.draw(generator) + _symmetric(spread, generator)
        chance = max(chance, float(np.abs(eigh(drawn, eigvals_only=True)[[0, -1]]).max()))
    values, vectors = eigh(apart)
    # Eigenvalues of means of projectors are from 0 to 1. With a larger edge, none can be seen.
    seen = np.flatnonzero((np.abs(values) > chance) & (law.edge / 2.0 < 1.0))
    for place in seen:
        own = vectors[:, place]
        freed = min(float(law.freed(np.abs(values[place : place + 1]))[0]), 1.0)
        strength = np.sign(values[place]) * freed
        taken = taken + (strength - own @ taken @ own) * np.outer(own, own)
    return taken, vectors[:, seen], chance


@dataclass(frozen=True, eq=False)
class EntryErrors:
    """Unequal standard deviations of a projector's entries, in some basis."""

    vectors: Array
    """The basis, orthonormal columns, shape (d, d)."""
    deviations: Array
    """Standard deviations of the entries between these, shape (d, d)."""

    def draw(self, generator: np.random.Generator) -> Array:
        """Draw new errors, d x d."""
        drawn = _symmetric(self.deviations, generator)
        return np.asarray(self.vectors @ drawn @ self.vectors.T)


def _symmetric(spread: Array, generator: np.random.Generator) -> Array:
    """Draw a symmetric matrix whose entries have given standard deviations."""
    half = np.triu(generator.standard_normal(spread.shape))
    return np.asarray((half + np.triu(half, 1).T) * spread)


def draw_like(
    cohort: OpenMean, deviation: float, persons: int, generator: np.random.Generator
) -> Array:
    """Draw a release of hospitals whose participants are as like the open ones as is usual."""
    chance = 1.0 / persons + BETWEEN
    other = EntryErrors(cohort.vectors, np.sqrt(cohort.variances * chance)).draw(generator)
    noise = SymmetricNoise(len(other), deviation).draw(generator)
    return np.asarray(cohort.matrix + other + noise)


@dataclass(frozen=True, eq=False)
class Strengths:
    """Strengths of maps beyond what participants without networks explain; arrays of shape (R,)."""

    here: Array
    """In the release."""
    openly: Array
    """In the open cohort."""
    error: Array
    """Standard error of ``here`` by noise and sampling."""
    openly_error: Array
    """Standard error of ``openly`` by sampling."""

    @property
    def ratios(self) -> Array:
        """Strength in the hospitals over that in the open cohort."""
        return np.asarray(self.here / self.openly)

    @property
    def errors(self) -> Array:
        """Standard errors of the ratios."""
        return np.asarray(np.hypot(self.error, self.ratios * self.openly_error) / self.openly)

    def joined(self, other: Strengths) -> Strengths:
        """Return these and other maps."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return Strengths(**{name: np.concatenate(pair) for name, pair in pairs.items()})

    def confirmed(self, least: Array) -> NDArray[np.bool_]:
        """Return which maps the release by itself shows.

        Such a map exceeds noise and sampling, which any of the maps does by chance with a
        probability of `_FALSE`, and `LEAST_PART` of its strength in the open cohort.

        Parameters
        ----------
        least : array, shape (R,)
            Minimum strength of a map that the release's own noise has chosen; 0 for others.
        """
        sure = np.maximum(_threshold(len(self.here)) * self.error, least)
        return (self.here > sure) & (self.here > LEAST_PART * self.openly)

    @property
    def only_here(self) -> NDArray[np.bool_]:
        """Whether the open cohort surely has less than `LEAST_PART` of a map's strength here."""
        error = np.hypot(LEAST_PART * self.error, self.openly_error)
        return np.asarray(self.openly + _SURELY * error < LEAST_PART * self.here)

    @property
    def power(self) -> Array:
        """Probability of each map to be confirmed if hospitals have it as the open cohort has."""
        least = np.maximum(_threshold(len(self.here)) * self.error, LEAST_PART * self.openly)
        return np.asarray(ndtr((self.openly - least) / np.maximum(self.error, _TINY)))


def measure_strengths(
    *,
    release: Array,
    cohort: OpenMean,
    weights: Array,
    nulls: Sequence[SmoothNull],
    deviation: float,
    persons: int,
) -> Strengths:
    """Measure how strong maps are in a release and in an open cohort.

    The same part is subtracted from both, so their difference does not depend on it: a map is
    weaker in the release than in the cohort, or stronger, by wᵀ(R − F)w.

    Parameters
    ----------
    release : array, shape (d, d)
        R.
    weights : array, shape (d, R)
    nulls : sequence of SmoothNull
        Participants without networks.
    deviation : float
        Standard deviation of the privacy noise in a released number.
    persons : int
        Number of participants of all hospitals.
    """
    spread = cohort.spread_of(weights)
    explained = np.max([strengths_of(null.mean, weights) for null in nulls], axis=0)
    return Strengths(
        here=strengths_of(release, weights) - explained,
        openly=np.maximum(strengths_of(cohort.matrix, weights) - explained, _TINY),
        error=np.sqrt(deviation**2 + spread / persons),
        openly_error=np.sqrt(spread / cohort.persons),
    )


def _threshold(maps: int) -> float:
    """Return the number of standard errors that chance exceeds in any of the maps in 5 %."""
    return float(-ndtri(_FALSE / maps))
