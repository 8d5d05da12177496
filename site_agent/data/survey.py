"""Who of a data set takes part: persons with their recordings, and those who are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from consortium.errors import DataError

Reason = Literal["no-image", "no-view", "over-limit", "too-few-volumes", "unusable"]
Without = Callable[[Sequence[str]], Collection[str]]
"""Tells of labels which persons are left out; it knows nothing of their data."""


@dataclass(frozen=True)
class Run:
    """One recording: the image, and the confounds table if there is one."""

    bold: Path
    confounds: Path | None = None


@dataclass(frozen=True)
class Subject:
    """One person with all their recordings: the unit that a study protects.

    ``label`` stays at the site.
    """

    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Skipped:
    """A person who is not in the analysis, or can't be.

    Parameters
    ----------
    label : str
        Stays at the site, as does ``detail``.
    reason : str
        ``no-image``, ``no-view``, ``over-limit`` and ``too-few-volumes`` are left out;
        ``unusable`` must be mended first.
    detail : str
        One sentence.
    """

    label: str
    reason: Reason
    detail: str


def nobody(labels: Sequence[str]) -> Collection[str]:
    """Leave nobody out."""
    del labels
    return ()


def over_the_limit(label: str) -> Skipped:
    """Say that a person has no budget left."""
    detail = f"sub-{label} has no budget left for this study, by the ledger; left out."
    return Skipped(label, "over-limit", detail)


@dataclass(frozen=True)
class Survey:
    """What the headers of all images tell.

    Parameters
    ----------
    subjects : tuple of Subject
        Who takes part.
    lengths : tuple of int
        Volumes of each of them, over all runs.
    skipped : tuple of Skipped
        Who does not, and why.
    """

    subjects: tuple[Subject, ...]
    lengths: tuple[int, ...]
    skipped: tuple[Skipped, ...]

    def sound(self, nobody: str) -> Survey:
        """Return the survey itself, if a study can be run on it.

        Parameters
        ----------
        nobody : str
            What to say if nobody takes part.

        Raises
        ------
        DataError
            If somebody's data are unusable, or nobody takes part.
        """
        for skipped in self.skipped:
            if skipped.reason == "unusable":
                raise DataError(skipped.detail)
        if not self.lengths:
            raise DataError(nobody)
        return self
