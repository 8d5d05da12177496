"""Views made of a table's columns."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from consortium.frozen_model import FrozenModel
from consortium.views.base import BesideName, ViewName

_RANGE = re.compile(r"^(?P<stem>[A-Za-z0-9_.-]*)\[(?P<first>\d{1,5})-(?P<last>\d{1,5})\]$")
MOST_COLUMNS = 20_000


class Column(FrozenModel):
    """A column of a table, with public limits: what lies beyond them is moved to them."""

    low: float | None = Field(default=None, description="Value that becomes -1.")
    high: float | None = Field(default=None, description="Value that becomes +1.")
    levels: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Values of a column of categories: two become -1 and +1, more one entry each, "
        "1 for the person's own and 0 for the others.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Column:
        numeric = self.low is not None and self.high is not None
        if numeric == bool(self.levels) or (self.low is None) != (self.high is None):
            raise ValueError("give either 'low' and 'high', or 'levels'")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; correct them")
        if self.levels and (len(self.levels) < 2 or len(set(self.levels)) < len(self.levels)):
            raise ValueError("give at least two levels, each once")
        return self

    def labels(self, name: str) -> tuple[str, ...]:
        """Names of the column's entries."""
        if len(self.levels) > 2:
            return tuple(f"{name}={level}" for level in self.levels)
        return (name,)


class TableView(FrozenModel):
    """Columns of a table with one line per person."""

    name: ViewName = Field(description="Name of the view.")
    source: Literal["table"] = Field(description="A table of the data set.")
    file: BesideName = Field(
        default="participants.tsv",
        description="Tab-separated table in the data set's folder, with a column participant_id.",
    )
    columns: dict[str, Column] = Field(
        min_length=1,
        description="Columns in their order, each with its public limits; 'x[0-63]' stands for x0 "
        "to x63.",
    )

    @field_validator("columns")
    @classmethod
    def _not_too_many(cls, columns: dict[str, Column]) -> dict[str, Column]:
        count = 0
        for name, column in columns.items():
            found = _RANGE.match(name)
            if found and int(found["first"]) > int(found["last"]):
                raise ValueError(f"{name}: the range runs backwards; swap its ends")
            many = int(found["last"]) - int(found["first"]) + 1 if found else 1
            count += many * len(column.labels(name))
            if not found and not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                raise ValueError(f"{name[:40]!r} is no column's name; use letters, digits, _ . -")
        if count > MOST_COLUMNS:
            raise ValueError(f"{count} entries are more than {MOST_COLUMNS}; name fewer columns")
        return columns

    @property
    def single_columns(self) -> tuple[tuple[str, Column], ...]:
        """Every column by its own name."""
        found: list[tuple[str, Column]] = []
        for name, column in self.columns.items():
            span = _RANGE.match(name)
            if span is None:
                found.append((name, column))
                continue
            numbers = range(int(span["first"]), int(span["last"]) + 1)
            found += [(f"{span['stem']}{number}", column) for number in numbers]
        return tuple(found)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the view's entries."""
        return tuple(x for name, column in self.single_columns for x in column.labels(name))
