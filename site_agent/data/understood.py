"""Summary of a site's files as its readers understood them, for checks by the site's staff.

`site-agent check` prints it. It stays at the site, and nothing that the site sends depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Fact(NamedTuple):
    """One line of the summary of a site's files."""

    topic: str
    """Noun phrase that is the same in every study, such as 'repetition time'."""
    finding: str
    """Value, its source and the number of participants, such as '2 s, from the JSON files of 78
    participants'."""


@dataclass(frozen=True)
class Understanding:
    """Summary of one data set as one study reads it."""

    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about values and choices that may be wrong. A sentence of class
    `consortium.algorithms.base.Serious` is a warning, which `approve --yes` does not pass."""

    def __add__(self, other: Understanding) -> Understanding:
        """Return both summaries as one."""
        return Understanding(self.facts + other.facts, self.notes + other.notes)
