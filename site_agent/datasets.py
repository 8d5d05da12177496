"""Finding a site's subjects: in a BIDS data set, or in an explicit list of files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from consortium.errors import DataError
from consortium.study import DataSection

Entities = dict[str, str]
Reason = Literal["no-image", "no-view", "too-few-volumes", "unusable"]

ENDINGS = (".nii.gz", ".nii")
VARIANTS = ("space", "res", "desc", "cohort")
"""Entities that tell versions of one recording apart, not recordings."""
UNCOMBINED = ("echo", "part")
"""Entities of files that are only a share of a recording."""


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
        ``no-image``, ``no-view`` and ``too-few-volumes`` are left out; ``unusable`` must be mended
        first.
    detail : str
        One sentence.
    """

    label: str
    reason: Reason
    detail: str


def find_subjects(
    source: Path | Sequence[Path], data: DataSection
) -> tuple[tuple[Subject, ...], tuple[Skipped, ...]]:
    """Find who is there; reads names of files only.

    Parameters
    ----------
    source : Path or sequence of Path
        A BIDS data set (raw names or derivatives), or NIfTI files. Files with the same ``sub-``
        label belong to one person; a file without one is a person of its own.
    data : DataSection
        Its ``task`` and ``space`` choose the files of a BIDS data set; ``desc-preproc`` is
        preferred.

    Returns
    -------
    subjects : tuple of Subject
        In the order of their labels.
    skipped : tuple of Skipped
        Subjects of a BIDS data set without a fitting image.

    Raises
    ------
    DataError
        If there is nobody, or a listed file is missing.
    """
    if isinstance(source, Path):
        return _in_dataset(source, data)
    if not source:
        raise DataError("The list of images is empty; name at least one NIfTI file.")
    for path in source:
        if not path.is_file():
            raise DataError(f"{path} is not a file; correct the list of images.")
    return tuple(_grouped(source)), ()


def entities(path: Path) -> Entities:
    """Split a BIDS file name into its entities, with ``suffix`` as one more.

    Parts that are not ``key-value`` are passed over, so that any name can be asked.
    """
    *pairs, suffix = _stem(path).split("_")
    found = dict(pair.split("-", 1) for pair in pairs if "-" in pair)
    return {**found, "suffix": suffix}


def _in_dataset(folder: Path, data: DataSection) -> tuple[tuple[Subject, ...], tuple[Skipped, ...]]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the site's BIDS data set.")
    wanted = f"task-{data.task} in space-{data.space}"
    subjects: list[Subject] = []
    skipped: list[Skipped] = []
    for home in sorted(path for path in folder.glob("sub-*") if path.is_dir()):
        chosen = list(_chosen(home, data))
        if chosen:
            subjects.extend(_grouped(chosen))
        else:
            detail = f"{home} holds no image of {wanted}; preprocess the subject or remove it."
            skipped.append(Skipped(home.name.removeprefix("sub-"), "no-image", detail))
    if not subjects:
        raise DataError(f"{folder} holds no sub-*_bold.nii[.gz] of {wanted}; check the path.")
    return tuple(subjects), tuple(skipped)


def _chosen(home: Path, data: DataSection) -> Iterator[Path]:
    """Yield one file per recording of a subject: the best of its versions."""
    recordings: dict[tuple[tuple[str, str], ...], list[Path]] = defaultdict(list)
    for path in sorted(home.rglob("*_bold.nii*")):
        named = entities(path)
        fits = named.get("task") == data.task and named.get("space") == data.space
        if fits and path.name.endswith(ENDINGS) and not named.keys() & set(UNCOMBINED):
            recordings[_recording(named)].append(path)
    for versions in recordings.values():
        yield min(versions, key=_preference)


def _preference(path: Path) -> tuple[bool, bool, bool, str]:
    """Sort desc-preproc first, then no desc; a version without res before the others."""
    named = entities(path)
    description = named.get("desc")
    return description != "preproc", description is not None, "res" in named, path.name


def _recording(named: Entities) -> tuple[tuple[str, str], ...]:
    """Return what makes a recording: all entities that are not a matter of processing."""
    return tuple(sorted(pair for pair in named.items() if pair[0] not in (*VARIANTS, "suffix")))


def _grouped(paths: Iterable[Path]) -> Iterator[Subject]:
    """Put the files of one person together, persons and files in the order of their names."""
    people: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        people[entities(path).get("sub", _stem(path))].add(path)
    for label in sorted(people):
        yield Subject(label, tuple(Run(path, _confounds(path)) for path in sorted(people[label])))


def _confounds(bold: Path) -> Path | None:
    """Find the recording's confounds table, under the names of new and old fMRIPrep."""
    recording = _recording(entities(bold))
    for suffix in ("timeseries", "regressors"):
        for path in sorted(bold.parent.glob(f"*desc-confounds*_{suffix}.tsv")):
            if _recording(entities(path)) == recording:
                return path
    beside = bold.with_name(f"{_stem(bold)}_confounds.tsv")
    return beside if beside.is_file() else None


def _stem(path: Path) -> str:
    name = path.name
    for ending in (*ENDINGS, ".tsv"):
        name = name.removesuffix(ending)
    return name
