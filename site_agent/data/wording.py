"""Names and values of a site's tables for the columns, levels and gaps that a study names."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from consortium.base.near_names import nearest_name
from site_agent.config import Alias

CODED = "(missing, by the study)"
"""Placeholder of a code that the study counts as missing, whatever its meaning here."""
NOTHING = ("", "n/a", "na", "nan", "null", CODED)
"""Content of a cell without a value, in small letters."""


Aliases = Mapping[str, Alias]
"""By the study's column, the names and values of this site's tables."""
NO_ALIASES: Aliases = MappingProxyType({})


PARTICIPANTS = "participants.tsv"


class SiteTables(NamedTuple):
    """Settings of a site's own tables, from its site.yaml."""

    aliases: Aliases = NO_ALIASES
    """By the study's column."""
    participants: Path | None = None
    """The table of participants, if it is not in the data set."""
    exact_labels: bool = False
    """Whether labels that differ in case or zeros are different participants."""
    accept_unoriented: bool = False
    """Whether images that do not state their orientation are used."""

    def participants_of(self, source: Path) -> Path:
        """Return the path of the table of a data set's participants, whether or not it exists."""
        return source / PARTICIPANTS if self.participants is None else self.participants


PLAIN_TABLES = SiteTables()
"""Settings of a site that states none."""


class Wording(NamedTuple):
    """Reader of the cells of a site's tables, each cell independently."""

    missing: tuple[float, ...] = ()
    """The study's codes for a missing value."""
    tables: SiteTables = PLAIN_TABLES
    """The site's own settings."""

    def column(self, name: str) -> str:
        """Return the site's name of a study's column."""
        alias = self.tables.aliases.get(name)
        return alias.column.strip() if alias and alias.column else name

    def cell(self, name: str, text: str | None) -> str:
        """Return a cell in the study's words, or `CODED` for one of its codes for missing."""
        value = (text or "").strip()
        alias = self.tables.aliases.get(name)
        if alias is not None:
            meant = (n for n, own in alias.levels.items() if value in own)
            value = next(meant, value)
        return CODED if self.missing and number_of(value) in self.missing else value


AS_WRITTEN = Wording()


def is_given(text: str | None) -> bool:
    """Return whether a cell of a participants' table contains anything."""
    return (text or "").strip().lower() not in NOTHING


def matching_level(words: str, levels: Sequence[str]) -> str | None:
    """Return the one level of a column that a table's value resembles; None if it fits several."""
    named = [x for x in levels if re.search(rf"(?<!\w){re.escape(x)}(?!\w)", words, re.I)]
    if named:
        return named[0] if len(named) == 1 else None
    return nearest_name(words, [*levels]) if words else None


def number_of(text: str) -> float | None:
    """Return the finite number that a table's cell contains, or None; '1_000' is not a number."""
    value = text.strip()
    if not value.isascii() or "_" in value:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
