"""Remedies in messages: the line to write, and its file.

Every `Remedy` is applied to a failing input by a test, which reads the lines from the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

import yaml

from consortium.base.near_names import nearest_name

_LISTED = 12
_MOST = 40
_WORD = re.compile(r"[\w.&-]+")
_FIXED = {"participant_id": "labels", "session_id": "sessions", "reason": "reasons"}
"""Columns that a site can't rename, with their contents."""


class Remedy(Enum):
    """Kinds of remedies for a data set, each with the file that it changes."""

    COLUMN_ALIAS = "site.yaml: the name of a column here"
    LEVEL_ALIAS = "site.yaml: the values here that mean a level"
    EXACT_LABELS = "site.yaml: labels that differ in zeros are different participants"
    PARTICIPANTS = "site.yaml: the path of the table of participants"


def write_line(remedy: Remedy, fields: Mapping[str, Any]) -> str:
    """Return the advice to write a line into a file, quoted where YAML needs it.

    Examples
    --------
    >>> write_line(Remedy.COLUMN_ALIAS, {"aliases": {"age": {"column": "Age: years"}}})
    "write 'aliases: {age: {column: 'Age: years'}}' into site.yaml"
    """
    text = yaml.safe_dump(
        dict(fields), default_flow_style=True, width=1 << 20, allow_unicode=True, sort_keys=False
    )
    file = remedy.value.partition(":")[0]
    return f"write '{text.strip()[1:-1]}' into {file}"


def exact_labels() -> str:
    """Return the advice for a site with two participants whose labels are alike."""
    return write_line(Remedy.EXACT_LABELS, {"labels": "exact"})


def missing_column(name: str, columns: Sequence[str]) -> str:
    """Return the sentences of an error about a column that a table lacks."""
    like = nearest_name(name, columns)
    if like is not None and name not in _FIXED:
        advice = write_line(Remedy.COLUMN_ALIAS, {"aliases": {name: {"column": like}}})
        return (
            f"a column '{name}' is required, and the table has a column '{like}'. If that is "
            f"meant, {advice}. Otherwise add the column."
        )
    some = ", ".join(f"'{each}'" for each in columns[:_LISTED])
    more = f" and {len(columns) - _LISTED} more" if len(columns) > _LISTED else ""
    have = f"the columns are {some}{more}" if columns else "line 1 names no column"
    if len(columns) == 1 and not _WORD.fullmatch(columns[0]):
        return (
            f"a column '{name}' is required, and line 1 is '{columns[0][:_MOST]}', which is not a "
            "header. Delete the lines before the header."
        )
    if name in _FIXED:
        of = _FIXED[name]
        return f"a column '{name}' is required, and {have}. Give the column of {of} this name."
    advice = write_line(Remedy.COLUMN_ALIAS, {"aliases": {name: {"column": "NAME"}}})
    return (
        f"a column '{name}' is required, and {have}. If one of them is meant, {advice} with its "
        "name as NAME. Otherwise add the column."
    )


def nearest_level(value: str, levels: Sequence[str]) -> str | None:
    """Return the one level that a value in a message resembles, such as M for 'Male'."""
    small = value.strip().casefold()
    with suppress(ValueError):
        number = float(small)
        same = [x for x in levels if _as_number(x) == number]
        return same[0] if len(same) == 1 else None
    like = nearest_name(value, levels)
    if like is not None or not small.isalpha():
        return like
    begun = [x for x in levels if x.isalpha() and _begins(small, x.casefold())]
    return begun[0] if len(begun) == 1 else None


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
