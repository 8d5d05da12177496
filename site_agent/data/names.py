"""Names of files by BIDS, and a study's choice among files by name."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from consortium.study.data_section import DataSection
from consortium.views.meshes import MESHES, MeshKind

Entities = dict[str, str]
Key = tuple[tuple[str, str], ...]

ENDINGS = (".nii.gz", ".nii")
PARCEL_SERIES = ".ptseries.nii"
VERTEX_SERIES = ".dtseries.nii", ".func.gii"
ON_MESHES = (*VERTEX_SERIES, PARCEL_SERIES)
"""Endings of series on the cortex: CIFTI, GIFTI for each hemisphere, and CIFTI of parcels."""
VARIANTS = ("space", "res", "den", "hemi", "desc", "cohort", "stat", "rec", "part")
"""Entities that distinguish versions of one recording, not recordings."""
PARCELLATIONS = ("seg", "atlas")
"""Entities that name the atlas of a file of parcels."""
VERSIONS = ("desc", "cohort", "res", "den", "stat", "rec", *PARCELLATIONS)
"""Entities of which `check` reports the labels that were chosen."""
MAGNITUDE = "mag"
"""Label of the ordinary image where a scanner also stored its phase (part-)."""
FIELDS = {"ses": "session", "run": "run", "acq": "acquisition", "dir": "direction"}
"""Fields of the study by the entities of recordings."""
_PLAIN = {key: name for key, name in FIELDS.items() if key != "run"}
_INDICES = ("flip", "inv", "split", "chunk")
_NUMBERED = {"run": "run", "echo": "echo"}


def entities(path: Path) -> Entities:
    """Split a BIDS file name into its entities, with ``suffix`` as one more.

    Parts that are not ``key-value`` are skipped, so any name is accepted. A cohort in the
    label of a space, as in ``space-MNIInfant+2``, becomes the entity ``cohort``.
    """
    return dict(_entities_of(path.name))


@lru_cache(maxsize=1 << 14)  # names are requested several times while a data set is searched
def _entities_of(name: str) -> Entities:
    *pairs, suffix = stem_of(Path(name)).split("_")
    found = dict(pair.split("-", 1) for pair in pairs if "-" in pair)
    space, plus, cohort = found.get("space", "").partition("+")
    if plus:
        found |= {"space": space, "cohort": cohort}
    return {**found, "suffix": suffix}


def stem_of(path: Path) -> str:
    """Return a file's name without the ending of its format."""
    name = path.name
    for ending in (*ON_MESHES, *ENDINGS, ".tsv", ".json"):
        name = name.removesuffix(ending)
    return name


def is_of_task(named: Entities, data: DataSection) -> bool:
    """Return whether a file is named as of the study's task, and space or mesh."""
    return named.get("task") == data.task and is_in_space(named, data)


def is_in_space(named: Entities, data: DataSection) -> bool:
    """Return whether a file is named as in the study's space or on its mesh."""
    if data.mesh:
        return is_on(named, MESHES[data.mesh])
    space, cohort = data.space_cohort
    return named.get("space") == space and cohort in (None, named.get("cohort"))


def is_on(named: Entities, kind: MeshKind) -> bool:
    """Return whether a file's name has space and density of a mesh; an absent entity fits."""
    space = named.get("space", kind.space)
    density = named.get("den", kind.density)
    return space in kind.spaces and density in kind.densities


def has_entities(named: Entities, data: DataSection) -> bool:
    """Return whether a file has the session, run, acquisition, direction and echo of a study."""
    plain = ((key, getattr(data, name)) for key, name in _PLAIN.items())
    numbered = ((key, getattr(data, name)) for key, name in _NUMBERED.items())
    return all(named.get(key) == label for key, label in plain if label is not None) and (
        all(index_of(named.get(key)) == n for key, n in numbered if n is not None)
    )


def has_version(named: Entities, data: DataSection, *, strict: bool = True) -> bool:
    """Return whether a file has the description and the other entities of a study.

    Parameters
    ----------
    strict : bool, default=True
        Whether a file without the entity does not fit.
    """
    return all(
        _same(key, named[key], label) if key in named else not strict
        for key, label in versions_wanted(data).items()
    )


def versions_wanted(data: DataSection) -> Entities:
    """Return the description and other labels that a study states, by entity."""
    described = {} if data.description is None else {"desc": data.description}
    return {**described, **data.entities}


def _same(key: str, found: str, wanted: str) -> bool:
    indices = index_of(found), index_of(wanted)
    return found == wanted or (key in _INDICES and None not in indices and len({*indices}) == 1)


def recording_pattern(data: DataSection) -> str:
    """Return the names of a study's images, in terms of BIDS."""
    fields = {**_PLAIN, **_NUMBERED}
    labels = {key: getattr(data, name) for key, name in fields.items()} | versions_wanted(data)
    more = [f"{key}-{label}" for key, label in labels.items() if label is not None]
    where = f"on the mesh {data.mesh}" if data.mesh else f"in space-{data.space}"
    return ", ".join([f"task-{data.task}", *more]) + f" {where}"


def first_recordings(paths: Iterable[Path], data: DataSection) -> list[Path]:
    """Return all of a participant's recordings, or the first by session, run and name."""
    found = list(paths)
    return found if data.runs == "all" else sorted(found, key=_rank)[:1]


def _rank(path: Path) -> tuple[str, int, str]:
    named = entities(path)
    run = index_of(named.get("run"))
    return named.get("ses", ""), -1 if run is None else run, path.name


def index_of(text: str | None) -> int | None:
    """Return the number of a run or an echo, or None if it has none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def recording_key(named: Entities) -> Key:
    """Return the entities that identify a recording, without those of its processing."""
    processed = *VARIANTS, *PARCELLATIONS, "suffix"
    return tuple(sorted(pair for pair in named.items() if pair[0] not in processed))


def same_recording(named: Entities) -> Key:
    """Return `recording_key` without the spelling of labels: run-1 equals run-01, ses-A ses-a."""
    return tuple((key, _plain_label(label)) for key, label in recording_key(named))


def _plain_label(label: str) -> str:
    index = index_of(label)
    return label.lower() if index is None else str(index)


def preference(path: Path) -> tuple[object, ...]:
    """Return a key that sorts the versions of a recording, the one to take first.

    CIFTI precedes GIFTI, and both precede parcels. desc-preproc is first, then files without desc,
    then labels by alphabet. The order depends on the names only, so it is the same at every site.
    """
    named = entities(path)
    described = named.get("desc")
    kind = path.name.endswith(PARCEL_SERIES), path.suffix == ".gii"
    labels = tuple(named.get(key, "") for key in (*VERSIONS, "part"))
    return *kind, described != "preproc", described is not None, labels, path.name


def choosing_line(key: str, label: str) -> str:
    """Return the line of a study that chooses the files with a label of an entity."""
    if key == "desc":
        return f"data: {{description: {label}}}"
    if key in FIELDS:
        index = index_of(label) if key in _NUMBERED else None
        return f"data: {{{FIELDS[key]}: {label if index is None else index}}}"
    return f"data: {{entities: {{{key}: '{label}'}}}}"


def labels_by(paths: Iterable[Path], key: str) -> Mapping[str, Path]:
    """Return the first file of each label of an entity; the label is '' where it is absent."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(entities(path).get(key, ""), path)
    return found
