"""Which persons and which of their recordings a study takes: by public rules, each person alone."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from consortium.base.frozen_model import FrozenModel, Line

_COLUMN = re.compile(r"[A-Za-z0-9_.&-]{1,64}")


class PersonRule(FrozenModel):
    """What a person's own value of a column must be for a study to take them."""

    levels: tuple[Line, ...] = Field(default=(), max_length=100)
    """Values of a column of categories that are taken."""
    low: float | None = None
    """Least number that is taken."""
    high: float | None = None
    """Largest number that is taken."""

    @model_validator(mode="after")
    def _one_kind(self) -> PersonRule:
        numeric = self.low is not None or self.high is not None
        if numeric == bool(self.levels):
            raise ValueError("give either 'levels', or 'low' or 'high' or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is above high {self.high:g}; correct them")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("a level is there twice; give each once")
        return self

    def takes(self, value: str) -> bool:
        """Whether a person with this value is taken; who has none, or no number, is not."""
        if self.levels:
            return value in self.levels
        try:
            number = float(value)
        except ValueError:
            return False
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return math.isfinite(number) and low <= number <= high


def _columns(rules: dict[str, PersonRule]) -> dict[str, PersonRule]:
    for name in rules:
        if not _COLUMN.fullmatch(name):
            raise ValueError(f"{name[:40]!r} is no column's name; use letters, digits, _ . & -")
    return rules


PersonRules = Annotated[dict[str, PersonRule], AfterValidator(_columns)]
"""By column of the site's participants.tsv; a person is taken who fits all of them."""
