"""Cells of a site's tables that a study probably misreads, only for the site's staff.

The site's messages do not depend on them: an odd value of one participant would reveal it.

A site's own description of a table is BIDS's JSON next to it. Source: BIDS 1.11, tabular files:
``Levels``, ``Units``; and common notations for codes of a missing value, which BIDS has no field
for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from consortium.algorithms.base import Serious
from consortium.base.atomic import DAMAGED
from consortium.base.formatting import count
from consortium.base.regular_file import text_of
from consortium.errors import DataError
from consortium.study.data_section import PersonRule
from consortium.study.spec import Study
from consortium.views.column import Column
from site_agent.advice import Remedy, nearest_level, write_line
from site_agent.config import Alias
from site_agent.data.bids import labels_in
from site_agent.data.people import participants_path
from site_agent.data.personal import similar_column
from site_agent.data.strange_numbers import months_fit, part_beyond, strange_numbers
from site_agent.data.tsv import Row, rows_or_errors, view_rows
from site_agent.data.wording import (
    PARTICIPANTS,
    Aliases,
    SiteTables,
    Wording,
    is_given,
    matching_level,
)
from site_agent.labels import Spellings

if TYPE_CHECKING:
    from consortium.views.table import TableView

_CODES = ("MissingValues", "MissingValue", "MissingCodes", "NAValues")
_ABSENT = re.compile(
    r"\b(missing|not (available|applicable|known|recorded|collected|measured)|unknown|refused|"
    r"no (data|answer|value)|n/?a)\b",
    re.I,
)


class Description(NamedTuple):
    """A column of a site's table as the site itself describes it."""

    levels: Mapping[str, str]
    """Meaning of each value."""
    unit: str
    missing: tuple[str, ...]
    """Codes of a missing value."""


NOTHING_SAID = Description({}, "", ())


def read_descriptions(table: Path) -> dict[str, Description]:
    """Read the JSON file of a table, by column; nothing if there is none that can be read."""
    said = _description_of(table)
    if not isinstance(said, dict):
        return {}
    return {name: _described(each) for name, each in said.items() if isinstance(each, dict)}


def _description_of(table: Path) -> Any:
    """Return the contents of a table's JSON file, or None if it is missing or damaged."""
    try:
        return json.loads(text_of(table.with_suffix(".json")))
    except (*DAMAGED, DataError):
        return None


def undescribed(table: Path) -> Iterator[str]:
    """Yield a sentence if the JSON file of a table exists and can't be read."""
    path = table.with_suffix(".json")
    said = _description_of(table)
    if path.exists() and not isinstance(said, dict):
        yield (
            f"{path} is not a JSON object in UTF-8, so levels, units and codes for missing values "
            f"that it states are not compared with the study. Correct it."
        )


def _described(said: dict[str, Any]) -> Description:
    given = said.get("Levels")
    levels = {k: _text(v) for k, v in given.items()} if isinstance(given, dict) else {}
    codes = [code for name in _CODES for code in _listed(said.get(name))]
    absent = (value for value, meaning in levels.items() if _ABSENT.search(meaning))
    return Description(
        levels, str(said.get("Units") or ""), tuple(dict.fromkeys((*codes, *absent)))
    )


def _text(meaning: object) -> str:
    """Return a level's meaning, which in BIDS is a text or an object with a description."""
    return str(meaning.get("Description", "")) if isinstance(meaning, dict) else str(meaning)


def _listed(codes: object) -> list[str]:
    return [
        str(code) for code in (codes if isinstance(codes, list) else [codes]) if code is not None
    ]


_NAMED = 5
_LEAVE = "Empty such cells, or ask the coordinator to add the code to data.missing."
_CALLED = (
    "{} is in {}, and the JSON file of the table calls it missing, but the study reads it as a "
    f"value. {_LEAVE}"
)
_CODED = (
    "{} is in {}, far from the other values or outside the study's limits, and counts as a value "
    f"or as the limit. It may be a code for a missing value. {_LEAVE}"
)
Described = Mapping[str, Description]


class Misnamed(Serious):
    """Warning that the hospital can resolve by ``aliases:`` in its own file, without the study."""

    __slots__ = ()


