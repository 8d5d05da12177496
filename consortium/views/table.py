"""Views made of a table's columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator

from consortium.base.formatting import count
from consortium.views.base import BaseView, BesideName, Label
from consortium.views.column import Column
from consortium.views.regions import REGIONS

_RANGE = re.compile(r"^(?P<stem>[A-Za-z0-9_.&-]*)\[(?P<first>\d{1,5})-(?P<last>\d{1,5})\]$")
_NAME = re.compile(r"[A-Za-z0-9_.&-]{1,64}")
_REGION = "*"
"""Stands for a region in a column's name."""
MOST_COLUMNS = 20_000
ANYONE = "sub-*"
"""Stands for a person's folder in the path of stats files."""


class TableView(BaseView):
    """Columns of a table with one line per person."""

    source: Literal["table"] = Field(description="A table of the data set.")
    file: BesideName = Field(
        default="participants.tsv",
        description="Table in the data set's folder, separated by tabs or commas, with a column "
        "participant_id, or one in front as aparcstats2table, asegstats2table and ENIGMA's tables "
        "have it; or FreeSurfer's stats files, with 'sub-*' for a person's folder, as "
        "freesurfer/sub-*/stats/lh.aparc.stats, whose columns are regions with measures, as "
        "insula_ThickAvg.",
    )
    columns: dict[str, Column] = Field(
        min_length=1,
        description="Columns in their order, each with its public limits; 'x[0-63]' stands for x0 "
        "to x63, and '*' for each of the 'regions', as in 'lh_*_thickness'.",
    )
    regions: Literal["desikan", "destrieux", "aseg"] | tuple[Label, ...] = Field(
        default=(),
        description="What '*' in a column's name stands for: FreeSurfer's regions of an atlas "
        "('desikan', 34 a hemisphere; 'destrieux', 74; 'aseg', 14 nuclei), or a list of names.",
    )
    gaps: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="Part of the columns in which a person may have no value. Outcomes of `glm` "
        "may have gaps: how often each is missing is then released with the rest, and effects are "
        "of those who have it. Who lacks more is left out, as everybody who lacks any is without.",
    )

    @field_validator("columns")
    @classmethod
    def _not_too_many(cls, columns: dict[str, Column]) -> dict[str, Column]:
        many = 0
        for name, column in columns.items():
            found = _RANGE.match(name)
            if found and int(found["first"]) > int(found["last"]):
                raise ValueError(f"{name}: the range runs backwards; swap its ends")
            span = int(found["last"]) - int(found["first"]) + 1 if found else 1
            many += span * len(column.labels(name))
            if not found and not _NAME.fullmatch(name.replace(_REGION, "x", 1)):
                raise ValueError(f"{name[:40]!r} is no column's name; use letters, digits, _ . & -")
        if many > MOST_COLUMNS:
            raise ValueError(f"{many} entries are more than {MOST_COLUMNS}; name fewer columns")
        return columns

    @model_validator(mode="after")
    def _regions_are_meant(self) -> TableView:
        if any(_REGION in name for name in self.columns) != bool(self.regions):
            raise ValueError(
                "columns: a name with '*' and 'regions' belong together, as 'lh_*_thickness' with "
                "regions: desikan; give both, or neither"
            )
        names = [name for name, _ in self.single_columns]
        twice = sorted({name for name in names if names.count(name) > 1}) if self.regions else []
        if twice:
            raise ValueError(f"columns: {twice[0]} is there twice; name each column once")
        return self

    @property
    def columns_read(self) -> tuple[tuple[str, str], ...]:
        """Its file with each of its columns."""
        return tuple((self.file, name) for name, _ in self.single_columns)

    @property
    def is_of_stats(self) -> bool:
        """Whether it is read from a stats file of each person."""
        return ANYONE in self.file.split("/")

    @property
    def single_columns(self) -> tuple[tuple[str, Column], ...]:
        """Every column by its own name."""
        found: list[tuple[str, Column]] = []
        for name, column in self.columns.items():
            span = _RANGE.match(name)
            if span is None:
                found += [(each, column) for each in self._of_regions(name)]
                continue
            numbers = range(int(span["first"]), int(span["last"]) + 1)
            found += [(f"{span['stem']}{number}", column) for number in numbers]
        return tuple(found)

    def _of_regions(self, name: str) -> tuple[str, ...]:
        if _REGION not in name:
            return (name,)
        regions = REGIONS[self.regions] if isinstance(self.regions, str) else self.regions
        return tuple(name.replace(_REGION, region) for region in regions)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the view's entries."""
        return tuple(x for name, column in self.single_columns for x in column.labels(name))

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """Levels of a column that has an entry for each: everybody has one of them."""
        del size
        start = 0
        for name, column in self.single_columns:
            many = len(column.labels(name))
            if many > 1:
                yield range(start, start + many), 1.0
            start += many

    def size(self, image_features: int, maps: int) -> int:
        """Entries of all columns."""
        del image_features, maps
        return len(self.labels)

    @property
    def most_missing(self) -> float:
        """Part of the columns that a person may lack."""
        return self.gaps

    @property
    def heading(self) -> str:
        """Name, and the table's file."""
        return f"{self.name} (columns of {self.file})"

    def methods_sentence(self, size: int) -> str:
        """Say where its numbers are from."""
        return f"{self.name} ({count(size, 'number')}) from the columns of {self.file}"
