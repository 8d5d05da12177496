"""Cases of the search: every statistic of every analysis as in its own honest run.

Studies and sites are those of every analysis's examples, which the contract tests also run.
Statistics, bounds and arguments come from the analysis itself, so a new one is attacked without a
change here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Case,
    Extent,
    Local,
    NeighbourAnswers,
    Query,
)
from consortium.algorithms.open_cohort import OpenTable
from consortium.errors import StudyError
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import vector_norm
from consortium.simulation.array_data import ArrayData
from tests.support.cases import CASES, drive, entries_of, prepared, shape_of
from tests.support.open_tables import hostile_tables

_BOUND_BY_NOISE, _NOISE = ("glm",), 0.3
_WHOLE = "whole"
REFUSED_ABOVE = 1e-6  # over the bound: from there on a site does not send its statistic


@dataclass(frozen=True)
class Question:
    """A question and the data of two sites that differ in one unit."""

    query: Query
    bound: Bound
    blocks: tuple[Array, ...]
    """Each D x T_m."""
    other: Array
    """The neighbour's first block, in which everything, or the first volume, is another unit."""
    removed: bool = False
    """Whether the neighbour lacks that unit instead."""
    hashes: tuple[int, ...] = ()
    """One number per block; empty for those of their positions."""
    other_hash: int | None = None
    """Number of the first block of the neighbour; by default the same."""
    place: int = 0
    """Which block is removed, or which volume of the first block."""

    @property
    def neighbour(self) -> tuple[Array, ...]:
        """Blocks of the other site."""
        return (self.other, *self.blocks[1:])

    def without(self, unit: Unit) -> tuple[Array, ...]:
        """Return the blocks of the other site if a unit is removed."""
        if unit == "subject":
            place = self.removed_block(unit)
            return (*self.blocks[:place], *self.blocks[place + 1 :])
        first = np.delete(self.blocks[0], self.place % self.blocks[0].shape[1], axis=1)
        return (*(block for block in (first,) if block.shape[1]), *self.blocks[1:])

    def removed_block(self, unit: Unit) -> int:
        """Return the place of the block that a removal takes from."""
        return self.place % len(self.blocks) if unit == "subject" else 0


@dataclass(frozen=True)
class Attack:
    """One statistic of one analysis, and a question of its honest run to begin with."""

    name: str
    unit: Unit
    extent: Extent
    local: Local
    plan: AnalysisPlan[Any]
    start: Question

    def ratio(self, question: Question) -> float | None:
        """Return the largest of `ratios`."""
        found = self.ratios(question)
        return None if found is None else max(found.values())

    def ratios(self, question: Question) -> dict[str, float] | None:
        """Return the joint move of sum and count over the sum's Δ, and each block's over its own.

        A block with a small part of the budget is hardly visible in the joint move. A unit that is
        replaced moves a block by at most Δ, one that is removed by at most the block's norm.
        Returns infinity if the site answers for only one of the neighbours, and an empty result if
        for neither.
        """
        hashes = np.array(question.hashes, dtype=np.uint64) if question.hashes else None
        after = None if hashes is None else hashes.copy()
        if question.removed:
            blocks = question.without(self.unit)
            if after is not None and len(blocks) < len(after):
                after = np.delete(after, question.removed_block(self.unit))
        else:
            blocks = question.neighbour
            if after is not None and question.other_hash is not None:
                after[0] = question.other_hash
        found = [
            self._answer(question, *each) for each in ((question.blocks, hashes), (blocks, after))
        ]
        if found[0] is None or found[1] is None:
            return None if found[0] is found[1] else {_WHOLE: np.inf}
        # Over the bound first: the squares of a move may be too small for a number.
        bound, moved = question.bound, found[1] - found[0]
        counted = self._counted(bound) if question.removed else 0.0
        both = vector_norm(np.append(moved, counted / bound.norm))
        whole = {_WHOLE: both / (bound.spread / bound.norm)}
        if not isinstance(bound, BlocksBound):
            return whole
        parts = bound.split(moved * bound.norm)
        most = {b.name: b.norm if question.removed else b.spread for b in bound.blocks}
        return whole | {name: vector_norm(parts[name]) / most[name] for name in most}

    def site_of(
        self, blocks: Sequence[Array], hashes: NDArray[np.uint64] | None = None
    ) -> ArrayData:
        """Return a site with these participants, and the public parts of the analysis's example."""
        site = ArrayData(blocks, self.unit, views=self.extent.views, person_hashes=hashes)
        site.extent = self.extent
        return site

    @property
    def _among_neighbours(self) -> bool:
        return self.start.query.neighbour_answers is not None

    def _counted(self, bound: Bound) -> float:
        """Return c of the entry in which the engine counts units; 0 among neighbours."""
        return 0.0 if self._among_neighbours else bound.count_weight

    def _answer(
        self, question: Question, blocks: tuple[Array, ...], hashes: NDArray[np.uint64] | None
    ) -> Array | None:
        """Return a site's answer over the bound, as a sum over units; None if it would refuse.

        A site without units sends zeros, except among neighbours, where a minimizer depends on
        them.
        """
        bound, heard = question.bound, question.query.neighbour_answers
        if heard is None and not blocks:
            (planned,) = (r for r in self.plan.releases if r.stage == question.query.stage)
            return np.zeros(planned.entries)
        site = self.site_of(blocks, hashes)
        factor = site.units if heard is None else self.plan.shape.units[heard.site]
        try:
            values = np.asarray(
                self.local(self.plan, site, question.query, bound), dtype=np.float64
            )
        except Exception:  # whatever it is, the site refuses
            return None
        if not vector_norm(values) <= bound.norm * (1 + REFUSED_ABOVE):
            return None
        return np.asarray(factor * (values.ravel() / bound.norm))


