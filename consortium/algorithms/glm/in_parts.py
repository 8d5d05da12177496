"""A site's outcomes some rows at a time, so that of a million there is no second table in memory.

What is summed over persons is clipped by the norm over all rows: parts are worked out once for the
norms and the sums, and once more for the sums if anybody is to be clipped, which is faster as well,
as they stay in the processor's cache. So who is clipped before is clipped with room for rounding.
Of a smooth basis and of units with several rows, too: what a basis makes of a person is summed up
part by part, and of that its maps are made, part by part.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.glm.kernels.outcome_correlation import (
    BasisCorrelation,
    EqualCorrelation,
    OutcomeCorrelation,
)
from consortium.algorithms.glm.persons import standardize_outcomes
from consortium.algorithms.glm.rows import RowsTable, Table, WithinUnits
from consortium.privacy.clipping import clip_columns, clip_factors, column_norms, finite_values

NUMBERS = 1 << 16
"""Of a part."""

_ROOM = 1 - 1e-11


@dataclass(frozen=True, eq=False)
class Coded:
    """Some rows of u, or of what rows of a unit add to it: λ Σ w u, w less its unit's mean."""

    turned: Array
    """v x n. R^-¼u; of a smooth basis all of its d x n in the last part, before it none."""
    project: Callable[[], Array]
    """Works out what is left of u, which not every round asks for."""

    @cached_property
    def left(self) -> Array:
        """What is left of u, in standard deviations, in the numbers that are released: v x n."""
        return self.project()


@dataclass(frozen=True, eq=False)
class OutcomePart:
    """Some rows of the outcomes; 0 where they are missing, and of a unit the mean of its rows."""

    known: Array
    """True or false, v x n. What is not missing. A row of a unit that lacks any is none."""
    own: Coded
    """Outcomes."""
    rows: slice
    """Which rows."""
    last: bool
    """Whether no other part follows."""
    added: Coded | None = None
    """Of units whose rows differ in what they are multiplied by."""

    @property
    def turned(self) -> Array:
        """Of the outcomes."""
        return self.own.turned

    @property
    def left(self) -> Array:
        """Of the outcomes."""
        return self.own.left


