"""Search of a site's subjects, in a BIDS data set or in an explicit list of files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from consortium.base.near_names import known_names
from consortium.errors import DataError
from consortium.study.data_section import DataSection
from consortium.views.meshes import side_file_names
from site_agent.data.folders import (
    exists,
    files_below,
    foreign_home,
    homes_in,
    labels_in,
    metadata_at_top,
    unread_in,
)
from site_agent.data.names import (
    ENDINGS,
    MAGNITUDE,
    ON_MESHES,
    PARCEL_SERIES,
    PARCELLATIONS,
    VARIANTS,
    VERTEX_SERIES,
    Entities,
    Key,
    entities,
    first_recordings,
    has_entities,
    has_version,
    is_of_task,
    is_on,
    preference,
    recording_key,
    recording_pattern,
    same_recording,
    stem_of,
)
from site_agent.data.near_misses import near_miss
from site_agent.data.sidecars import Sidecar, described, sidecars_of
from site_agent.data.survey import NobodyError, RecordingRun, SkippedPerson, Subject

__all__ = [
    "ENDINGS",
    "ON_MESHES",
    "PARCEL_SERIES",
    "VARIANTS",
    "Entities",
    "ambiguous_files",
    "entities",
    "files_below",
    "find_subjects",
    "first_recordings",
    "fitting_series",
    "has_entities",
    "homes_in",
    "is_on",
    "labels_in",
    "misplaced_file",
    "recording_pattern",
    "versions_of",
]


class _Home(NamedTuple):
    """A participant's folder with all of its files, and the JSON files that apply to them."""

    path: Path
    files: list[Path]
    sidecars: list[Sidecar]


def find_subjects(
    source: Path | Sequence[Path], data: DataSection
) -> tuple[tuple[Subject, ...], tuple[SkippedPerson, ...]]:
    """List the participants of a data set by the names of its files.

    Raises NobodyError if no participant has a fitting image. Raises DataError if the folder or a
    listed file is missing.

    Parameters
    ----------
    source : Path or sequence of Path
        A BIDS data set (raw names or derivatives), or NIfTI files. Files with the same ``sub-``
        label belong to one participant. A file without one is a participant of its own.
    data : DataSection
        Its ``task``, ``space``, ``description`` and other entities choose the files of a BIDS data
        set. Its rules for participants are not applied here.

    Returns
    -------
    subjects : tuple of Subject
        In the order of their labels.
    skipped : tuple of Skipped
        Subjects of a BIDS data set without a fitting image, with two files for one recording, with
        a file that is named as another's, or with a folder outside the data set.
    """
    if isinstance(source, Path):
        return _in_dataset(source, data)
    if not source:
        raise DataError("The list of images is empty. Name at least one NIfTI file.")
    for path in source:
        if not path.is_file():
            raise DataError(f"{path} is not a file. Correct the list of images.")
    return tuple(_grouped(source)), ()


def _in_dataset(
    folder: Path, data: DataSection
) -> tuple[tuple[Subject, ...], tuple[SkippedPerson, ...]]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder. Give the site's BIDS data set.")
    subjects: list[Subject] = []
    skipped: list[SkippedPerson] = []
    above = described(metadata_at_top(folder))
    for home in homes_in(folder):
        outcome = _of_home(home, folder, above, data)
        if isinstance(outcome, Subject):
            subjects.append(outcome)
        else:
            skipped.append(outcome)
    if not subjects and all(each.reason in ("no-image", "not-chosen") for each in skipped):
        ends = " or ".join(f"sub-*_bold{ending}" for ending in _endings(data)[::-1])
        homes = [files_below(home, folder) for home in homes_in(folder)]
        near = next(filter(None, (near_miss(files, data) for files in homes)), "")
        raise NobodyError(
            f"{folder} has no {ends} of {recording_pattern(data)}. Check the path. {near}".rstrip()
            + _other_tasks(homes, data)
        )
    return tuple(subjects), tuple(skipped)


def _other_tasks(homes: Sequence[Sequence[Path]], data: DataSection) -> str:
    """Return the tasks of the series there, in a sentence after a space; empty if they fit."""
    series = (path for files in homes for path in _series(files, data))
    tasks = sorted({task for path in series if (task := entities(path).get("task"))})
    if not tasks or data.task in tasks:
        return ""
    return f" Tasks of the images: {known_names(data.task, tasks)}"


def _of_home(
    path: Path, root: Path, above: Sequence[Sidecar], data: DataSection
) -> Subject | SkippedPerson:
    label = path.name.removeprefix("sub-")
    foreign = foreign_home(path, root)
    if foreign is not None:
        return SkippedPerson(label, "unusable", foreign)
    files = files_below(path, root)
    home = _Home(path, files, [*above, *described(files)])
    found = fitting_series(files, data)
    strange = misplaced_file(path, found) or ambiguous_files(found)
    if strange is not None:
        return SkippedPerson(label, "unusable", strange)
    if found:
        return _subject(label, first_recordings(_chosen(found), data), home)
    if data.chooses_recordings and fitting_series(files, data.of_any_recording):
        near = near_miss(files, data)
        detail = f"{path} has other recordings, but none of {recording_pattern(data)}. {near}"
        return SkippedPerson(label, "not-chosen", detail.rstrip())
    return SkippedPerson(label, "no-image", _without(home, data) + unread_in(path, root))


