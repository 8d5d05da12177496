"""What a site's own description of a table says of its columns: BIDS's JSON beside it.

Source: BIDS 1.11, tabular files: ``Levels``, ``Units``; and what people write there of codes for a
missing value, which BIDS has no field for.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from consortium.base.atomic import DAMAGED
from consortium.base.regular_file import text_of
from consortium.errors import DataError

_CODES = ("MissingValues", "MissingValue", "MissingCodes", "NAValues")
_ABSENT = re.compile(
    r"\b(missing|not (available|applicable|known|recorded|collected|measured)|unknown|refused|"
    r"no (data|answer|value)|n/?a)\b",
    re.I,
)


class Description(NamedTuple):
    """A column by its own site's words."""

    levels: Mapping[str, str]
    """What each value means."""
    unit: str
    missing: tuple[str, ...]
    """Values that stand for a missing one."""


NOTHING_SAID = Description({}, "", ())


def read_descriptions(table: Path) -> dict[str, Description]:
    """Read the JSON beside a table, by column; nothing if there is none that can be read."""
    path = table.with_suffix(".json")
    try:
        said: Any = json.loads(text_of(path))
    except (*DAMAGED, DataError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {name: _described(each) for name, each in said.items() if isinstance(each, dict)}


def _described(said: dict[str, Any]) -> Description:
    given = said.get("Levels")
    levels = {k: _text(v) for k, v in given.items()} if isinstance(given, dict) else {}
    codes = [code for name in _CODES for code in _listed(said.get(name))]
    absent = (value for value, meaning in levels.items() if _ABSENT.search(meaning))
    return Description(
        levels, str(said.get("Units") or ""), tuple(dict.fromkeys((*codes, *absent)))
    )


def _text(meaning: object) -> str:
    """A level's meaning, which BIDS lets be a text or an object with a description."""
    return str(meaning.get("Description", "")) if isinstance(meaning, dict) else str(meaning)


def _listed(codes: object) -> list[str]:
    return [
        str(code) for code in (codes if isinstance(codes, list) else [codes]) if code is not None
    ]