class OutcomeSums(NamedTuple):
    """Sums over the outcomes of each person, each an array of length n."""

    known: Array
    """How many are not missing."""
    outcomes: Array
    """u."""
    squares: Array
    """Of what is left of u in the numbers that are released."""
    basis: Array
    """d x n. What a smooth basis makes its numbers of; else nothing."""
    added: Array
    """3 x n. What rows of a unit add, its square, and its product with u; else nothing."""
    added_basis: Array
    """d x n. Of what rows of a unit add in a smooth basis; else nothing."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A site's outcomes as a round sees them."""

    table: Table
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
    differs: Array | None = None
    """K x n. What these are multiplied by, less their unit's mean."""

    def __len__(self) -> int:
        """V."""
        return len(self.rows)

    def parts(self) -> Iterator[OutcomePart]:
        """All rows, part by part."""
        yield from (self._whole,) if self._step >= len(self) else map(self._part, self._slices)

    @cached_property
    def sums(self) -> OutcomeSums:
        """What is summed over each person's outcomes."""
        many, basis = self.table.shape[1] if self.within is None else len(self.within.weight), 0
        if isinstance(self.likeness, BasisCorrelation):
            basis = self.likeness.released
        differs = self.differs is not None
        heights = basis, 3 * differs, basis * differs
        total = OutcomeSums(*np.zeros((3, many)), *(np.zeros((rows, many)) for rows in heights))
        for rows in self._slices:
            self._add(total, rows)
        if isinstance(self.likeness, BasisCorrelation):
            return total._replace(squares=self.likeness.squares(total.basis))
        return total

    @property
    def present(self) -> Array:
        """Which part of the outcomes each person has."""
        return np.asarray(self.sums.known / len(self))

    @cached_property
    def sizes(self) -> Array:
        """‖R^-¼u‖ of each person."""
        if isinstance(self.likeness, BasisCorrelation):
            return column_norms(self._basis[0])
        sums = self.sums
        return self._sizes(sums.squares, sums.outcomes, lambda part, _: part.turned)

    def sizes_with(self, weights: Array) -> tuple[Array, Array]:
        """Norms of what rows of units add to R^-¼u, and of it and w times R^-¼u together.

        Parameters
        ----------
        weights : array, length n
            w.
        """
        if isinstance(self.likeness, BasisCorrelation):
            own, added = self._basis[0], self._added_basis[0]
            return column_norms(added), column_norms(weights * own + added)
        sums, (total, squares, products) = self.sums, self.sums.added
        both = weights**2 * sums.squares + 2 * weights * products + squares
        alone = self._sizes(squares, total, lambda _, added: added)
        total = weights * sums.outcomes + total
        return alone, self._sizes(both, total, lambda part, added: weights * part.turned + added)

    def means(self, weights: Array) -> tuple[Array, Array]:
        """Means over groups of outcomes, G x n: of what is left of u, and of what is added to it.

        Parameters
        ----------
        weights : array, G x V
        """
        found, added = np.zeros((2, len(weights), len(self.sums.known)))
        for part in self.parts() if len(weights) else ():
            found += weights[:, part.rows] @ part.left
            if part.added is not None:
                added += weights[:, part.rows] @ part.added.left
        return found, added

    def means_by_row(self, weights: Array) -> Array:
        """Means over groups of outcomes in every row of units, G x (K n)."""
        each = (weights[:, rows] @ self._standardized(rows)[0] for rows in self._slices)
        return np.asarray(sum(each))

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
            found = blocks(self._whole)
            return {n: clip_columns(_flat(b), norms[n]).sum(axis=1) for n, b in found.items()}
        sizes, sums = defaultdict[str, list[Array]](list), defaultdict[str, list[Array]](list)
        for part in self.parts():
            for name, block in blocks(part).items():
                sizes[name].append(column_norms(_flat(block)))
                sums[name].append(block.sum(axis=-1))
        factors = {name: clip_factors(norms[name], _together(each)) for name, each in sizes.items()}
        larger = {name: factor for name, factor in factors.items() if (factor != 1).any()}
        for name in larger:
            sums[name].clear()
        for part in self.parts() if larger else ():
            for name, block in blocks(part).items():
                if name in larger:
                    sums[name].append(_times(block, larger[name]).sum(axis=-1))
        return {name: np.concatenate(each, axis=-1) for name, each in sums.items()}

    @cached_property
    def _step(self) -> int:
        return int(max(1, NUMBERS // max(1, self.table.shape[1])))

    @property
    def _slices(self) -> Iterator[slice]:
        starts = range(0, max(len(self), 1), self._step)
        return (slice(start, start + self._step) for start in starts)

    @cached_property
    def _whole(self) -> OutcomePart:
        return self._part(slice(0, len(self)))

    def _part(self, rows: slice) -> OutcomePart:
        values, known, added = self._read(rows)
        last, more = rows.stop >= len(self), None
        if isinstance(self.likeness, BasisCorrelation):
            own = self._of_basis(self._basis, rows, last)
            if added is not None:
                more = self._of_basis(self._added_basis, rows, last)
            return OutcomePart(known, own, rows, last, more)
        own = self._coded(values, self.sums.outcomes)
        if added is not None:
            more = self._coded(added, self.sums.added[0])
        return OutcomePart(known, own, rows, last, more)

    def _coded(self, values: Array, sums: Array) -> Coded:
        assert isinstance(self.likeness, EqualCorrelation)  # noqa: S101 - else in a basis
        return Coded(self.likeness.encode(values, sums / len(self)), lambda: values)

    def _of_basis(self, basis: tuple[Array, Array], rows: slice, last: bool) -> Coded:
        assert isinstance(self.likeness, BasisCorrelation)  # noqa: S101 - for the type checker
        numbers, left = basis
        return Coded(numbers if last else numbers[:0], partial(self.likeness.maps, left, rows))

    @cached_property
    def _basis(self) -> tuple[Array, Array]:
        """R^-¼u, and what maps are made of, d x n."""
        return self._in_basis(self.sums.basis)

    @cached_property
    def _added_basis(self) -> tuple[Array, Array]:
        return self._in_basis(self.sums.added_basis)

    def _in_basis(self, sums: Array) -> tuple[Array, Array]:
        assert isinstance(self.likeness, BasisCorrelation)  # noqa: S101 - for the type checker
        return self.likeness.weighed(sums), self.likeness.left(sums)

    def _sizes(
        self, squares: Array, sums: Array, turned: Callable[[OutcomePart, Array], Array]
    ) -> Array:
        """Norms of R^-¼ of columns with these sums, or of them part by part."""
        if self._step < len(self):
            assert isinstance(self.likeness, EqualCorrelation)  # noqa: S101 - else in a basis
            found = self.likeness.encoded_norms(squares, sums / len(self))
            if np.isfinite(found).all():
                return found
        none = np.zeros(0)
        each = ((p, none if p.added is None else p.added.turned) for p in self.parts())
        return _together([column_norms(turned(*one)) for one in each])

    def _add(self, total: OutcomeSums, rows: slice) -> None:
        values, known, added = self._read(rows)
        own = known, values, np.square(values)
        for sums, each in zip(total, own, strict=False):
            sums += each.sum(axis=0)
        if added is not None:
            for sums, each in zip(total.added, (added, added**2, added * values), strict=True):
                sums += each.sum(axis=0)
        if isinstance(self.likeness, BasisCorrelation):
            self.likeness.add(total.basis, values, rows)
            if added is not None:
                self.likeness.add(total.added_basis, added, rows)

    def _read(self, rows: slice) -> tuple[Array, Array, Array | None]:
        """Rows of u, of units their means, what is not missing, and what rows of units add."""
        values, known = self._standardized(rows)
        if self.within is None:
            return values, known, None
        means, added = self.within.mean(values), None
        if self.differs is not None:
            added = finite_values(self.within.product(self.differs, self.within.split(values)))
        return means, np.broadcast_to(self.within.there, means.shape), added

    @cached_property
    def _outcomes(self) -> Table | None:
        """The table's rows, where outcomes stand one behind the other there."""
        if not len(self) or (np.diff(self.rows) != 1).any():
            return None
        own = slice(self.rows[0], self.rows[-1] + 1)
        return (
            RowsTable(self.table.units[own])
            if isinstance(self.table, RowsTable)
            else self.table[own]
        )

    def _standardized(self, rows: slice) -> tuple[Array, Array]:
        together = self._outcomes
        taken = self.table[self.rows[rows]] if together is None else together[rows]
        if self._step >= len(self):
            taken = np.ascontiguousarray(taken)
        elif taken.strides[0] > taken.strides[1]:
            taken = np.asfortranarray(taken)  # what is done by person is done in one stretch
        return standardize_outcomes(taken, self.location[rows], self.scales[rows], self.limit)


def factors_within(limit: float, sizes: Array) -> Array:
    """As `clip_factors`, with room for what rounding makes columns longer."""
    return clip_factors(limit * _ROOM, sizes)


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
