"""Columns of a study as cells in which participants are counted."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from consortium.algorithms.base import MOST_ENTRIES_A_ROUND, Shape
from consortium.algorithms.describe.parameters import DescribeParameters, SurvivalCurve
from consortium.base.array import Array
from consortium.base.near_names import known_names
from consortium.errors import StudyError
from consortium.views import AnyView
from consortium.views.column import Column

MOST_VARIABLES = 100
UNNAMED = ("no", "yes")
"""Levels of a column of groups if the study's columns are unknown."""


@dataclass(frozen=True)
class Variable:
    """A column, entry or curve. Each participant is counted in one of its cells."""

    view: str
    name: str
    labels: tuple[str, ...]
    """Names of its entries in the study."""
    rows: tuple[int, ...]
    """Their places in a participant's vector. For a curve, the time and the event."""
    kind: Literal["number", "levels", "curve"]
    gaps: bool
    """Whether values may be missing, which has a cell of its own, the last."""
    low: float = -1.0
    high: float = 1.0
    """Values of -1 and 1 in its own unit."""
    levels: tuple[str, ...] = ()
    bins: int = 0

    @property
    def filled(self) -> int:
        """Number of cells of participants with a value."""
        if self.kind == "levels":
            return len(self.levels)
        return 2 * self.bins + 1 if self.kind == "curve" else self.bins

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.filled + self.gaps

    @cached_property
    def edges(self) -> Array:
        """Edges of the bins in its own unit, length ``bins`` + 1."""
        return np.linspace(self.low, self.high, self.bins + 1)

    @property
    def middle(self) -> float:
        """Value of 0 in its own unit."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Size of 1 in its own unit."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class DescribedColumns:
    """Columns that `describe` counts and summarizes, and its groups."""

    groups: Variable | None
    variables: tuple[Variable, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the groups; one for all participants if there are none."""
        return ("all",) if self.groups is None else self.groups.levels

    @property
    def headings(self) -> tuple[str, ...]:
        """Names of the groups in tables, and of all participants."""
        if self.groups is None:
            return ("all",)
        return (*(f"{self.groups.name}={level}" for level in self.levels), "all")

    @cached_property
    def numbers(self) -> tuple[Variable, ...]:
        """Variables with means."""
        return tuple(each for each in self.variables if each.kind == "number")

    @cached_property
    def cells(self) -> int:
        """Number of cells of one group."""
        return sum(each.cells for each in self.variables)


def resolve_columns(parameters: DescribeParameters, shape: Shape) -> DescribedColumns:
    """Return the variables of a study, with 1 bin where the number is not stated.

    Raises StudyError if a name is not in the study or there are none or too many.
    """
    known = list(_variables(parameters, shape))
    groups = _groups(parameters, known)
    curves = [_curve(name, curve, known) for name, curve in parameters.survival.items()]
    used = {name for curve in parameters.survival.values() for name in (curve.time, curve.event)}
    wanted = set(parameters.columns) or {each.name for each in known} - used
    missing = sorted(wanted - {each.name for each in known})
    if missing:
        raise StudyError(
            f"field 'analysis.columns': '{missing[0]}' is not a column or entry of the study. "
            f"{known_names(missing[0], [each.name for each in known])}"
        )
    chosen = [each for each in known if each.name in wanted and each is not groups] + curves
    if not 1 <= len(chosen) <= MOST_VARIABLES:
        raise StudyError(
            f"field 'analysis.columns': must name 1 to {MOST_VARIABLES} columns, got "
            f"{len(chosen)}. Change the columns, or divide them over several studies."
        )
    return DescribedColumns(groups, tuple(chosen))


def check_cells(entries: DescribedColumns) -> None:
    """Raise StudyError if the cells of a description need a message that is too long."""
    many = len(entries.levels) * entries.cells
    if many > MOST_ENTRIES_A_ROUND:
        raise StudyError(
            f"field 'analysis.bins': all columns and groups must have at most "
            f"{MOST_ENTRIES_A_ROUND:,} cells, got {many:,}. Lower bins."
        )


def _variables(parameters: DescribeParameters, shape: Shape) -> Iterator[Variable]:
    """Yield every column and entry of all views, in their order."""
    named = {view.name: view for view in parameters.views}
    start = 0
    for name, size in shape.views:
        view = named.get(name)
        gaps = view is not None and name in parameters.may_lack and view.most_missing > 0
        for labels, column in _columns(view, name, size):
            rows = tuple(range(start, start + len(labels)))
            yield _variable(parameters, name, labels, rows, column, gaps=gaps)
            start += len(labels)


def _columns(
    view: AnyView | None, name: str, size: int
) -> Iterator[tuple[tuple[str, ...], tuple[str, Column | None]]]:
    """Yield the labels of the entries of each column, with its name."""
    if view is not None and view.single_columns:
        for own, column in view.single_columns:
            yield column.labels(own), (own, column)
        return
    labels = (view.names_of(size) if view else ()) or [f"{name}{k + 1}" for k in range(size)]
    for label in labels:
        yield (label,), (label, None)


def _variable(
    parameters: DescribeParameters,
    view: str,
    labels: tuple[str, ...],
    rows: tuple[int, ...],
    column: tuple[str, Column | None],
    *,
    gaps: bool,
) -> Variable:
    name, limits = column
    stated = parameters.bins.get(name, "auto") if isinstance(parameters.bins, dict) else None
    bins = parameters.bins if stated is None else stated
    found = Variable(
        view=view,
        name=name,
        labels=labels,
        rows=rows,
        kind="number",
        gaps=gaps,
        bins=bins if isinstance(bins, int) else 0,
    )
    if limits is None:
        unknown = name == parameters.groups
        return replace(found, kind="levels", levels=UNNAMED, bins=0) if unknown else found
    if limits.low is None or limits.high is None:
        return replace(found, kind="levels", levels=limits.levels, bins=0)
    return replace(found, low=limits.low, high=limits.high)


def _groups(parameters: DescribeParameters, known: list[Variable]) -> Variable | None:
    if not parameters.groups:
        return None
    return _named(parameters.groups, known, "groups")


def _named(name: str, known: list[Variable], field: str) -> Variable:
    for each in known:
        if each.name == name:
            return each
    raise StudyError(
        f"field 'analysis.{field}': '{name}' is not a column of the study. Correct its name."
    )


def _curve(name: str, curve: SurvivalCurve, known: list[Variable]) -> Variable:
    """Return a curve as a variable."""
    time = _named(curve.time, known, f"survival.{name}.time")
    event = _named(curve.event, known, f"survival.{name}.event")
    return Variable(
        view=time.view,
        name=name,
        labels=(*time.labels, *event.labels[:1]),
        rows=(time.rows[0], event.rows[0]),
        kind="curve",
        gaps=time.gaps or event.gaps,
        low=time.low,
        high=time.high,
        bins=curve.bins,
    )
