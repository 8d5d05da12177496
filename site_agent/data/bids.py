"""Finding a site's subjects: in a BIDS data set, or in an explicit list of files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from consortium.views.meshes import MESHES, MeshKind, side_file_names
from site_agent.data.survey import RecordingRun, SkippedPerson, Subject

Entities = dict[str, str]

ENDINGS = (".nii.gz", ".nii")
PARCEL_SERIES = ".ptseries.nii"
_VERTICES = ".dtseries.nii", ".func.gii"
ON_MESHES = (*_VERTICES, PARCEL_SERIES)
"""Of series on the cortex: CIFTI, of GIFTI one file for each hemisphere, and CIFTI of parcels."""
VARIANTS = ("space", "res", "den", "hemi", "desc", "cohort", "stat")
"""Entities that tell versions of one recording apart, not recordings."""
PARCELLATIONS = ("seg", "atlas")
"""Entities that tell whose parcels a file has."""
UNCOMBINED = ("echo", "part")
"""Entities of files that are only a share of a recording."""


def find_subjects(
    source: Path | Sequence[Path], data: DataSection
) -> tuple[tuple[Subject, ...], tuple[SkippedPerson, ...]]:
    """Find who is there; reads names of files only.

    Raises DataError if there is nobody, or a listed file is missing.

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


def _in_dataset(
    folder: Path, data: DataSection
) -> tuple[tuple[Subject, ...], tuple[SkippedPerson, ...]]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the site's BIDS data set.")
    wanted = recording_pattern(data)
    subjects: list[Subject] = []
    skipped: list[SkippedPerson] = []
    for home in sorted(path for path in folder.glob("sub-*") if path.is_dir()):
        label, found = home.name.removeprefix("sub-"), _fitting(home, data)
        strange = misplaced_file(home, found)
        if strange is not None:
            skipped.append(SkippedPerson(label, "unusable", strange))
        elif found:
            subjects.append(_subject(label, first_recordings(_chosen(found), data)))
        elif data.chooses_recordings and _has_any(home, data):
            detail = f"{home} holds other recordings, but none of {wanted}; left out."
            skipped.append(SkippedPerson(label, "not-chosen", detail))
        else:
            skipped.append(SkippedPerson(label, "no-image", _without(home, data)))
    if not subjects and all(each.reason in ("no-image", "not-chosen") for each in skipped):
        ends = " or ".join(f"sub-*_bold{ending}" for ending in _endings(data)[::-1])
        raise DataError(f"{folder} holds no {ends} of {wanted}; check the path.")
    return tuple(subjects), tuple(skipped)


def _without(home: Path, data: DataSection) -> str:
    """Say that a folder has no fitting image, and which one of another mesh it has."""
    other = [path for path in _series(home, data) if entities(path).get("task") == data.task]
    if data.mesh and other:
        return f"{other[0]} is not named as on {data.mesh}; resample it, or rename it if it is."
    wanted = recording_pattern(data)
    return f"{home} holds no image of {wanted}; preprocess the subject or remove it."


def labels_in(folder: Path) -> tuple[str, ...]:
    """Labels of all persons who have a folder in a data set, without ``sub-``."""
    homes = (path for path in folder.glob("sub-*") if path.is_dir())
    return tuple(sorted(path.name.removeprefix("sub-") for path in homes))


def files_below(home: Path, root: Path) -> list[Path]:
    """Return all files below a folder, sorted.

    Linked folders are followed where they lead to a place inside the root. No folder is read twice.

    Parameters
    ----------
    home : Path
        A participant's folder.
    root : Path
        The data set.

    Raises
    ------
    DataError
        If a folder can't be listed.
    """
    found: list[Path] = []
    own, links, seen = [home], list[Path](), set[Path]()
    while own or links:
        folder = own.pop() if own else links.pop(0)
        try:
            real = folder.resolve()
            inside = sorted(folder.iterdir()) if real not in seen else []
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"{folder} must be a folder that can be listed. Correct its permissions."
            ) from error
        seen.add(real)
        for path in inside:
            if not path.is_dir():
                found.append(path)
            elif not path.is_symlink():
                own.append(path)
            elif _is_followed(path, home, root):
                links.append(path)
    return sorted(found)


def links_outside(home: Path, root: Path) -> list[Path]:
    """Return the linked folders below a participant's folder that `files_below` does not follow."""
    below = (home, *(path for path in home.rglob("*") if path.is_dir()))
    links = (path for path in below[1:] if path.is_symlink())
    return sorted(path for path in links if not _is_followed(path, home, root))


