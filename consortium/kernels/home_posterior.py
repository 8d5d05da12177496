"""Posterior of a hospital: its own mean projector combined with a release it took part in.

The release is R = w f + (1 − w) g + noise, where f is the mean projector of the hospital's n_s
participants, g that of all others, and w = n_s/n. The hospital has f, so it can compute M = (R − w
f)/(1 − w) = g + noise/(1 − w), which does not contain its own participants. f and M are two
estimates of one truth with independent errors. P is their mean, weighted by their precision. It is
computed from the release and the hospital's own data, so others lose no privacy. But P and R
together reveal f, so P must not leave the hospital.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from consortium.base.array import Array
from consortium.kernels.release_worth import Worth, worth_of

BETWEEN = 0.025
"""β/v of real hospitals, mean of ten (`benchmarks.network_home_told`)."""


@dataclass(frozen=True)
class ReleaseShare:
    """Share of a hospital in a release: its participants, all participants, and the noise."""

    persons: int
    everybody: int
    """n_s, and n of all sites that answered."""
    sites: int
    """S, number of these sites."""
    deviation: float
    """τ, standard deviation of the noise in every packed number of the release."""

    @property
    def part(self) -> float:
        """w, the hospital's fraction of all participants."""
        return self.persons / self.everybody

    @property
    def noise(self) -> float:
        """t², variance of the noise in an off-diagonal entry of M: (τ²/2)/(1 − w)²."""
        return self.deviation**2 / 2.0 / (1.0 - self.part) ** 2

    def others(self, release: Array, own: Array) -> Array:
        """Return M, the mean of all others with the release's noise (all d x d)."""
        return without_own(release, own, self.part)


@dataclass(frozen=True)
class PriorVariances:
    """Variances of an entry between leading directions and the rest."""

    within: float
    """v, variance of one participant of a hospital."""
    between: float
    """β, variance of a hospital's own mean in the limit of many participants."""
    noise: float
    """t², variance of the noise in M."""
    overall: float
    """Like v, averaged over all entries."""

    @property
    def reported(self) -> PriorVariances:
        """Copy in which β is at least that of real hospitals, as an estimate may be too small.

        It is used for reported precision. Weights depend little on small errors of β.
        """
        return replace(self, between=max(self.between, BETWEEN * self.within))

    def worth(self, persons: int) -> Worth:
        """Return the worth of M to the hospital, for a release over ``persons`` participants."""
        return worth_of(self.within, self.noise, persons)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Mean projector P of a hospital and a release combined, and its inputs."""

    matrix: Array
    """P, shape (d, d)."""
    own: Array
    """f, shape (d, d)."""
    share: float
    """a, weight of the own mean; M has the weight 1 − a."""
    persons: float
    """Number of participants with equal weights that give a mean of the same precision: 1/Σ c²,
    with c the weights of the participants."""
    deviation: float
    """Standard deviation of a packed number of P, in the entries that rotate its directions, in
    excess of the average sampling error of that number of participants. It contains privacy noise,
    differences between hospitals, and the larger variance of participants in these entries."""
    own_deviation: float
    """The same for the own mean."""
    spreads: PriorVariances
    taken: ReleaseShare


def mean_of_projectors(directions: Sequence[Array], size: int) -> Array:
    """Return the mean of U Uᵀ over participants, each with U (d x K or fewer): d x d."""
    total = np.zeros((size, size))
    for own in directions:
        total += own @ own.T
    return total / len(directions)


def without_own(release: Array, own: Array, part: float) -> Array:
    """Return M, the mean of all others with the release's noise, independent of the own mean."""
    return np.asarray((release - part * own) / (1.0 - part))


