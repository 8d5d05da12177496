"""Cells of a site's tables that can't be meant as a study reads them: for the site's people alone.

Nothing that the site sends depends on it: what a study finds odd of one person tells of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from consortium.base.formatting import count
from consortium.study.choice import PersonRule
from consortium.study.spec import Study
from consortium.views.column import Column
from site_agent.data.people import participants_of
from site_agent.data.tsv import Row, read_rows, rows_of
from site_agent.data.wording import Aliases, Wording, is_given, nearest

if TYPE_CHECKING:
    from consortium.views.table import TableView

_NAMED = 5
_FAR = 1.0  # widths between a column's limits, beyond them


def doubts_about(source: Path, study: Study, aliases: Aliases) -> Iterator[str]:
    """Say which values are read as no level, or look like codes for a missing value.

    Raises
    ------
    DataError
        If a table can't be read.
    """
    wording = Wording(study.data.missing, aliases)
    if study.data.persons:
        rules = study.data.persons
        chosen = [row for _, row in read_rows(participants_of(source), rules, wording)]
        yield from _doubts(chosen, [*rules.items()])
    for view in study.features:
        if view.single_columns:  # of a table
            rows = [row for _, row, _ in rows_of(source, cast("TableView", view), wording)]
            yield from _doubts(rows, view.single_columns)


def _doubts(
    rows: Sequence[Row], columns: Iterable[tuple[str, Column | PersonRule]]
) -> Iterator[str]:
    coded: dict[str, list[str]] = {}
    for name, column in columns:
        cells = Counter(row[name] or "" for row in rows if is_given(row[name]))
        if column.levels:
            yield from _other_levels(name, cells, column.levels)
        elif isinstance(column, Column):
            for code in _codes(cells, column):
                coded.setdefault(code, []).append(name)
    for code, names in coded.items():
        more = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
        yield (
            f"{code} stands in {', '.join(map(repr, names[:_NAMED]))}{more}, far outside the "
            "study's limits, and counts as the limit: if it is a code for a missing value, leave "
            "such cells empty, or ask the coordinator to name it in data.missing."
        )


def _other_levels(name: str, cells: Counter[str], levels: Sequence[str]) -> Iterator[str]:
    for value, many in cells.items():
        like = nearest(value, [*levels]) if value not in levels else None
        if like is not None:
            yield (
                f"column '{name}' has '{value}' for {count(many, 'person')}, which is none of the "
                f"study's levels and looks like {like}: if it is, write 'aliases: {{{name}: "
                f"{{levels: {{{like}: ['{value}']}}}}}}' into site.yaml."
            )


def _codes(cells: Counter[str], column: Column) -> Iterator[str]:
    """Values far beyond a column's limits, or beyond them and there twice."""
    low, high = column.low or 0.0, column.high or 0.0
    for text, many in cells.items():
        try:
            value = float(text)
        except ValueError:
            continue
        beyond = max(low - value, value - high) / (high - low)
        if beyond > _FAR or (beyond > 0 and many > 1 and value.is_integer()):
            yield text