def _is_followed(link: Path, home: Path, root: Path) -> bool:
    """Whether a linked folder is inside the root, and is not a folder that contains the home."""
    real, own = link.resolve(), home.resolve()
    inside = real.is_relative_to(root.resolve()) or real.is_relative_to(own)
    return inside and not own.is_relative_to(real)


def misplaced_file(home: Path, paths: Iterable[Path]) -> str | None:
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
    for path in _series(home, data):
        named = entities(path)
        share = named.keys() & set(UNCOMBINED) - ({"echo"} if data.echo is not None else set())
        if _is_of(named, data) and has_entities(named, data) and not share:
            found.append(path)
    return found


def _has_any(home: Path, data: DataSection) -> bool:
    """Whether a folder has any image of the study's task and space, whatever else it is named."""
    return any(_is_of(entities(path), data) for path in _series(home, data))


def _series(home: Path, data: DataSection) -> list[Path]:
    """List a folder's series of voxels, or of a mesh's vertices if the study has one."""
    ends = tuple(f"_bold{ending}" for ending in _endings(data))
    found = [path for path in sorted(home.rglob("*_bold.*")) if path.name.endswith(ends)]
    if data.mesh and data.atlas:
        found += [
            path for path in sorted(home.rglob(f"*{PARCEL_SERIES}")) if _is_of_atlas(path, data)
        ]
    return found


def _is_of_atlas(path: Path, data: DataSection) -> bool:
    """Whether a file of parcels is a series, and named as of the study's atlas or of none."""
    named, atlas = entities(path), Path(data.atlas or "").name
    atlases = [named[key] for key in PARCELLATIONS if key in named]
    return named["suffix"] in ("bold", "timeseries") and all(each in atlas for each in atlases)


def _endings(data: DataSection) -> tuple[str, ...]:
    return _VERTICES if data.mesh else ENDINGS


def _is_of(named: Entities, data: DataSection) -> bool:
    """Whether a file is named as of the study's task, and space or mesh."""
    space = is_on(named, MESHES[data.mesh]) if data.mesh else named.get("space") == data.space
    return named.get("task") == data.task and space


def is_on(named: Entities, kind: MeshKind) -> bool:
    """Whether a file's name has space and density of a mesh; what it does not say, fits."""
    space, density = named.get("space", kind.space), named.get("den", kind.density)
    return space in kind.spaces and density in kind.densities


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
    where = f"on the mesh {data.mesh}" if data.mesh else f"in space-{data.space}"
    return ", ".join([f"task-{data.task}", *more]) + f" {where}"


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


def _preference(path: Path) -> tuple[bool, bool, bool, bool, bool, str]:
    """Sort CIFTI before GIFTI, parcels behind both; desc-preproc first, no desc, no res."""
    named = entities(path)
    description = named.get("desc")
    preprocessed = description != "preproc", description is not None
    kind = path.name.endswith(PARCEL_SERIES), path.suffix == ".gii"
    return *kind, *preprocessed, "res" in named, path.name


def _recording(named: Entities) -> tuple[tuple[str, str], ...]:
    """Return what makes a recording: all entities that are not a matter of processing."""
    processed = *VARIANTS, *PARCELLATIONS, "suffix"
    return tuple(sorted(pair for pair in named.items() if pair[0] not in processed))


def _grouped(paths: Iterable[Path]) -> Iterator[Subject]:
    """Put the files of one person together, persons and files in the order of their names."""
    people: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        people[entities(path).get("sub", _stem(path))].add(path)
    for label in sorted(people):
        yield _subject(label, people[label])


def _subject(label: str, paths: Iterable[Path]) -> Subject:
    found = sorted(paths)
    rights = {path: _right_of(path) for path in found}
    runs = (path for path in found if path not in rights.values())
    return Subject(
        label, tuple(RecordingRun(path, _confounds(path), rights[path]) for path in runs)
    )


def _right_of(path: Path) -> Path | None:
    """The right hemisphere's file beside a GIFTI file of the left one, if it is there."""
    for name in side_file_names(path.name)[1:]:
        right = path.with_name(name)
        return right if right.exists() else None
    return None


def _confounds(bold: Path) -> Path | None:
    """Find the recording's confounds table, under the names of new and old fMRIPrep."""
    recording = _recording(entities(bold))
    for suffix in ("timeseries", "regressors"):
        for path in sorted(bold.parent.glob(f"*desc-confounds*_{suffix}.tsv")):
            if _recording(entities(path)) == recording:
                return path
    beside = bold.with_name(f"{_stem(bold)}_confounds.tsv")
    return beside if beside.exists() else None


def _stem(path: Path) -> str:
    name = path.name
    for ending in (*ON_MESHES, *ENDINGS, ".tsv"):
        name = name.removesuffix(ending)
    return name
