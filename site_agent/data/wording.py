"""What a site's tables call the columns, levels and gaps that a study names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

from pydantic import Field, model_validator

from consortium.base.frozen_model import FrozenModel

NOTHING = ("", "n/a", "na", "nan", "null")
"""What a cell without a value holds, in small letters."""


class Alias(FrozenModel):
    """What this site's tables have in the place of a study's column."""

    column: str | None = Field(
        default=None, min_length=1, max_length=200, description="Name of the column here."
    )
    levels: dict[str, tuple[str, ...]] = Field(
        default={},
        max_length=100,
        description="By level of the study, the values here that mean it, as {SCZ: [scz, '1']}.",
    )

    @model_validator(mode="after")
    def _each_means_one(self) -> Alias:
        values = [value for own in self.levels.values() for value in own]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ValueError(f"levels: '{twice[0]}' means two levels; let each value mean one")
        return self


Aliases = Mapping[str, Alias]
"""By a study's column, what this site's tables have in its place."""
NO_ALIASES: Aliases = MappingProxyType({})


class Wording(NamedTuple):
    """How cells of a site's tables are read, each alone.

    Parameters
    ----------
    missing : tuple of float
        The study's: numbers that stand for a missing value.
    aliases : mapping of str to Alias
        The site's own, by the study's column.
    """

    missing: tuple[float, ...] = ()
    aliases: Aliases = NO_ALIASES

    def column(self, name: str) -> str:
        """What the site calls a study's column."""
        alias = self.aliases.get(name)
        return (alias and alias.column) or name

    def cell(self, name: str, text: str | None) -> str:
        """A cell in the study's words; empty where it stands for a missing value."""
        value = (text or "").strip()
        if name in self.aliases:
            meant = (n for n, own in self.aliases[name].levels.items() if value in own)
            value = next(meant, value)
        return "" if self.missing and _number(value) in self.missing else value


AS_WRITTEN = Wording()


def is_given(text: str | None) -> bool:
    """Whether a cell holds anything."""
    return (text or "").strip().lower() not in NOTHING


def nearest(name: str, there: list[str]) -> str | None:
    """What is there that is written most like a name, whatever its capitals."""
    small = {each.lower(): each for each in reversed(there)}
    found = get_close_matches(name.lower(), small, n=1, cutoff=0.75)
    return small[found[0]] if found else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
