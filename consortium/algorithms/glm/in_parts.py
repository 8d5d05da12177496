"""Outcomes of a site in chunks of rows, to avoid a second full table in memory.

The contribution of a participant is clipped by its norm over all rows. So the chunks are computed
once for norms and sums, and a second time for the sums if any contribution must be clipped. This is
also faster, as chunks stay in the processor's cache. A contribution that was clipped before is
clipped with a margin for rounding errors. With a smooth basis or units of several rows, the
coefficients of a participant are summed chunk by chunk, and the maps are computed from them chunk
by chunk.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from consortium.algorithms.glm.kernels.outcome_correlation import (
    EqualCorrelation,
    OutcomeCorrelation,
    SummedCorrelation,
)
from consortium.algorithms.glm.open_table import Curve
from consortium.algorithms.glm.predictors import standardize_outcomes
from consortium.algorithms.glm.rows import RowsTable, Table, WithinUnits
from consortium.base.array import Array
from consortium.privacy.clipping import clip_columns, clip_factors, column_norms, finite_values

NUMBERS = 1 << 16
"""Numbers in a chunk."""

_ROOM = 1 - 1e-11


@dataclass(frozen=True, eq=False)
class Coded:
    """Coded rows of u, or of a unit's addition λ Σ w u, with w less the unit's mean."""

    turned: Array
    """R^-¼u, v x n. With a smooth basis, the last chunk has all d x n of it and the others none."""
    project: Callable[[], Array]
    """Computes the outcomes as represented by the released numbers; only some rounds need them."""

    @cached_property
    def left(self) -> Array:
        """Outcomes as represented by the released numbers, in standard deviations: v x n."""
        return self.project()


@dataclass(frozen=True, eq=False)
class OutcomePart:
    """Chunk of rows of the outcomes: 0 where missing, and the mean of the rows for a unit."""

    known: Array
    """Which outcomes are not missing, boolean, v x n. A unit's row that lacks any outcome is
    ignored."""
    own: Coded
    """Coded outcomes."""
    rows: slice
    """Rows of this chunk."""
    last: bool
    """Whether it is the last chunk."""
    added: Coded | None = None
    """Addition for units whose rows differ in their weights."""

    @property
    def turned(self) -> Array:
        """R^-¼u of the outcomes."""
        return self.own.turned

    @property
    def left(self) -> Array:
        """Outcomes as represented by the released numbers."""
        return self.own.left


class OutcomeSums(NamedTuple):
    """Sums over the outcomes of each participant, each an array of length n."""

    known: Array
    """Number of outcomes that are not missing."""
    outcomes: Array
    """Sum of u."""
    squares: Array
    """Sum of squares of u as represented by the released numbers."""
    basis: Array
    """Coefficients in a smooth basis, d x n; otherwise empty."""
    added: Array
    """Addition from a unit's rows, its square, and its product with u, 3 x n; otherwise empty."""
    added_basis: Array
    """Addition from a unit's rows in a smooth basis, d x n; otherwise empty."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of a site as a round uses them."""

    table: Table
    """The site's own table, not copied: D x n, or D x (K n) for units with K rows."""
    rows: Array
    """Rows of the outcomes in the table, integers, length V."""
    location: Array
    scales: Array
    """Location and scale, length V."""
    limit: float
    """Limit of the outcomes, in standard deviations."""
    outcome_correlation: OutcomeCorrelation
    """R."""
    within: WithinUnits | None = None
    """Deviations of rows within units of several rows."""
    differs: Array | None = None
    """Weights of these rows, less their unit's mean: K x n."""
    curve: Curve | None = None
    """Curve of an open cohort."""

    def __len__(self) -> int:
        """Return V."""
        return len(self.rows)

    def parts(self) -> Iterator[OutcomePart]:
        """Iterate over all rows in chunks."""
        yield from (self._whole,) if self._step >= len(self) else map(self._part, self._slices)

    @cached_property
    def sums(self) -> OutcomeSums:
        """Sums over each participant's outcomes."""
        many = self.table.shape[1] if self.within is None else len(self.within.weight)
        basis = 0
        if isinstance(self.outcome_correlation, SummedCorrelation):
            basis = self.outcome_correlation.released
        differs = self.differs is not None
        heights = basis, 3 * differs, basis * differs
        total = OutcomeSums(*np.zeros((3, many)), *(np.zeros((rows, many)) for rows in heights))
        for rows in self._slices:
            self._add(total, rows)
        if isinstance(self.outcome_correlation, SummedCorrelation):
            return total._replace(squares=self.outcome_correlation.squares(total.basis))
        return total

    @property
    def present(self) -> Array:
        """Fraction of the outcomes that each participant has."""
        return np.asarray(self.sums.known / len(self))

    @cached_property
    def sizes(self) -> Array:
        """‖R^-¼u‖ of each participant."""
        if isinstance(self.outcome_correlation, SummedCorrelation):
            return column_norms(self._basis[0])
        sums = self.sums
        return self._sizes(sums.squares, sums.outcomes, lambda part, _: part.turned)

    def sizes_with(self, weights: Array) -> tuple[Array, Array]:
        """Return norms of the rows' addition to R^-¼u, and of it together with w R^-¼u.

        Parameters
        ----------
        weights : array, length n
            w.
        """
        if isinstance(self.outcome_correlation, SummedCorrelation):
            own = self._basis[0]
            added = self._added_basis[0]
            return column_norms(added), column_norms(weights * own + added)
        sums = self.sums
        total, squares, products = sums.added
        both = weights**2 * sums.squares + 2 * weights * products + squares
        alone = self._sizes(squares, total, lambda _, added: added)
        total = weights * sums.outcomes + total
        return alone, self._sizes(both, total, lambda part, added: weights * part.turned + added)

    def means(self, weights: Array) -> tuple[Array, Array]:
        """Return means over groups of outcomes, G x n, for the represented u and its addition.

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
        """Return means over groups of outcomes in every row of units, G x (K n)."""
        each = (weights[:, rows] @ self._standardized(rows)[0] for rows in self._slices)
        return np.asarray(sum(each))

    def sum_clipped(
        self, blocks: Callable[[OutcomePart], Mapping[str, Array]], norms: Mapping[str, float]
    ) -> dict[str, Array]:
        """Return sums of blocks over participants, each contribution clipped to its block's norm.

        Parameters
        ----------
        blocks : callable
            Returns the rows of every block, (...) x v x n, for a chunk; always the same ones.
        norms : mapping of str to float
            Clipping norm of every block.

        Returns
        -------
        dict of array
            All rows of every block.
        """
        if self._step >= len(self):
            found = blocks(self._whole)
            return {n: clip_columns(_flat(b), norms[n]).sum(axis=1) for n, b in found.items()}
        sizes = defaultdict[str, list[Array]](list)
        sums = defaultdict[str, list[Array]](list)
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
        last = rows.stop >= len(self)
        more = None
        if isinstance(self.outcome_correlation, SummedCorrelation):
            own = self._of_basis(self._basis, rows, last)
            if added is not None:
                more = self._of_basis(self._added_basis, rows, last)
            return OutcomePart(known, own, rows, last, more)
        own = self._coded(values, self.sums.outcomes)
        if added is not None:
            more = self._coded(added, self.sums.added[0])
        return OutcomePart(known, own, rows, last, more)

    def _coded(self, values: Array, sums: Array) -> Coded:
        assert isinstance(self.outcome_correlation, EqualCorrelation)  # noqa: S101 - for the type checker
        return Coded(self.outcome_correlation.encode(values, sums / len(self)), lambda: values)

    def _of_basis(self, basis: tuple[Array, Array], rows: slice, last: bool) -> Coded:
        assert isinstance(self.outcome_correlation, SummedCorrelation)  # noqa: S101 - for the type checker
        numbers, left = basis
        return Coded(
            numbers if last else numbers[:0], partial(self.outcome_correlation.maps, left, rows)
        )

    @cached_property
    def _basis(self) -> tuple[Array, Array]:
        """R^-¼u, and the coefficients that maps are computed from, d x n."""
        return self._in_basis(self.sums.basis)

    @cached_property
    def _added_basis(self) -> tuple[Array, Array]:
        return self._in_basis(self.sums.added_basis)

    def _in_basis(self, sums: Array) -> tuple[Array, Array]:
        assert isinstance(self.outcome_correlation, SummedCorrelation)  # noqa: S101 - for the type checker
        return self.outcome_correlation.weighed(sums), self.outcome_correlation.left(sums)

    def _sizes(
        self, squares: Array, sums: Array, turned: Callable[[OutcomePart, Array], Array]
    ) -> Array:
        """Return norms of R^-¼ u for columns with these sums, or computed in chunks."""
        if self._step < len(self):
            assert isinstance(self.outcome_correlation, EqualCorrelation)  # noqa: S101 - for the type checker
            found = self.outcome_correlation.encoded_norms(squares, sums / len(self))
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
        if isinstance(self.outcome_correlation, SummedCorrelation):
            self.outcome_correlation.add(total.basis, values, rows)
            if added is not None:
                self.outcome_correlation.add(total.added_basis, added, rows)

    def _read(self, rows: slice) -> tuple[Array, Array, Array | None]:
        """Return u by row (by unit its mean), the mask of known values, and the rows' addition."""
        values, known = self._standardized(rows)
        if self.within is None:
            return values, known, None
        means = self.within.mean(values)
        added = None
        if self.differs is not None:
            added = finite_values(self.within.product(self.differs, self.within.split(values)))
        return means, np.broadcast_to(self.within.present, means.shape), added

    @cached_property
    def _outcomes(self) -> Table | None:
        """Rows of the outcomes in the table if they are contiguous there."""
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
            taken = np.asfortranarray(taken)  # operations by participant are contiguous
        if self.curve is not None:
            taken = taken - self.curve.at(rows)
        return standardize_outcomes(taken, self.location[rows], self.scales[rows], self.limit)


def factors_within(limit: float, sizes: Array) -> Array:
    """Return `clip_factors` with a margin for rounding errors in the norms of columns."""
    return clip_factors(limit * _ROOM, sizes)


def person_columns(block: Array, places: Array) -> Array:
    """Return some participants' columns in the block's own memory layout, which is fastest."""
    if block.flags.c_contiguous:
        return block.take(places, axis=1)
    return block.T.take(places, axis=0).T


def _together(norms: list[Array]) -> Array:
    """Return the norms of whole columns from those of their chunks."""
    return norms[0] if len(norms) == 1 else column_norms(np.stack(norms))


def _flat(block: Array) -> Array:
    return block if block.ndim == 2 else block.reshape(-1, block.shape[-1])


def _times(block: Array, factors: Array) -> Array:
    """Return columns times their factors; 0 for a factor of 0, even if a column is not finite."""
    known = block if factors.all() else np.where(factors > 0, block, 0.0)
    return np.asarray(known * factors)
