"""The second column of the tables of parameters: each one's type and default, from its field."""

import re
from functools import cache
from pathlib import Path

from consortium.study.reader import study_schema
from generators.study_fields import study_fields

_TABLE = re.compile(r"^\| parameter \| type, default \| meaning \|\n\| --- .*\n((?:\|.*\n)+)", re.M)
_ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", re.MULTILINE)
_NAME = re.compile(r"`(\w+)")
_LIMIT_OF_A_WORD = re.compile(r" and below (?:2,147,483,648|4,294,967,296)| matching `[^`]*`")


@cache
def _fields() -> dict[str, dict[str, str]]:
    """Return type and default of every field, by analysis and name."""
    found = {}
    for part in study_fields(study_schema()).split("\n## `analysis` with `algorithm: ")[1:]:
        name, _, rest = part.partition("`\n")
        rows = _ROW.findall(rest.split("\n## ")[0])
        found[name] = {field: _kind(value, default) for field, value, default in rows}
    return found


def _kind(value: str, default: str) -> str:
    plain = _LIMIT_OF_A_WORD.sub("", value).replace(", see below", "")
    if default in ("", "see below"):
        return plain
    named = {"`True`": "`true`", "`False`": "`false`"}.get(default, default)
    return f"{plain}, required" if default == "required" else f"{plain} (default: {named})"


def with_kinds(page: Path, text: str) -> str:
    """Write types and defaults into the table of parameters of an analysis's page."""
    fields = _fields().get(page.stem, {}) if page.parent.name == "analyses" else {}
    return _TABLE.sub(lambda table: _filled(table[0], table[1], fields), text) if fields else text


def _filled(table: str, rows: str, fields: dict[str, str]) -> str:
    lines = []
    for row in rows.splitlines():
        first, _, rest = row.removeprefix("| ").partition(" | ")
        known = {name: fields[name] for name in _NAME.findall(first) if name in fields}
        lines.append(f"| {first} | {_each(known) or '–'} | {rest.partition(' | ')[2]}")
    return table.removesuffix(rows) + "\n".join(lines) + "\n"


def _each(kinds: dict[str, str]) -> str:
    """Return the kinds of a row's fields; with their names if they differ."""
    if len(set(kinds.values())) <= 1:
        return next(iter(kinds.values()), "")
    return ". ".join(f"`{name}`: {words}" for name, words in kinds.items())