class _Beyond(NamedTuple):
    """A column with many values beyond the study's limits."""

    name: str
    part: float
    words: str


def doubts_about(source: Path, study: Study, tables: SiteTables) -> Iterator[str]:
    """Return sentences on values without a level, clipped values, and codes for missing values.

    The levels, units and codes in the site's own JSON next to a table are also compared with the
    study. Participants of the table who have no folder are named if a study uses images. Raises
    DataError if a table can't be read.
    """
    wording = Wording(study.data.missing, tables)
    units = study.analysis.grouped
    by_session = units is not None and units.sessions
    if study.data.persons:
        table = participants_path(source, tables)
        rules = study.data.persons
        yield from undescribed(table)
        read = [*rows_or_errors(table, rules, wording, by_session=by_session)]
        yield from [str(row) for _, row in read if isinstance(row, DataError)][:_NAMED]
        chosen = [row for _, row in read if not isinstance(row, DataError)]
        described = _descriptions(table, rules, wording)
        yield from _doubts(chosen, [*rules.items()], described, tables.aliases)
    for view in study.features:
        if view.single_columns:  # a view of tables
            own = cast("TableView", view)
            found = view_rows(source, own, wording, by_session=by_session)
            rows = [row for _, row, _ in found if not isinstance(row, DataError)]
            names = [name for name, _ in view.single_columns]
            table = _file_of(source, own, tables)
            yield from () if own.is_by_person else undescribed(table)
            described = _descriptions(table, names, wording)
            yield from _doubts(rows, view.single_columns, described, tables.aliases)
            if own.is_by_person:
                yield from _nobodys(source, own, rows, wording)
    if not study.features or any(
        v.is_series or v.is_image or v.mesh_files is not None for v in study.features
    ):
        yield from _without_folder(source, tables)


def _file_of(source: Path, view: TableView, tables: SiteTables) -> Path:
    return tables.participants_of(source) if view.file == PARTICIPANTS else source / view.file


def _descriptions(table: Path, names: Iterable[str], wording: Wording) -> Described:
    """Return the site's descriptions of a study's columns, by the study's names."""
    found = read_descriptions(table)
    return {name: found.get(wording.column(name), NOTHING_SAID) for name in names}


def _doubts(
    rows: Sequence[Row],
    columns: Sequence[tuple[str, Column | PersonRule]],
    described: Described,
    present: Aliases,
) -> Iterator[str]:
    coded: dict[str, list[str]] = {}
    called: dict[str, list[str]] = {}
    beyond: list[_Beyond] = []
    alike: list[_Alike] = []
    for name, column in columns:
        own = Counter(row[name] or "" for row in rows if is_given(row[name]))
        said = described[name]
        if column.levels:
            yield from _meanings(name, column.levels, said)
            alike += _like_levels(name, own, column.levels, said)
            continue
        for code in said.missing:
            if code in own:
                called.setdefault(code, []).append(name)
        for code in strange_numbers(own, column.low, column.high):
            if isinstance(column, Column) and code not in said.missing:
                coded.setdefault(code, []).append(name)
        beyond += _many_beyond(name, own, column, said)
    if alike:
        yield _misnamed(alike, present)
    yield from (Serious(_CALLED.format(code, _some(names))) for code, names in called.items())
    yield from (Serious(_CODED.format(code, _some(names))) for code, names in coded.items())
    if beyond:
        yield _clipped(beyond)


def _many_beyond(
    name: str, cells: Counter[str], column: Column | PersonRule, said: Description
) -> Iterator[_Beyond]:
    """Yield the column if many values are beyond its limits, as another unit may be meant."""
    part = part_beyond(cells, column.low, column.high)
    months = months_fit(cells, column.low, column.high)
    if not part or not (months or isinstance(column, Column)):
        return
    limits = f"the study has {column.low:g} to {column.high:g}"
    if said.unit:
        limits = f"the JSON next to the table gives it in {said.unit}, {limits}"
    yield _Beyond(name, part, f"{limits}; a twelfth would fit, as of months" if months else limits)


