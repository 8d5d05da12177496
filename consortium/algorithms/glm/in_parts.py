"""A site's outcomes some rows at a time, so that of a million there is no second table in memory.

What is summed over persons is clipped by the norm over all rows: parts are worked out once for the
norms and once more for the sums, which is faster as well, as they stay in the processor's cache.
Few outcomes, those in a smooth basis and those of units with several rows are one part.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.glm.kernels.outcome_correlation import (
    EqualCorrelation,
    OutcomeCorrelation,
)
from consortium.algorithms.glm.persons import outcome_norms, standardize_outcomes
from consortium.algorithms.glm.rows import WithinUnits, rows_of
from consortium.algorithms.glm.smooth import smooth_correlation
from consortium.privacy.clipping import clip_columns, clip_factors, column_norms

NUMBERS = 1 << 16
"""Of a part."""


class OutcomePart(NamedTuple):
    """Some rows of the outcomes."""

    outcomes: Array
    """v x n. u, in standard deviations; 0 where missing. Of a unit the mean of its rows."""
    known: Array
    """True or false, v x n. What is not missing. A row of a unit that lacks any is none."""
    turned: Array
    """v x n. The same rows of R^-¼u; d x n where a smooth basis makes d numbers of all rows."""
    rows: slice
    """Which rows."""
    last: bool
    """Whether no other part follows."""


class OutcomeSums(NamedTuple):
    """Sums over the outcomes of each person, each an array of length n."""

    known: Array
    """How many are not missing."""
    outcomes: Array
    """u."""
    squares: Array
    """Of what is left of u in the numbers that are released."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A site's outcomes as a query sees them."""

    table: Array
    """D x n. The site's own, which is not copied; D x (K n) of units with K rows."""
    rows: Array
    """Whole numbers, length V. Outcomes in the table."""
    location: Array
    scales: Array
    """Length V."""
    limit: float
    """What outcomes are cut to, in standard deviations."""
    likeness: OutcomeCorrelation
    """R."""
    within: WithinUnits | None = None
    """Of units with several rows."""

    def __len__(self) -> int:
        """V."""
        return len(self.rows)

    def parts(self) -> Iterator[OutcomePart]:
        """All rows, part by part."""
        yield from (self.whole,) if self._step >= len(self) else map(self._part, self._starts)

    @cached_property
    def whole(self) -> OutcomePart:
        """All outcomes as one part."""
        values, known = self.by_row
        if self.within is not None:
            values = self.within.mean(values)
            known = np.broadcast_to(self.within.there, values.shape)
        return OutcomePart(values, known, self.likeness.encode(values), slice(None), True)

    @cached_property
    def by_row(self) -> tuple[Array, Array]:
        """All of u and what is not missing, V x n; of units in each of their rows, V x (K n)."""
        return self._standardized(slice(None))

    @cached_property
    def sums(self) -> OutcomeSums:
        """What is summed over each person's outcomes."""
        if self._step >= len(self):
            return self._sums_of(self.whole.outcomes, self.whole.known)
        each = map(self._standardized, map(self._rows, self._starts))
        return OutcomeSums(*np.sum([self._sums_of(*part) for part in each], axis=0))

    @property
    def present(self) -> Array:
        """Which part of the outcomes each person has."""
        return np.asarray(self.sums.known / len(self))

    @cached_property
    def sizes(self) -> Array:
        """‖R^-¼u‖ of each person."""
        return _together([column_norms(part.turned) for part in self.parts()])

    def sum_clipped(
        self, blocks: Callable[[OutcomePart], Mapping[str, Array]], norms: Mapping[str, float]
    ) -> dict[str, Array]:
        """Sums over persons of blocks, each person's part of a block clipped to the block's norm.

        Parameters
        ----------
        blocks : callable
            Makes the rows of every block, (...) x v x n, of a part; the same ones each time.
        norms : mapping of str to float
            Norm of every block.

        Returns
        -------
        dict of array
            Of every block, all its rows.
        """
        if self._step >= len(self):
            found = blocks(self.whole)
            return {n: clip_columns(_flat(b), norms[n]).sum(axis=1) for n, b in found.items()}
        sizes, sums = defaultdict[str, list[Array]](list), defaultdict[str, list[Array]](list)
        for part in self.parts():
            for name, block in blocks(part).items():
                sizes[name].append(column_norms(_flat(block)))
        factors = {name: clip_factors(norms[name], _together(each)) for name, each in sizes.items()}
        for part in self.parts():
            for name, block in blocks(part).items():
                sums[name].append(_times(block, factors[name]).sum(axis=-1))
        return {name: np.concatenate(each, axis=-1) for name, each in sums.items()}

    @cached_property
    def _step(self) -> int:
        if not isinstance(self.likeness, EqualCorrelation) or self.within is not None:
            return len(self)
        return int(max(1, NUMBERS // max(1, self.table.shape[1])))

    @cached_property
    def _outcomes(self) -> Array | None:
        """A view of the table's rows, where outcomes stand one behind the other there."""
        if not len(self) or (np.diff(self.rows) != 1).any():
            return None
        return self.table[self.rows[0] : self.rows[-1] + 1]

    @property
    def _starts(self) -> range:
        return range(0, len(self), self._step)

    def _rows(self, start: int) -> slice:
        return slice(start, start + self._step)

    def _part(self, start: int) -> OutcomePart:
        rows = self._rows(start)
        values, known = self._standardized(rows)
        assert isinstance(self.likeness, EqualCorrelation)  # noqa: S101 - others are one part
        turned = self.likeness.encode(values, self.sums.outcomes / len(self))
        return OutcomePart(values, known, turned, rows, rows.stop >= len(self))

    def _sums_of(self, values: Array, known: Array) -> OutcomeSums:
        left = self.likeness.project(values)
        return OutcomeSums(known.sum(axis=0), values.sum(axis=0), np.square(left).sum(axis=0))

    def _standardized(self, rows: slice) -> tuple[Array, Array]:
        together = self._outcomes
        taken = self.table[self.rows[rows]] if together is None else together[rows]
        if self._step >= len(self):
            taken = np.ascontiguousarray(taken)
        elif taken.strides[0] > taken.strides[1]:
            taken = np.asfortranarray(taken)  # what is done by person is done in one stretch
        return standardize_outcomes(taken, self.location[rows], self.scales[rows], self.limit)


def outcomes_of(data: SiteData, query: Query, limit: float, within: WithinUnits | None) -> Outcomes:
    """Outcomes in standard deviations, cut to a limit.

    Raises
    ------
    ProtocolError
        If the arguments don't fit each other or the study.
    """
    rows, location, scales = outcome_norms(data, query)
    likeness = smooth_correlation(data, query, len(rows))
    return Outcomes(rows_of(data)[0], rows, location, scales, limit, likeness, within)


def person_columns(block: Array, places: Array) -> Array:
    """Columns of some persons, in the block's own layout, in which they are found fastest."""
    if block.flags.c_contiguous:
        return block.take(places, axis=1)
    return block.T.take(places, axis=0).T


def _together(norms: list[Array]) -> Array:
    """Norms of whole columns from those of their parts."""
    return norms[0] if len(norms) == 1 else column_norms(np.stack(norms))


def _flat(block: Array) -> Array:
    return block if block.ndim == 2 else block.reshape(-1, block.shape[-1])


def _times(block: Array, factors: Array) -> Array:
    """Columns times their factors; zeros where that is zero, whatever the column holds."""
    known = block if factors.all() else np.where(factors > 0, block, 0.0)
    return np.asarray(known * factors)
