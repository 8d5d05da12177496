"""The query and the release: the two messages between an algorithm's halves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from consortium.base.array import Array
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound

if TYPE_CHECKING:
    from consortium.algorithms.shape import Shape

Released = Literal["sum", "each"]

MOST_ENTRIES = 50_000_000
"""Maximum number of values of a message: 400 MB."""
MOST_ENTRIES_A_ROUND = 5_000_000
"""Maximum number of values if a run has hundreds of messages: 40 MB each."""
MOST_MOMENT_FEATURES = 6_000
"""Whose second moment is released: 18 million numbers, 144 MB a message and 288 MB in memory."""
MOST_SOLVED_FEATURES = 3_000
"""Whose second moment is solved as a whole: 4.5 million numbers a message."""


@dataclass(frozen=True)
class PlannedRelease:
    """One or more equal releases that an algorithm may make, known before any data is read.

    ``share`` is the fraction of the whole budget (of μ²) for all ``rounds`` together. The shares of
    an algorithm add up to one. ``arguments`` has the shape of every array in a query that earlier
    releases decide. A site refuses a query of other shapes unread. ``released`` is one noisy sum
    over all sites, or each site's own answer with enough noise for a single answer. ``neighbours``
    has each site's neighbours: before it answers, a site reads their and its own answers in the
    earlier rounds, from them and not from the centre.
    """

    stage: str
    statistic: str
    entries: int
    bound: Bound
    rounds: int
    share: float
    arguments: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    released: Released = "sum"
    neighbours: tuple[tuple[int, ...], ...] = ()

    @property
    def count_weight(self) -> float:
        """Return c of the bound; 0 among neighbours, whose answers are not sums over units."""
        return 0.0 if self.neighbours else self.bound.count_weight

    def round_deviation(self, shape: Shape) -> float:
        """Return the standard deviation of the noise in an entry of one round.

        If each site's own answer is released, it is that of the noisiest, the smallest site.
        """
        if self.released == "each":
            once = shape.alone * self.bound.sensitivity(min(shape.units))
        else:
            once = shape.noise * self.bound.sensitivity(sum(shape.units))
        return once * math.sqrt(self.rounds / self.share)

    def block_sums(
        self, release: Release, persons: float
    ) -> tuple[dict[str, Array], dict[str, float]]:
        """Return sums over all participants and their noise standard deviations, by block.

        Parameters
        ----------
        release : Release
            An answer to this, whose bound has blocks.
        persons : float
            Number of participants.
        """
        bound = self.bound
        assert isinstance(bound, BlocksBound)  # noqa: S101 - for the type checker
        sums = bound.split(release.values * persons)
        return sums, bound.deviations(release.deviation * persons)


@dataclass(frozen=True)
class NeighbourAnswers:
    """Earlier answers of a site and its neighbours, as a query carries them."""

    site: int
    """Index of the site that listens."""
    answers: Array
    """Shape (rounds, sites, entries). In the statistic's units, with noise. A site that missed a
    round has its earlier answer, or zeros. A site that is not a neighbour has zeros."""


@dataclass(frozen=True)
class Query:
    """The centre's query to every site in one round."""

    stage: str
    """Name of the planned release that this round draws on."""
    statistic: str
    """Key of the algorithm's ``statistics``."""
    arguments: Mapping[str, Array] = field(default_factory=dict)
    """Public arrays that earlier releases decide."""
    neighbour_answers: NeighbourAnswers | None = None
    """Put in by the site that is asked, if the stage is among neighbours; the centre sends none."""
    site: int = 0
    """Index of the receiving site, which it sets itself, and which is never sent."""


@dataclass(frozen=True)
class Release:
    """The centre's result of a query: the noisy mean over all units of all sites.

    Sites send sums over their units, and the number of units with noise. The mean is the one over
    the other.
    """

    values: Array
    """Flat, with the planned number of entries; for a release of each site, one row per site."""
    deviation: float
    """Standard deviation of the noise in each entry, of the noisiest row; 0 without privacy."""
    sites: tuple[int, ...] = ()
    """Whose answers are in it, in the order of the rows, as indices into the study's sites."""
    units: tuple[float, ...] = ()
    """Estimated number of units of each of the study's sites, from this release and all earlier
    ones; at least 1, and not whole. Empty where nothing was counted."""
    units_deviation: float = 0.0
    """Standard deviation of such a number."""

    @property
    def scale_deviation(self) -> float:
        """Relative standard deviation of the number of units that ``values`` are divided by."""
        if not self.units_deviation:
            return 0.0
        units = [self.units[site] for site in self.sites]
        return self.units_deviation * math.sqrt(len(units)) / sum(units)
