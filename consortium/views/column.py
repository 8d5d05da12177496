"""A column of a table as a study file describes it."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from consortium.base.frozen_model import FrozenModel, Line


class Column(FrozenModel):
    """A column of a table, with public limits to which values beyond them are moved."""

    low: float | None = None
    """Value that becomes -1."""
    high: float | None = None
    """Value that becomes +1."""
    levels: tuple[Line, ...] = Field(default=(), max_length=100)
    """Values of a column of categories: two become -1 and +1, more one entry each, 1 for the
    participant's own and 0 for the others."""

    @model_validator(mode="after")
    def _one_kind(self) -> Column:
        numeric = self.low is not None and self.high is not None
        if numeric == bool(self.levels) or (self.low is None) != (self.high is None):
            raise ValueError("give either 'low' and 'high', or 'levels'")
        if self.low is not None and self.high is not None:
            low = self.low
            high = self.high
            if not 0 < high - low < math.inf:
                raise ValueError(
                    f"low {low:g} is not below high {high:g} by a finite number. Correct them"
                )
        if self.levels and (len(self.levels) < 2 or len(set(self.levels)) < len(self.levels)):
            raise ValueError("give at least two levels, each once")
        return self

    def labels(self, name: str) -> tuple[str, ...]:
        """Return the names of the column's entries."""
        if len(self.levels) > 2:
            return tuple(f"{name}={level}" for level in self.levels)
        return (name,)