def all_attacks() -> list[Attack]:
    """Return every statistic with every kind of plan that some analysis has for it."""
    found: dict[str, dict[tuple[str, ...], Attack]] = {}
    for fields, case in _recorded():
        kind = (*sorted(case.start.query.arguments), *fields, *_blocks_of(case.start.bound))
        kinds = found.setdefault(case.name, {})
        number = f" {len(kinds) + 1}" if kinds else ""
        kinds.setdefault(kind, replace(case, name=case.name + number))
    return [case for kinds in found.values() for case in kinds.values()]


def _blocks_of(bound: Bound) -> tuple[str, ...]:
    return tuple(block.name for block in bound.blocks) if isinstance(bound, BlocksBound) else ()


def _recorded() -> Iterator[tuple[list[str], Attack]]:
    """Return attacks, with the fields that a study's analysis states."""
    for each in CASES:
        name, case = cast("str", each.values[0]), cast("Case", each.values[1])
        for attack in _attacks_of(name, case):
            yield sorted(case.analysis), attack


def _attacks_of(name: str, case: Case) -> Iterator[Attack]:
    """Yield the attacks on an example, and on it with every hostile table that is not refused."""
    _, _, sites = prepared(name, case)
    yield from _attacks_on(name, case, sites)
    for kind, table in _tables_against(case).items():
        for site in sites:
            site.extent = replace(site.extent, open_cohort=table)
        try:
            for attack in _attacks_on(name, case, sites):
                yield replace(attack, name=f"{attack.name} ({kind})")
        except StudyError:
            continue


def _tables_against(case: Case) -> dict[str, OpenTable]:
    if not str(case.analysis.get("open", "")).endswith(".tsv"):
        return {}
    names = entries_of(case)
    outcomes = dict(case.views)[case.analysis["outcomes"]]
    levels = [name for name in names if name.startswith("group")]
    return cast("dict[str, OpenTable]", hostile_tables(names, outcomes, levels))


def _attacks_on(name: str, case: Case, sites: Sequence[ArrayData]) -> Iterator[Attack]:
    algorithm, parameters, _ = prepared(name, case)
    # Where bounds depend on the noise, those of a study that has some are attacked.
    known = _NOISE if name in _BOUND_BY_NOISE else 0.0
    plan = algorithm(parameters, shape_of(sites, known))
    planned = {release.stage: release for release in plan.planned()}
    site = sites[0]
    blocks = tuple(site.blocks())
    for query in reversed(
        drive(algorithm, parameters, sites, known=known)[0]
    ):  # the last has received the most
        bound = planned[query.stage].bound
        where = ["mesh"] * case.mesh + ["voxels"] * case.voxels
        label = " ".join([f"{name}.{query.statistic}", site.unit, *where])
        hashes = tuple(site.person_hashes.tolist())
        start = Question(query, bound, blocks, blocks[0].copy(), hashes=hashes)
        local = algorithm.statistics[query.statistic]
        yield Attack(label, site.unit, site.extent, local, plan, start)


def with_arguments(question: Question, arguments: dict[str, Array]) -> Question:
    """Return the same question with other arguments; ``heard`` is the received one."""
    query, given = question.query, dict(arguments)
    if query.neighbour_answers is not None:
        answers = NeighbourAnswers(query.neighbour_answers.site, given.pop("heard"))
        query = replace(query, neighbour_answers=answers)
    return replace(question, query=replace(query, arguments=given))


def arguments_of(question: Question) -> dict[str, Array]:
    """Return every argument of the query, and the received one."""
    heard = question.query.neighbour_answers
    return {**question.query.arguments, **({} if heard is None else {"heard": heard.answers})}
