"""`describe`: counts, means, deviations, quantiles and missing values of columns, by group.

The first round counts the participants of each group in bins of every column, and the missing
values. It learns each column's centre and scale, too. The second round releases sums of values in
these units, clipped by the norm of all of a participant's values. So means have less noise than
those of bins. Kaplan-Meier curves are computed from counts of time by event.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Case,
    Local,
    PlannedRelease,
    Query,
    Run,
    SiteData,
)
from consortium.algorithms.describe.entries import (
    DescribedColumns,
    Variable,
    check_cells,
    resolve_columns,
)
from consortium.algorithms.describe.forecast import (
    expect,
    foretell,
    levels_off,
    refuse_noisy,
)
from consortium.algorithms.describe.kernels.clipping_bias import choose_margin
from consortium.algorithms.describe.learned import (
    LEAST_SCALE,
    estimate_counts,
    learn_columns,
)
from consortium.algorithms.describe.parameters import DescribeParameters
from consortium.algorithms.describe.result import describe_result
from consortium.algorithms.describe.site import describe_cells, describe_sums
from consortium.algorithms.shape import Shape
from consortium.privacy.block_bounds import Block, BlocksBound

COUNTS = "counts"
SUMS = "sums"
_SHARES = {"groups": 0.06, "cells": 0.40, "kept": 0.04, "moments": 0.50}
"""Fractions of the budget (of μ²) of the blocks; those of blocks that a study lacks are divided."""
_FEWEST_BINS = 8
_MOST_BINS = 40
_REPLACED = (
    "The study file names 'histogram', which 'describe' replaces. The file is still read: it asks "
    "for counts and quantiles of one column. In new studies write 'algorithm: describe'."
)
_CURVES = {"relapse": {"time": "x1", "event": "group1", "bins": 4}}
_VIEWS = (("x", 4), ("group", 2))


class Describe(AnalysisPlan[DescribeParameters]):
    """One release of counts and one of clipped sums."""

    name = "describe"
    title = "description of participants"
    takes = "features"
    needs_means = True
    Parameters = DescribeParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "describe_cells": describe_cells,
        "describe_sums": describe_sums,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"groups": "group1", "anyway": True}, views=_VIEWS),
        Case({"bins": 5, "anyway": True}, views=(("gaps", 3), ("y", 1))),
        Case(
            {"columns": ["x2", "gaps1"], "bins": {"x2": 2}, "groups": "group2", "anyway": True},
            views=(("gaps", 2), *_VIEWS),
        ),
        Case({"groups": "group2", "survival": _CURVES, "anyway": True}, views=_VIEWS),
        Case({"columns": ["group1"], "anyway": True}, views=_VIEWS),
        Case({"columns": ["x3"], "means": False, "bins": 4, "anyway": True}, views=_VIEWS),
    )

    foretell = foretell
    expect = expect
    refuse_hopeless = refuse_noisy

    @cached_property
    def entries(self) -> DescribedColumns:
        """Variables with their bins, and the groups."""
        found = resolve_columns(self.parameters, self.shape)
        bins = _suitable_bins(self.shape, len(found.levels), len(found.variables))
        filled = tuple(
            each if each.bins or each.kind == "levels" else replace(each, bins=bins)
            for each in found.variables
        )
        found = replace(found, variables=filled)
        check_cells(found)
        return found

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """Fractions of the budget of the blocks that the study has."""
        without = set[str]()
        if len(self.entries.levels) == 1:
            without |= {"groups"}
        if not self.averaged:
            without |= {"kept", "moments"}
        found = {name: share for name, share in _SHARES.items() if name not in without}
        whole = math.fsum(found.values())
        return {name: share / whole for name, share in found.items()}

    @property
    def averaged(self) -> tuple[Variable, ...]:
        """Columns whose means are estimated."""
        return self.entries.numbers if self.parameters.means else ()

    @cached_property
    def margin(self) -> float:
        """λ: a participant's d values in learned units are clipped to norm √d + λ."""
        largest = max(self.group_sizes)
        noise = 2 * self.shape.noise / math.sqrt(self.shares["moments"]) / largest
        return choose_margin(len(self.entries.numbers), noise)

    @property
    def reach(self) -> float:
        """Clipping norm of a participant's values in learned units."""
        root = math.sqrt(len(self.entries.numbers))
        if not self.shape.noise:
            return 2 * root / LEAST_SCALE  # the largest possible norm
        return root + self.margin

    @property
    def group_sizes(self) -> tuple[float, ...]:
        """Expected number of participants of each group."""
        return tuple(sum(self.shape.units) * share for share in self.group_shares)

    @cached_property
    def group_shares(self) -> tuple[float, ...]:
        """Stated fraction of the participants in each group; the rest is divided equally."""
        stated = self.parameters.shares
        levels = self.entries.levels
        rest = max(1 - sum(stated.values()), 0.0) / max(len(levels) - len(stated), 1)
        return tuple(max(stated.get(level, rest), 1e-6) for level in levels)

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Counts, and sums if the study has columns with limits.

        Raises StudyError if a name is not in the study, or the columns or cells are too many.
        """
        shares = self.shares
        first = self.counted
        found = [_release(COUNTS, "describe_cells", first, 1.0, {})]
        if self.averaged:
            many = len(self.entries.levels)
            own = shares["kept"] + shares["moments"]
            numbers = len(self.entries.numbers)
            heard = {"centres": (many, numbers), "scales": (numbers,)}
            found = [
                _release(COUNTS, "describe_cells", first, 1 - own, {}),
                _release(SUMS, "describe_sums", self.summed, own, heard),
            ]
        return tuple(found)

    @cached_property
    def counted(self) -> BlocksBound:
        """Bound of the first round. Two participants' cells are orthogonal or equal."""
        shares = self.shares
        many = len(self.entries.levels)
        variables = len(self.entries.variables)
        norm = math.sqrt(variables)
        cells = many * self.entries.cells
        blocks = [Block("cells", cells, norm, math.sqrt(2) * norm, shares["cells"])]
        if "groups" in shares:
            blocks.append(Block("groups", many, 1.0, math.sqrt(2), shares["groups"]))
        return BlocksBound.of(blocks)

    @cached_property
    def summed(self) -> BlocksBound:
        """Bound of the second round: moments, and clipping factors between 0 and 1."""
        many = len(self.entries.levels)
        size = 2 * many * len(self.entries.numbers)
        norm = math.sqrt(1.5) * self.reach
        return BlocksBound.of(
            [
                Block("moments", size, norm, 2 * self.reach, self.shares["moments"]),
                Block("kept", many, 1.0, math.sqrt(2), self.shares["kept"]),
            ]
        )

    @property
    def computed(self) -> Mapping[str, Array | float]:
        """Clipping norm, which is searched."""
        return {"reach": self.reach} if self.averaged and self.shape.noise else {}

    def remarks(self) -> tuple[str, ...]:
        """Return which numbers of participants become public with noise."""
        curves = ", of times by event" if self.parameters.survival else ""
        sentence = (
            f"Numbers of participants in bins and levels of each column{curves} and of missing "
            "values are released with noise, for each group."
        )
        return (sentence, *((_REPLACED,) if self.parameters.instead_of else ()))

    def compare(self, site: int, data: SiteData) -> tuple[str, ...]:
        """Return a warning if many participants are beyond a column's limits, or none differ."""
        del site
        return levels_off(self, data)

    def run(self) -> Run:
        """Ask for counts, then for sums in the learned units, and describe each group."""
        first = yield Query(COUNTS, "describe_cells")
        counts = estimate_counts(self, first)
        if not self.averaged:
            return describe_result(self, counts, None, None)
        learned = learn_columns(self, counts)
        heard = {"centres": learned.centres, "scales": learned.scales}
        second = yield Query(SUMS, "describe_sums", heard)
        return describe_result(self, counts, learned, second)


def _release(
    stage: str, statistic: str, bound: BlocksBound, share: float, heard: dict[str, tuple[int, ...]]
) -> PlannedRelease:
    return PlannedRelease(
        stage=stage,
        statistic=statistic,
        entries=bound.entries,
        bound=bound,
        rounds=1,
        share=share,
        arguments=heard,
    )


def _suitable_bins(shape: Shape, groups: int, variables: int) -> int:
    """Return a number of bins at which a bin is as wide as the noise in a median.

    A bin has about 1.5/K of the participants, and the share below a median has noise of
    σ √K/2 over the participants of a group.
    """
    if not shape.noise:
        return _MOST_BINS
    noise = shape.noise * math.sqrt(2 * variables / _SHARES["cells"])
    persons = sum(shape.units) / groups
    suitable = math.pow(1.5 * persons / noise, 2 / 3)
    return round(min(max(suitable, _FEWEST_BINS), _MOST_BINS))