def _without(home: _Home, data: DataSection) -> str:
    """Return the sentence that a folder has no fitting image, with the most similar one."""
    other = [path for path in _series(home.files, data) if entities(path).get("task") == data.task]
    if data.mesh and other:
        return f"{other[0]} is not named as on {data.mesh}. Resample it, or rename it if it is."
    lacking = f"{home.path} has no image of {recording_pattern(data)}."
    near = near_miss(home.files, data)
    if near:
        return f"{lacking} {near} Rename the file if only its name is wrong, or correct the study."
    return f"{lacking} Preprocess the participant's images or remove the folder."


def misplaced_file(home: Path, paths: Iterable[Path]) -> str | None:
    """Return an error if a file in a participant's folder has another participant's name, or None.

    Such a file would count one participant as two, or add another's data to this one.
    """
    for path in paths:
        labels = (label for key, label in entities(path).items() if key.lower() == "sub")
        named = next(labels, None)
        if named is not None and f"sub-{named}" != home.name:
            return (
                f"{path} is named as sub-{named}'s and is in the folder of {home.name}, so its "
                "participant is unclear. Move it to its participant's folder, or rename it."
            )
    return None


def ambiguous_files(paths: Iterable[Path]) -> str | None:
    """Return which two files are one recording under two names; None if there are none.

    run-1 and run-01 are one index in BIDS, and labels that differ in case or in zeros count as one
    label. Two different files of one name in two folders are ambiguous in the same way.
    """
    recordings: dict[Key, dict[Key, Path]] = defaultdict(dict)
    names: dict[str, Path] = {}
    for path in paths:
        named = entities(path)
        spellings = recordings[same_recording(named)]
        spellings.setdefault(recording_key(named), path)
        if len(spellings) > 1:
            return _alike(*sorted(spellings.values())[:2])
        twin = names.setdefault(path.name, path)
        if twin != path and twin.resolve() != path.resolve():
            return _alike(twin, path)
    return None


def _alike(path: Path, other: Path) -> str:
    return (
        f"{path} and {other} are named as the same recording, where one file is required. Remove "
        "one of them, or correct its name."
    )


def fitting_series(files: Iterable[Path], data: DataSection) -> list[Path]:
    """Return the files that are series of the study's task, space and entities, in all versions."""
    found = []
    for path in _series(files, data):
        named = entities(path)
        whole = named.get("part", MAGNITUDE) == MAGNITUDE
        single = "echo" in named and data.echo is None
        chosen = has_entities(named, data) and has_version(named, data)
        if is_of_task(named, data) and chosen and whole and not single:
            found.append(path)
    return found


def _series(files: Iterable[Path], data: DataSection) -> list[Path]:
    """Return the series of voxels, or of a mesh's vertices if the study has one."""
    ends = tuple(f"_bold{ending}" for ending in _endings(data))
    paths = list(files)
    found = [path for path in paths if path.name.endswith(ends)]
    if data.mesh and data.atlas:
        parcels = (path for path in paths if path.name.endswith(PARCEL_SERIES))
        found += [path for path in parcels if _is_of_atlas(path, data)]
    return found


def _is_of_atlas(path: Path, data: DataSection) -> bool:
    """Return whether a file of parcels is a series whose name fits the study's atlas."""
    named = entities(path)
    atlas = Path(data.atlas or "").name
    atlases = [named[key] for key in PARCELLATIONS if key in named]
    return named["suffix"] in ("bold", "timeseries") and all(each in atlas for each in atlases)


def _endings(data: DataSection) -> tuple[str, ...]:
    return VERTEX_SERIES if data.mesh else ENDINGS


def versions_of(fitting: Iterable[Path]) -> list[list[Path]]:
    """Return the files of each recording, the version that is used first."""
    recordings: dict[Key, list[Path]] = defaultdict(list)
    for path in fitting:
        recordings[recording_key(entities(path))].append(path)
    return [sorted(versions, key=preference) for versions in recordings.values()]


def _chosen(fitting: Iterable[Path]) -> Iterator[Path]:
    return (versions[0] for versions in versions_of(fitting))


def _grouped(paths: Iterable[Path]) -> Iterator[Subject]:
    """Combine the files of one participant, in the order of their names."""
    people: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        people[entities(path).get("sub", stem_of(path))].add(path)
    for label in sorted(people):
        yield _subject(label, people[label])


def _subject(label: str, paths: Iterable[Path], home: _Home | None = None) -> Subject:
    found = sorted(paths)
    rights = {path: _right_of(path) for path in found}
    runs = [path for path in found if path not in rights.values()]
    sidecars = {path: home and sidecars_of(path, home.sidecars) for path in runs}
    return Subject(
        label,
        tuple(
            RecordingRun(path, _confounds(path, home), rights[path], sidecars[path])
            for path in runs
        ),
    )


def _right_of(path: Path) -> Path | None:
    """Return the right hemisphere's GIFTI file next to the left one's, or None."""
    for name in side_file_names(path.name)[1:]:
        right = path.with_name(name)
        return right if exists(right) else None
    return None


def _with_reconstruction(path: Path) -> tuple[Key, str | None]:
    named = entities(path)
    return recording_key(named), named.get("rec")


def _confounds(bold: Path, home: _Home | None) -> Path | None:
    """Return the recording's confounds table, under the names of new and old fMRIPrep."""
    recording = _with_reconstruction(bold)
    folder = bold.parent
    nearby = sorted(folder.glob("*.tsv")) if home is None else home.files
    tables = [path for path in nearby if "desc-confounds" in path.name and path.parent == folder]
    for suffix in ("timeseries", "regressors"):
        for path in tables:
            if path.name.endswith(f"_{suffix}.tsv") and _with_reconstruction(path) == recording:
                return path
    confounds = bold.with_name(f"{stem_of(bold)}_confounds.tsv")
    return confounds if exists(confounds) else None
