"""Finding a site's subjects: in a BIDS data set, or in an explicit list of files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from site_agent.data.survey import Run, Skipped, Subject

Entities = dict[str, str]

ENDINGS = (".nii.gz", ".nii")
VARIANTS = ("space", "res", "desc", "cohort")
"""Entities that tell versions of one recording apart, not recordings."""
UNCOMBINED = ("echo", "part")
"""Entities of files that are only a share of a recording."""


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
        Its ``task``, ``space`` and other entities choose the files of a BIDS data set;
        ``desc-preproc`` is preferred. Whom it takes is not asked here.

    Returns
    -------
    subjects : tuple of Subject
        In the order of their labels.
    skipped : tuple of Skipped
        Subjects of a BIDS data set without a fitting image, or with one in their folder that is
        named as another's.

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
    wanted = recording_pattern(data)
    subjects: list[Subject] = []
    skipped: list[Skipped] = []
    for home in sorted(path for path in folder.glob("sub-*") if path.is_dir()):
        label, found = home.name.removeprefix("sub-"), _fitting(home, data)
        strange = misplaced(home, found)
        if strange is not None:
            skipped.append(Skipped(label, "unusable", strange))
        elif found:
            subjects.append(_subject(label, first_recordings(_chosen(found), data)))
        elif data.chooses_recordings and _has_any(home, data):
            detail = f"{home} holds other recordings, but none of {wanted}; left out."
            skipped.append(Skipped(label, "not-chosen", detail))
        else:
            detail = f"{home} holds no image of {wanted}; preprocess the subject or remove it."
            skipped.append(Skipped(label, "no-image", detail))
    if not subjects and all(each.reason in ("no-image", "not-chosen") for each in skipped):
        raise DataError(f"{folder} holds no sub-*_bold.nii[.gz] of {wanted}; check the path.")
    return tuple(subjects), tuple(skipped)


def labels_in(folder: Path) -> tuple[str, ...]:
    """Labels of all persons who have a folder in a data set, without ``sub-``."""
    homes = (path for path in folder.glob("sub-*") if path.is_dir())
    return tuple(sorted(path.name.removeprefix("sub-") for path in homes))


def misplaced(home: Path, paths: Iterable[Path]) -> str | None:
    """Say which file in a person's folder is named as another person's; None if there is none.

    It would count one person as two, or be another's part of this one.
    """
    for path in paths:
        named = entities(path).get("sub")
        if named is not None and f"sub-{named}" != home.name:
            return (
                f"{path} is named as sub-{named}'s and lies in the folder of {home.name}, so that "
                "it is unclear whose it is; move it to its participant's folder, or rename it."
            )
    return None


def _fitting(home: Path, data: DataSection) -> list[Path]:
    """List a folder's images of the study's task and space, in all their versions."""
    found = []
    for path in sorted(home.rglob("*_bold.nii*")):
        named = entities(path)
        fits = named.get("task") == data.task and named.get("space") == data.space
        share = named.keys() & set(UNCOMBINED) - ({"echo"} if data.echo is not None else set())
        if fits and has_entities(named, data) and path.name.endswith(ENDINGS) and not share:
            found.append(path)
    return found


def _has_any(home: Path, data: DataSection) -> bool:
    """Whether a folder has any image of the study's task and space, whatever else it is named."""
    images = (entities(path) for path in home.rglob("*_bold.nii*"))
    return any(e.get("task") == data.task and e.get("space") == data.space for e in images)


def has_entities(named: Entities, data: DataSection) -> bool:
    """Whether a file has the session, run, acquisition, direction and echo of a study."""
    wanted = {"ses": data.session, "acq": data.acquisition, "dir": data.direction}
    indices = {"run": data.run, "echo": data.echo}
    return all(named.get(key) == label for key, label in wanted.items() if label is not None) and (
        all(_index(named.get(key)) == n for key, n in indices.items() if n is not None)
    )


def recording_pattern(data: DataSection) -> str:
    """What a study's images are called, in the words of BIDS."""
    keys = {"ses": data.session, "run": data.run, "acq": data.acquisition, "dir": data.direction}
    more = [f"{key}-{x}" for key, x in {**keys, "echo": data.echo}.items() if x is not None]
    return ", ".join([f"task-{data.task}", *more]) + f" in space-{data.space}"


def first_recordings(paths: Iterable[Path], data: DataSection) -> list[Path]:
    """All of a person's recordings, or the first by session, run and name, as the study wants."""
    found = list(paths)
    return found if data.runs == "all" else sorted(found, key=_rank)[:1]


def _rank(path: Path) -> tuple[str, int, str]:
    named = entities(path)
    run = _index(named.get("run"))
    return named.get("ses", ""), -1 if run is None else run, path.name


def _index(text: str | None) -> int | None:
    """Read the number of a run or an echo; None if it has none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _chosen(fitting: Iterable[Path]) -> Iterator[Path]:
    """Yield one file per recording of a subject: the best of its versions."""
    recordings: dict[tuple[tuple[str, str], ...], list[Path]] = defaultdict(list)
    for path in fitting:
        recordings[_recording(entities(path))].append(path)
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
        yield _subject(label, people[label])


def _subject(label: str, paths: Iterable[Path]) -> Subject:
    return Subject(label, tuple(Run(path, _confounds(path)) for path in sorted(paths)))


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
