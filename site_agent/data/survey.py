"""Participants of a data set whom several choices in turn include, with their recordings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from consortium.errors import DataError
from site_agent.labels import Spellings

Reason = Literal[
    "no-image",
    "no-view",
    "not-chosen",
    "does-not-fit",
    "left-out-here",
    "over-limit",
    "too-few-volumes",
    "unusable",
]


class NobodyError(DataError):
    """No participant of the data set has the study's data; in words for the site's own staff.

    A run continues without any participant, since its end would reveal that there is none.
    """


def sidecar_path(image: Path) -> Path:
    """Return the path of the JSON file next to an image, whether it exists or not."""
    name = image.name
    for ending in (".gz", ".nii", ".gii", ".dtseries", ".ptseries", ".func"):
        name = name.removesuffix(ending)
    return image.with_name(f"{name}.json")


@dataclass(frozen=True)
class RecordingRun:
    """One recording: the image, and the confounds table if there is one.

    Of a pair of GIFTI files ``bold`` is that of the left hemisphere and ``right`` the other.
    """

    bold: Path
    confounds: Path | None = None
    right: Path | None = None
    sidecars: tuple[Path, ...] | None = None
    """JSON files that apply to the image by BIDS's inheritance principle, the nearest first. None
    means the one next to the image."""

    @property
    def metadata(self) -> tuple[Path, ...]:
        """JSON files that apply to the image, the nearest first, also links to missing files."""
        if self.sidecars is not None:
            return self.sidecars
        path = sidecar_path(self.bold)
        return (path,) if os.path.lexists(path) else ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read: the image, its JSON files, the confounds table.

        A JSON file in a folder without rights is among them, so reading it is an error.
        """
        metadata = (path for path in self.metadata if not _is_missing(path))
        more = (path for path in (self.confounds, self.right) if path is not None)
        return self.bold, *metadata, *more


def _is_missing(path: Path) -> bool:
    """Return whether nothing is at a path, or only a broken link."""
    try:
        path.stat()
    except OSError as error:
        return not isinstance(error, PermissionError)
    return False


@dataclass(frozen=True)
class Subject:
    """One participant with all their recordings: the unit that a study protects.

    ``label`` stays at the site.
    """

    label: str
    runs: tuple[RecordingRun, ...]


@dataclass(frozen=True)
class SkippedPerson:
    """A participant who is not in the analysis, or can't be."""

    label: str
    """Label of the participant, which stays at the site, as does ``detail``."""
    reason: Reason
    """Reason, such as ``not-chosen`` by the study's rules for participants and recordings,
    ``does-not-fit`` by its rules for values, ``left-out-here`` by the hospital's own table,
    ``unusable`` without valid files."""
    detail: str
    """One sentence or several."""
    hint: str = ""
    """Those of the sentences that suggest a cause, such as a file of a similar name."""


Without = Callable[[Sequence[str]], Iterable[SkippedPerson]]
"""Function that returns the excluded participants among labels, and why, without their images."""


def excludes_nobody(labels: Sequence[str]) -> Iterable[SkippedPerson]:
    """Exclude no participant of the data set: the default choice of participants."""
    del labels
    return ()


def in_turn(*hooks: Without) -> Without:
    """Apply several choices, each to the participants whom the earlier ones included."""

    def ask(labels: Sequence[str]) -> Iterable[SkippedPerson]:
        out: dict[str, SkippedPerson] = {}
        for hook in hooks:
            out |= {each.label: each for each in hook([x for x in labels if x not in out])}
        return out.values()

    return ask


def twin_folders(labels: Spellings) -> dict[str, SkippedPerson]:
    """Return participants with two folders under different spellings of a label, by label."""
    return {label: SkippedPerson(label, "unusable", why) for label, why in labels.twins.items()}


def over_the_limit(label: str) -> SkippedPerson:
    """Return that a participant is not among those whom a run's hold in the ledger covers."""
    detail = (
        f"sub-{label} has no budget left for this study by the ledger, or was added after the run "
        "began; excluded."
    )
    return SkippedPerson(label, "over-limit", detail)


@dataclass(frozen=True)
class Survey:
    """Information from the headers of all images."""

    subjects: tuple[Subject, ...]
    """Participants who qualify."""
    lengths: tuple[int, ...]
    """Volumes of each of them, over all runs."""
    skipped: tuple[SkippedPerson, ...]
    """Participants who do not qualify, with the reason."""

    def without(self, skipped: Iterable[SkippedPerson]) -> Survey:
        """Return the survey without some of the participants who qualify."""
        out = {each.label: each for each in skipped}
        stay = [k for k, each in enumerate(self.subjects) if each.label not in out]
        return Survey(
            tuple(self.subjects[k] for k in stay),
            tuple(self.lengths[k] for k in stay),
            (*self.skipped, *out.values()),
        )

    def nobody(self, otherwise: str) -> str:
        """Return why no participant qualifies: the errors of the first unusable files.

        Parameters
        ----------
        otherwise : str
            Sentence for a site without unusable files.
        """
        unusable = (each.detail for each in self.skipped if each.reason == "unusable")
        return next(unusable, otherwise)