def combine_projectors(
    directions: Sequence[Array], release: Array, taken: ReleaseShare, *, at_home: bool = False
) -> Posterior:
    """Return P, the mean of the own mean projector and M, weighted by their expected errors.

    Parameters
    ----------
    directions : sequence of array, shape (d, K)
        Orthonormal, of two or more participants; fewer than K columns if the rank is smaller.
    release : array, shape (d, d)
        R.
    at_home : bool
        Whether the truth is the mean of the hospital's own population, instead of that of all
        hospitals.
    """
    own = mean_of_projectors(directions, len(release))
    kept = max(u.shape[1] for u in directions)
    others = without_own(release, own, taken.part)
    spreads = measure_spreads(own, directions, others, kept, taken)
    room = len(own) / kept
    off_own, off_others = expected_errors(spreads, taken, room, at_home=at_home)
    share = off_others / (off_own + off_others)
    rest = 1.0 - share
    many = taken.everybody - taken.persons
    count = 1.0 / (share**2 / taken.persons + rest**2 / many)
    off_own, off_others = expected_errors(spreads.reported, taken, room, at_home=at_home)

    def deviation(off: float, persons: float) -> float:
        return math.sqrt(2.0 * max(off - spreads.overall / persons, 0.0))

    return Posterior(
        matrix=share * own + rest * others,
        own=own,
        share=share,
        persons=count,
        deviation=deviation(share**2 * off_own + rest**2 * off_others, count),
        own_deviation=deviation(off_own, taken.persons),
        spreads=spreads,
        taken=taken,
    )


def measure_spreads(
    own: Array, directions: Sequence[Array], others: Array, kept: int, taken: ReleaseShare
) -> PriorVariances:
    """Return the variances of entries between the K leading eigenvectors Σ of M and the rest, N.

    All entries of f − M estimate how much hospitals differ, and their noise does not depend on Σ:
    their mean square is t²(1 + 1/d) + v'(1/n_s + 1/(n − n_s)) + β' S/(S − 1), where v' and β' are
    means over all entries. The estimate of β' is shrunk by its standard error from the noise,
    2t²/d. Between Σ and N, β is scaled up by the ratio of v to v'.
    """
    size = len(own)
    persons = taken.persons
    rest = taken.everybody - taken.persons
    within = _between_subspaces(own, directions, others, kept)
    overall = _unbiased(float(np.trace(own) - np.sum(own**2)), persons) / size**2
    apart = float(np.sum((own - others) ** 2)) / size**2 - taken.noise * (1.0 + 1.0 / size)
    apart = (apart - overall * (1.0 / persons + 1.0 / rest)) * (1.0 - 1.0 / taken.sites)
    between = _believed(apart, 2.0 * taken.noise / size)
    scale = within / overall if overall > 0 else 0.0
    return PriorVariances(within, between * scale, taken.noise, overall)


def _believed(estimate: float, error: float) -> float:
    """Return a variance shrunk by its standard error, at least 0."""
    square = max(estimate, 0.0) ** 2
    return max(estimate, 0.0) * square / (square + error**2) if square else 0.0


def _between_subspaces(own: Array, directions: Sequence[Array], others: Array, kept: int) -> float:
    """Return v: for P = U Uᵀ and G = Uᵀ Σ Σᵀ U the squared norm of Σᵀ P N is tr G − ‖G‖²."""
    size = len(own)
    _, leading = eigh(others, subset_by_index=(size - kept, size - 1))
    squares = 0.0
    for person in directions:
        seen = leading.T @ person
        gram = seen.T @ seen
        squares += float(np.trace(gram) - np.sum(gram**2))
    image = own @ leading
    mean = float(np.sum(image**2) - np.sum((leading.T @ image) ** 2))
    return _unbiased(squares / len(directions) - mean, len(directions)) / (kept * (size - kept))


def _unbiased(spread: float, persons: int) -> float:
    return persons / (persons - 1) * max(spread, 0.0)


def expected_errors(
    spreads: PriorVariances, taken: ReleaseShare, room: float, *, at_home: bool = False
) -> tuple[float, float]:
    """Return the expected squared error of an entry of the own mean, and of M.

    Parameters
    ----------
    room : float
        d/K. With few participants the errors of the own mean's leading directions are larger than
        those of its entries, according to the edge of the bulk of few directions.
    """
    between = 0.0 if at_home else spreads.between
    chance = (1.0 + 0.5 * math.sqrt(room / taken.persons)) ** 2
    own = (spreads.within / taken.persons + between) * chance
    others = spreads.noise + spreads.within / (taken.everybody - taken.persons)
    return own, others + _of_others(spreads, taken, at_home)


def _of_others(spreads: PriorVariances, taken: ReleaseShare, at_home: bool) -> float:
    """Return the variance in M from differences between the other hospitals, and to this one."""
    mean = spreads.between / (taken.sites - 1)
    return mean + spreads.between if at_home else mean
