"""A hospital's own mean projector beside the release it took part in: the better of both, at home.

The release is R = w f + (1 − w) g + noise, where f is the mean projector of the hospital's n_s
participants, g that of all others, and w = n_s/n. The hospital knows f, so that
M = (R − w f)/(1 − w) = g + noise/(1 − w) has nothing of its own participants in it: two estimates
of one truth whose errors are independent. P is their mean, each weighed by how sure it is. It is
worked out of the release and of the hospital's own data, so that others lose nothing; but whoever
has P and R has f, and P must stay where it is made.
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
"""β/v of real hospitals, the mean of ten (`benchmarks.network_home_told`)."""


@dataclass(frozen=True)
class ReleaseShare:
    """A hospital's share in a release: its participants, everybody's, and the noise."""

    persons: int
    everybody: int
    """n_s and n, of the sites that answered."""
    sites: int
    """S, of these."""
    deviation: float
    """τ, of the noise in every packed number of the release."""

    @property
    def part(self) -> float:
        """The hospital's part of all participants, w."""
        return self.persons / self.everybody

    @property
    def noise(self) -> float:
        """t², variance of the noise in an entry of M beside the diagonal: (τ²/2)/(1 − w)²."""
        return self.deviation**2 / 2.0 / (1.0 - self.part) ** 2


@dataclass(frozen=True)
class PriorVariances:
    """Variances of an entry between leading directions and the rest."""

    within: float
    """v, of one participant of a hospital."""
    between: float
    """β, of a hospital's own mean, were its participants as many as one likes."""
    noise: float
    """t², of the noise in M."""
    overall: float
    """As v, of all entries on average."""

    @property
    def reported(self) -> PriorVariances:
        """The same where β is that of real hospitals at least: an estimate may fall short of it.

        How sure maps are is told by these; weights lose little by a β that is a little wrong.
        """
        return replace(self, between=max(self.between, BETWEEN * self.within))

    def worth(self, persons: int) -> Worth:
        """What M is worth to the hospital, of a release over so many participants."""
        return worth_of(self.within, self.noise, persons)


@dataclass(frozen=True, eq=False)
class Posterior:
    """P, and what it is a mean of."""

    matrix: Array
    """Shape (d, d)."""
    own: Array
    """Shape (d, d). f."""
    share: float
    """a, by which the own mean counts; M counts by 1 − a."""
    persons: float
    """Participants who count alike and would be as sure a mean: 1/Σ c², where c is by how much each
    counts."""
    deviation: float
    """Of a packed number, of all that P is off in the entries that turn its directions, beyond what
    so many participants are on average: noise of privacy, differences between hospitals, and that
    participants differ in these entries more than in others."""
    own_deviation: float
    """The same of the own mean alone."""
    spreads: PriorVariances
    taken: ReleaseShare


def mean_of_projectors(directions: Sequence[Array], size: int) -> Array:
    """Mean of U Uᵀ over persons, each of whom has U (d x K or fewer): d x d."""
    total = np.zeros((size, size))
    for own in directions:
        total += own @ own.T
    return total / len(directions)


def without_own(release: Array, own: Array, part: float) -> Array:
    """M, the mean of all others with the release's noise: free of whatever the own mean is."""
    return np.asarray((release - part * own) / (1.0 - part))


def combine_projectors(
    directions: Sequence[Array], release: Array, taken: ReleaseShare, *, at_home: bool = False
) -> Posterior:
    """P, the mean of the own mean projector and M by what each is expected to be off.

    Parameters
    ----------
    directions : sequence of array, shape (d, K)
        Orthonormal, of two or more persons; fewer than K of a person who has no more.
    release : array, shape (d, d)
        R.
    at_home : bool
        Whether the truth is the hospital's own patients, however many more there were of them, and
        not everybody's of all hospitals.
    """
    own, kept = mean_of_projectors(directions, len(release)), max(u.shape[1] for u in directions)
    others = without_own(release, own, taken.part)
    spreads = measure_spreads(own, directions, others, kept, taken)
    room = len(own) / kept
    off_own, off_others = expected_errors(spreads, taken, room, at_home=at_home)
    share = off_others / (off_own + off_others)
    rest, many = 1.0 - share, taken.everybody - taken.persons
    count = 1.0 / (share**2 / taken.persons + rest**2 / many)
    off_own, off_others = expected_errors(spreads.reported, taken, room, at_home=at_home)

    def deviation(off: float, persons: float) -> float:
        return math.sqrt(2.0 * max(off - spreads.overall / persons, 0.0))

    return Posterior(
        share * own + rest * others,
        own,
        share,
        count,
        deviation(share**2 * off_own + rest**2 * off_others, count),
        deviation(off_own, taken.persons),
        spreads,
        taken,
    )


def measure_spreads(
    own: Array, directions: Sequence[Array], others: Array, kept: int, taken: ReleaseShare
) -> PriorVariances:
    """Variances of the entries between the K leading eigenvectors Σ of M and the rest, N.

    How much hospitals differ is told by all entries of f − M, over which the noise is known
    whatever it did to Σ: their mean square is t²(1 + 1/d) + v'(1/n_s + 1/(n − n_s)) + β' S/(S − 1),
    where v' and β' are means over all entries. What is told of β' within the chance of the noise's
    own sum, 2t²/d, is believed in part. Between Σ and N β is taken for larger as v is than v'.
    """
    size, persons, rest = len(own), taken.persons, taken.everybody - taken.persons
    within = _between_subspaces(own, directions, others, kept)
    overall = _unbiased(float(np.trace(own) - np.sum(own**2)), persons) / size**2
    apart = float(np.sum((own - others) ** 2)) / size**2 - taken.noise * (1.0 + 1.0 / size)
    apart = (apart - overall * (1.0 / persons + 1.0 / rest)) * (1.0 - 1.0 / taken.sites)
    between = _believed(apart, 2.0 * taken.noise / size)
    scale = within / overall if overall > 0 else 0.0
    return PriorVariances(within, between * scale, taken.noise, overall)


def _believed(estimate: float, error: float) -> float:
    """What is kept of a variance that was estimated with a standard error; none below zero."""
    square = max(estimate, 0.0) ** 2
    return max(estimate, 0.0) * square / (square + error**2) if square else 0.0


def _between_subspaces(own: Array, directions: Sequence[Array], others: Array, kept: int) -> float:
    """Find v: for P = U Uᵀ and G = Uᵀ Σ Σᵀ U the squared norm of Σᵀ P N is tr G − ‖G‖²."""
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
    """Expected squared error of an entry of the own mean, and of M.

    Parameters
    ----------
    room : float
        d/K. With few persons the own mean's leading directions are off by more than its entries
        are, as the edge of the bulk of so few directions says.
    """
    between = 0.0 if at_home else spreads.between
    chance = (1.0 + 0.5 * math.sqrt(room / taken.persons)) ** 2
    own = (spreads.within / taken.persons + between) * chance
    others = spreads.noise + spreads.within / (taken.everybody - taken.persons)
    return own, others + _of_others(spreads, taken, at_home)


def _of_others(spreads: PriorVariances, taken: ReleaseShare, at_home: bool) -> float:
    """Variance that other hospitals' differences, and the own one's, leave in M."""
    mean = spreads.between / (taken.sites - 1)
    return mean + spreads.between if at_home else mean
