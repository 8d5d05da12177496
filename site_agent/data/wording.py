"""What a site's tables call the columns, levels and gaps that a study names."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

from site_agent.config import Alias

CODED = "(missing, by the study)"
"""Stands for a value that the study calls missing: by its choice, whatever the hospital means."""
NOTHING = ("", "n/a", "na", "nan", "null", CODED)
"""What a cell without a value holds, in small letters."""


Aliases = Mapping[str, Alias]
"""By a study's column, what this site's tables have in its place."""
NO_ALIASES: Aliases = MappingProxyType({})


class Wording(NamedTuple):
    """How cells of a site's tables are read, each alone."""

    missing: tuple[float, ...] = ()
    """The study's: numbers that stand for a missing value."""
    aliases: Aliases = NO_ALIASES
    """The site's own, by the study's column."""

    def column(self, name: str) -> str:
        """What the site calls a study's column."""
        alias = self.aliases.get(name)
        return (alias and alias.column) or name

    def cell(self, name: str, text: str | None) -> str:
        """A cell in the study's words; `CODED` where the study calls its value missing."""
        value = (text or "").strip()
        if name in self.aliases:
            meant = (n for n, own in self.aliases[name].levels.items() if value in own)
            value = next(meant, value)
        return CODED if self.missing and _number(value) in self.missing else value


AS_WRITTEN = Wording()


def is_given(text: str | None) -> bool:
    """Whether a cell holds anything."""
    return (text or "").strip().lower() not in NOTHING


def matching_level(words: str, levels: Sequence[str]) -> str | None:
    """The one level that a description names or is written like; None if it names several."""
    named = [x for x in levels if re.search(rf"(?<!\w){re.escape(x)}(?!\w)", words, re.I)]
    if named:
        return named[0] if len(named) == 1 else None
    return nearest_name(words, [*levels]) if words else None


def nearest_name(name: str, there: list[str]) -> str | None:
    """What is there that is written most like a name, whatever its capitals."""
    small = {each.lower(): each for each in reversed(there)}
    found = get_close_matches(name.lower(), small, n=1, cutoff=0.75)
    return small[found[0]] if found else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
