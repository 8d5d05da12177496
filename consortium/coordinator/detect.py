"""Suggestions for a study from a coordinator's own table: names, and never a number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consortium.base.formatting import number
from consortium.errors import StudyError
from site_agent.data.tsv import given_in, person_rows
from site_agent.data.wording import is_given
from site_agent.labels import Spellings

PUBLIC = (
    "No number of this table is written into the study, because a study is public permanently. "
    "State limits and numbers that are published or agreed upon; the names of columns and levels "
    "also become public."
)
_NUMERIC = 0.9  # least fraction of numbers among the cells with content
_FEW = 2  # participants of a level, below which it is probably a mistake
_FIRST = re.compile(r"(healthy|control|contr?|hc|cn|td|no|none|0)s?", re.I)
"""The level that others are compared against, as tables write it."""
_COVARIATE = re.compile(r"age|sex|gender|site|scanner|education|tiv|etiv|icv", re.I)
_PLAIN = re.compile(r"[^,\[\]*]+")


@dataclass(frozen=True)
class Detected:
    """Columns and names that a coordinator's own table suggests for a study."""

    groups: dict[str, tuple[str, str]]
    """Columns with two levels, and these, the one that is compared against first."""
    numeric: dict[str, tuple[float, float]]
    """Columns of numbers, with mean and standard deviation over this table's participants."""

    def suggested(self) -> dict[str, str]:
        """Return answers that a new glm lacks, by names: column, levels and outcomes.

        Raises StudyError if no column has two levels, or there are several to choose from.
        """
        wanted = self._candidates()
        if len(wanted) != 1:
            found = ", ".join(wanted) or "none"
            raise StudyError(
                f"Columns with two levels in the table: {found}. Say by --column which has the "
                "groups, and by --levels which two."
            )
        return {"column": wanted[0], **self.of(wanted[0])}

    def described(self, column: str | None) -> dict[str, str]:
        """Return answers that a new describe lacks: every column of numbers, by group if clear."""
        wanted = self._candidates() if column is None else [column]
        answers = {"outcomes": ",".join(self.numeric)} if self.numeric else {}
        if len(wanted) == 1 and wanted[0] in self.groups:
            answers |= {"column": wanted[0], "levels": ",".join(self.groups[wanted[0]])}
        return answers

    def _candidates(self) -> list[str]:
        return [name for name in self.groups if not _COVARIATE.fullmatch(name)]

    def of(self, column: str) -> dict[str, str]:
        """Return the same as `suggested`, for a column that was named."""
        names = [n for n in self.numeric if n != column and not _COVARIATE.fullmatch(n)]
        answers = {"outcomes": ",".join(names)} if names else {}
        if column in self.groups:
            answers["levels"] = ",".join(self.groups[column])
        return answers

    def lines(self) -> list[str]:
        """Return a description of the contents, only for the coordinator."""
        groups = [f"{name}: {' or '.join(pair)}" for name, pair in self.groups.items()]
        lines = [f"Columns with two levels: {'; '.join(groups) or 'none'}."]
        for name, (mean, deviation) in self.numeric.items():
            lines.append(f"{name}: mean {number(mean)}, deviation {number(deviation)} here.")
        return lines


def detect(table: Path) -> Detected:
    """Read a table of participants; raises DataError if it can't be read."""
    names = [name for name in given_in(table, Spellings()) if _PLAIN.fullmatch(name)]
    rows = [row for _, row in person_rows(table, names)]
    groups: dict[str, tuple[str, str]] = {}
    numeric: dict[str, tuple[float, float]] = {}
    for name in names:
        cells = [(row[name] or "").strip() for row in rows if is_given(row[name])]
        levels = sorted(set(cells), key=lambda level: (not _FIRST.fullmatch(level), level))
        values = _numbers(cells)
        if len(levels) == 2 and min(map(cells.count, levels)) >= _FEW:
            if all(map(_PLAIN.fullmatch, levels)):
                groups[name] = levels[0], levels[1]
        elif cells and len(values) >= _NUMERIC * len(cells):
            numeric[name] = float(np.mean(values)), float(np.std(values))
    return Detected(groups, numeric)


def _numbers(cells: Sequence[str]) -> list[float]:
    found = []
    for cell in cells:
        try:
            value = float(cell)
        except ValueError:
            continue
        if np.isfinite(value):
            found.append(value)
    return found