def _clipped(beyond: Sequence[_Beyond]) -> str:
    worst = max(beyond, key=lambda each: each.part)
    return (
        f"{_some([each.name for each in beyond])}: up to {worst.part:.0%} of the participants "
        "here are beyond the study's limits, count as the limit, or are excluded (of "
        f"'{worst.name}' {worst.words}). Check whether the unit is the study's."
    )


def _meanings(name: str, levels: Sequence[str], said: Description) -> Iterator[str]:
    if said.levels and not any(letter.isalpha() for level in levels for letter in level):
        called = ", ".join(f"{k} '{v}'" for k, v in said.levels.items() if k in levels)
        yield (
            f"column '{name}': the JSON next to the table calls {called}. Check whether the study "
            "uses the same levels."
        )


class _Alike(NamedTuple):
    """A value that is not a level of a column but similar to one."""

    column: str
    level: str
    value: str
    words: str


def _like_levels(
    name: str, cells: Counter[str], levels: Sequence[str], said: Description
) -> Iterator[_Alike]:
    for value, many in cells.items():
        own = said.levels.get(value, "")
        like = matching_level(own, levels) or nearest_level(value, levels)
        if value not in levels and value not in said.missing and like is not None:
            called = f" ('{own}' in the JSON next to the table)" if own else ""
            description = (
                f"'{value}'{called} for {count(many, 'participant')}, which resembles {like}"
            )
            yield _Alike(name, like, value, description)


def _misnamed(alike: Sequence[_Alike], present: Aliases) -> Misnamed:
    """Return all aliases in one sentence, with the present ones, as site.yaml has one field."""
    named: dict[str, list[str]] = {}
    levels = {
        name: {level: [*own] for level, own in alias.levels.items()}
        for name, alias in present.items()
    }
    for each in alike:
        named.setdefault(each.column, []).append(each.words)
        levels.setdefault(each.column, {}).setdefault(each.level, []).append(each.value)
    columns = "; ".join(f"column '{name}' has {', '.join(them)}" for name, them in named.items())
    aliases = {name: _as_written(present.get(name), them) for name, them in levels.items()}
    advice = write_line(Remedy.LEVEL_ALIAS, {"aliases": aliases})
    return Misnamed(f"{columns}, and none is a level of the study: if that is meant, {advice}.")


def _as_written(alias: Alias | None, levels: dict[str, list[str]]) -> dict[str, object]:
    """Return an alias as site.yaml has it, with these levels."""
    column = {"column": alias.column} if alias is not None and alias.column else {}
    return {**column, **({"levels": levels} if levels else {})}


def _without_folder(source: Path, tables: SiteTables) -> Iterator[str]:
    """Yield a sentence about the participants of the table that have no images at all."""
    table = tables.participants_of(source)
    if not table.is_file():
        return
    with_images = Spellings(labels_in(source), exact=tables.exact_labels)
    rows = rows_or_errors(table, (), Wording(tables=tables))
    labels = (label for label, row in rows if not isinstance(row, DataError))
    lacking = [label for label in labels if not with_images.knows(label)]
    if lacking:
        who = ", ".join(f"sub-{label}" for label in lacking[:_NAMED])
        more = ", …" if lacking[_NAMED:] else ""
        yield (
            f"{PARTICIPANTS} has {count(len(lacking), 'participant')} without a folder in the "
            f"data set ({who}{more}), whose scans no study finds. Check whether their folders are "
            "missing."
        )


def _nobodys(source: Path, view: TableView, rows: Sequence[Row], wording: Wording) -> Iterator[str]:
    """Yield the first column that is in no participant's file, with one of similar spelling."""
    absent = (name for name, _ in view.single_columns if not any(is_given(r[name]) for r in rows))
    name = next(absent, None)
    like = name and similar_column(source, view, wording.column(name))
    if like:
        advice = write_line(Remedy.COLUMN_ALIAS, {"aliases": {name: {"column": like}}})
        yield Misnamed(
            f"no participant's {view.file} has '{name}', and one has '{like}': if that is meant, "
            f"{advice}, or request another study."
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
    return ", ".join(map(repr, names[:_NAMED])) + more
