"""Tables with a file for each participant, in that participant's folder, of four kinds.

Values by parcel, from a CIFTI file of one map (``.pscalar.nii``), or a series (``.ptseries.nii``),
whose correlations are taken.

FreeSurfer's stats files: regions in lines, measures in columns. Source: the comment lines of
``aparc.stats`` and ``aseg.stats`` (FreeSurfer 5 to 8). ``ColHeaders`` names the columns, and
``Measure`` lines have numbers of the whole brain.

A matrix between regions, or courses, as cells that are named by their pair, as XCP-D, HALFpipe and
'site-agent networks' write them: tab-separated, with the regions' names in the first line and
perhaps in the first column, or only numbers, whose regions are then 1, 2, 3.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from consortium.base.atomic import path_in_folder
from consortium.base.delimited import wrong_encoding
from consortium.base.near_names import nearest_name
from consortium.base.regular_file import text_of
from consortium.errors import DataError, TableError
from consortium.kernels.dual_regression import centred_and_normed
from consortium.privacy.clipping import column_norms
from consortium.space.mesh import DAMAGED
from consortium.space.nifti import open_image
from consortium.views.table import ANYONE, TableView
from site_agent.data.bids import PARCEL_SERIES
from site_agent.data.folders import foreign_place
from site_agent.data.survey import NobodyError
from site_agent.data.wording import Wording
from site_agent.labels import SESSION, canonical_label, plain_label

_FLAT = 1e-9
_MISSING = "n/a"
_NAME = "StructName"
_STATED = re.compile(r"# (subjectname|hemi)\s+\S")


FEWEST_VOLUMES = 10
"""Smallest number of volumes for correlations."""


class PairsError(ValueError):
    """A file has a cell for each pair of regions, and its values can't be used."""


class _Table(NamedTuple):
    """Regions by name, and lines of a cell for each of them."""

    names: Sequence[str]
    cells: Sequence[Sequence[str]]


def pair_cells(lines: Sequence[str], pairs: Iterable[str], *, courses: bool) -> dict[str, str]:
    """Read the cells of some pairs; a missing pair, or an ambiguous one, has none.

    Parameters
    ----------
    lines : sequence of str
        Lines of a matrix, whose cells are read as they are; or of ``courses``, one for each volume,
        whose correlations are computed.
    pairs : iterable of str
        As ``a-b``, a's line and b's column.

    Raises
    ------
    ValueError
        If a row of the file has another width, or a matrix is not square.
    PairsError
        If a matrix has values on one side of its diagonal only, or there are fewer volumes than
        `FEWEST_VOLUMES`.
    """
    found = _table(lines, courses=courses)
    if courses and 0 < len(found.cells) < FEWEST_VOLUMES:
        raise PairsError(
            f"correlations require at least {FEWEST_VOLUMES} volumes, and the file has "
            f"{len(found.cells)}. Give the file of a complete recording, or remove it."
        )
    at = {name: place for place, name in enumerate(found.names)}
    if len(at) != len(found.names):
        return {}
    for number, line in enumerate(found.cells, start=1):
        if len(line) != len(at):
            raise ValueError(f"row {number} has {len(line)} of {len(at)}")
    if not courses and len(at) != len(found.cells):
        raise ValueError(f"there are {len(found.cells)} rows for {len(at)} columns")
    located = ((pair, [*_ends(pair, at)]) for pair in pairs)
    places = {pair: ends[0] for pair, ends in located if len(ends) == 1}
    if courses:
        return _correlations(found.cells, places)
    cells = {pair: found.cells[one][other] for pair, (one, other) in places.items()}
    if any(_number(cell) == 0 for cell in cells.values()):
        _check_sides(found.cells)
    return cells


def _check_sides(cells: Sequence[Sequence[str]]) -> None:
    """Raise PairsError if a matrix is 0 on one side of its diagonal and not on the other."""
    values = np.nan_to_num([[_number(cell) for cell in line] for line in cells])
    if np.triu(values, 1).any() != np.tril(values, -1).any():
        raise PairsError(
            "the matrix has values on one side of its diagonal only, where both sides are "
            "required. Write the file again."
        )


def regions_of(lines: Sequence[str], *, courses: bool) -> Sequence[str]:
    """Return the names of the regions that a file has, as `pair_cells` takes them."""
    return _table(lines, courses=courses).names


def _table(lines: Sequence[str], *, courses: bool) -> _Table:
    try:
        parsed = csv.reader([line for line in lines if line.strip()], delimiter="\t", strict=True)
        rows = [[cell.strip() for cell in row] for row in parsed]
    except csv.Error as error:
        raise ValueError("its quotes are not closed") from error
    if not rows:
        return _Table([], [])
    first = rows[0]
    body = rows[1:]
    if body and all(len(row) == len(first) + 1 for row in body):  # row names, as R writes them
        first = ["", *first]
        if courses:
            first = first[1:]
            body = [row[1:] for row in body]
    if all(map(_is_number, first)) and not _names_by_number(first, body, courses=courses):
        return _Table([str(k + 1) for k in range(len(first))], rows)
    return _Table(first, body) if courses else _without_names(first, body)


def _names_by_number(first: list[str], body: list[list[str]], *, courses: bool) -> bool:
    """Return whether a line of numbers gives the regions' names, as in an atlas without words.

    In a matrix it is the one line too many. In courses it has whole numbers above other numbers.
    """
    if not courses:
        return len(body) == len(first)
    named = len(set(first)) == len(first) and all(map(str.isdecimal, first))
    return named and any(_is_broken(cell) for line in body for cell in line)


def _without_names(names: list[str], body: list[list[str]]) -> _Table:
    """Return the lines of a matrix in the order of its columns, without a first column of names."""
    if len(names) != len(body) + 1:
        if names[0] == "":
            raise ValueError(f"there are {len(body)} rows for {len(names) - 1} columns")
        return _Table(names, body)
    own = {line[0]: line[1:] for line in body}
    if {*own} != {*names[1:]}:
        raise ValueError("the names of the rows are not those of the columns")
    return _Table(names[1:], [own[name] for name in names[1:]])


def _ends(pair: str, at: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the places of a pair's two regions, for every hyphen that may separate them."""
    for place in (k for k, letter in enumerate(pair) if letter == "-"):
        one = pair[:place]
        other = pair[place + 1 :]
        if one in at and other in at:
            yield at[one], at[other]


def _correlations(
    body: Sequence[Sequence[str]], places: Mapping[str, tuple[int, int]]
) -> dict[str, str]:
    """Return the correlations of pairs of courses; none of incomplete or constant ones.

    Other correlations are not computed: a file may have too many regions for a whole matrix.
    """
    used = {place: row for row, place in enumerate(sorted({*chain(*places.values())}))}
    if not body or not used:
        return {}
    courses = np.array([[_number(line[place]) for line in body] for place in used])
    with np.errstate(all="ignore"):
        norms = column_norms((courses - courses.mean(axis=1, keepdims=True)).T)
        scaled = centred_and_normed(courses)
    varies = np.isfinite(norms) & (norms > _FLAT * np.abs(courses).max(axis=1))
    found = {}
    for pair, (one, other) in places.items():
        a = used[one]
        b = used[other]
        between = float(np.clip(scaled[a] @ scaled[b], -1.0, 1.0))
        found[pair] = repr(between) if varies[a] and varies[b] else _MISSING
    return found


def _number(text: str) -> float:
    """Return a finite number, or NaN for any other text."""
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if np.isfinite(value) else np.nan


def _is_broken(text: str) -> bool:
    """Return whether a cell is a number that is not written as a whole one."""
    return not text.removeprefix("-").isdecimal() and bool(np.isfinite(_number(text)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def stats_cells(lines: Sequence[str]) -> dict[str, str]:
    """Return every number of a file by name.

    A column is named after its region and its measure, as ``insula_ThickAvg`` or
    ``Left-Hippocampus_Volume_mm3``; a number of the whole brain by its own name, as
    ``EstimatedTotalIntraCranialVol``.
    """
    found = _Once()
    headings: list[str] = []
    for line in lines:
        words = line.split()
        if line.startswith("# ColHeaders"):
            headings = words[2:]
        elif line.startswith("# Measure"):
            parts = [part.strip() for part in line.split(",")]
            if len(parts) >= 4:
                found.add(parts[1], parts[3])
        elif words and not line.startswith("#") and len(words) == len(headings):
            row = dict(zip(headings, words, strict=True))
            region = row.pop(_NAME, "")
            for heading, value in row.items():
                found.add(f"{region}_{heading}", value)
    return found.cells


class _Once:
    """Cells by name, without names that a file has twice with different values."""

    def __init__(self) -> None:
        self._values: dict[str, set[str]] = {}

    def add(self, name: str, value: str) -> None:
        """Add a cell."""
        self._values.setdefault(name, set()).add(value)

    @property
    def cells(self) -> dict[str, str]:
        """Values of the names that have one."""
        return {name: min(values) for name, values in self._values.items() if len(values) == 1}


PARCELS = ".pscalar.nii"
"""End of CIFTI files with a number for each parcel."""


def _parcels(path: Path, axis: str) -> tuple[list[str], list[list[float]]]:
    """Return the names of a file's parcels, and a line of numbers for each step of its other axis.

    A file that is incomplete, or has other axes, has none.
    """
    import nibabel as nib  # takes half a second, only for sites with such files

    try:
        image = open_image(path)
        steps, parcels = (image.header.get_axis(number) for number in (0, 1))
        fits = type(steps).__name__ == axis and isinstance(parcels, nib.cifti2.ParcelsAxis)
        if not fits or image.shape != (len(steps), len(parcels)):
            return [], []
        values = np.asarray(image.dataobj, dtype=np.float64)
        return [str(name) for name in parcels.name], values.tolist()
    except (*DAMAGED, DataError):
        return [], []


def _written(value: float) -> str:
    """Return a number as text that reads back as the same number."""
    return repr(value) if np.isfinite(value) else "n/a"


def parcel_lines(path: Path) -> list[str]:
    """Return name and value of every parcel, with a tab between; none if it is not a parcel map."""
    names, maps = _parcels(path, "ScalarAxis")
    if len(maps) != 1:
        return []
    return [f"{name}\t{_written(value)}" for name, value in zip(names, maps[0], strict=True)]


def course_lines(path: Path) -> list[str]:
    """Return the names of the parcels, and their values in every volume, with tabs between."""
    names, volumes = _parcels(path, "SeriesAxis")
    rows = (map(_written, volume) for volume in volumes)
    return ["\t".join(cells) for cells in (names, *rows)] if names else []


def parcel_cells(lines: Sequence[str]) -> dict[str, str]:
    """Return the content of `parcel_lines`, by parcel; a name that occurs twice has nothing."""
    pairs = [line.rsplit("\t", 1) for line in lines]
    many = Counter(name for name, _ in pairs)
    return {name: value for name, value in pairs if many[name] == 1}


_MOST_BYTES = 50_000_000
"""Maximum size of a participant's file; a matrix of a thousand regions takes about 20 MB."""
_COURSES = "_timeseries.tsv", PARCEL_SERIES
_PAIRS = ".tsv", PARCEL_SERIES
"""Ends of files with a line for each volume, and of all whose columns are pairs of regions."""
_ANY_SESSION = "ses-*"
_SESSION = re.compile(r"ses-[A-Za-z0-9]+")
_LABEL = re.compile(r"sub-([A-Za-z0-9]+)")
_LONGER = re.compile(rf"{re.escape(ANYONE)}[A-Za-z0-9]")


def person_table_rows(
    folder: Path, view: TableView, wording: Wording, *, by_session: bool = False
) -> Iterator[tuple[str, Mapping[str, str] | DataError, Path]]:
    """Yield every participant's label, cells and file.

    An error in place of cells is about this participant's file, which exists and can't be used.

    Raises DataError if no participant has a folder, or the path leads out of the data set
    or to another participant's files.

    Parameters
    ----------
    folder : Path
        The site's data set.
    view : TableView
        Its file has ``sub-*`` for a participant's folder.
    by_session : bool
        Whether ``ses-*`` in it matches each of a participant's sessions, which then are rows.
    """
    names = [name for name, _ in view.single_columns]
    files = personal_files(folder, view.file)
    if by_session:
        files = [each for label, path in files for each in _of_sessions(label, path)]
    for label, path in files:
        try:
            _check_place(folder, path, label)
            found = _cells(folder, path, label, [wording.column(name) for name in names])
        except DataError as error:
            yield label, error, path
        else:
            yield label, {n: wording.cell(n, found.get(wording.column(n))) for n in names}, path


def personal_files(folder: Path, pattern: str) -> list[tuple[str, Path]]:
    """List every participant's label and file; the pattern comes from the coordinator.

    A label that more letters follow is another participant's, who would not be charged.
    """
    home = next(part for part in pattern.split("/") if ANYONE in part)
    if home != ANYONE or _LONGER.search(pattern):
        raise DataError(
            f"The study's files {pattern} may be another participant's than their folder's. Let "
            f"the first '{ANYONE}' be a folder's whole name, and no letter or digit follow any."
        )
    before = pattern.partition(ANYONE)[0]
    try:
        parent = path_in_folder(folder, before or ".")
        names = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
        labels = [match[1] for match in map(_LABEL.fullmatch, names) if match]
        path_in_folder(folder, pattern.replace(ANYONE, "sub-"))
    except (ValueError, OSError) as error:
        raise DataError(
            f"The study's files {pattern} are not in the site's data set. Give a relative path."
        ) from error
    if not labels:
        raise NobodyError(f"{parent} has no participant's folder, sub-.... Check the study's path.")
    return [(each, folder / pattern.replace(ANYONE, f"sub-{each}")) for each in labels]


def _of_sessions(label: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of each session of a participant, if the path has a folder for sessions."""
    if _ANY_SESSION not in path.parts:
        yield label, path
        return
    home = Path(*path.parts[: path.parts.index(_ANY_SESSION)])
    for own in sorted(home.glob(_ANY_SESSION)):
        if _SESSION.fullmatch(own.name):
            yield f"{label}_{own.name}", Path(str(path).replace(_ANY_SESSION, own.name))


def similar_column(folder: Path, view: TableView, name: str) -> str | None:
    """Return the most similar column name in the first participant's file that is not empty.

    Raises DataError as `person_table_rows`.
    """
    lines: list[str] = []
    for _, path in personal_files(folder, view.file):
        with suppress(DataError):
            lines = lines or _lines(folder, path)
    if not view.file.endswith(_PAIRS):
        return nearest_name(name, [*_single_cells(view.file, lines)])
    regions = [*regions_of(lines, courses=view.file.endswith(_COURSES))]
    for place in (k for k, letter in enumerate(name) if letter == "-"):
        ends = nearest_name(name[:place], regions), nearest_name(name[place + 1 :], regions)
        if all(ends):
            return "-".join(map(str, ends))
    return None


def _check_place(folder: Path, path: Path, label: str) -> None:
    """Raise TableError if a participant's file is another's, by the links that lead to it."""
    reason = foreign_place(path, f"sub-{label.partition(SESSION)[0]}", folder)
    if reason is not None:
        raise TableError(path, "owner", f"the path {reason}. Copy the participant's own file.")


def _check_owner(path: Path, label: str, lines: Sequence[str]) -> None:
    """Raise TableError if a stats file names another participant, or the other hemisphere."""
    stated = dict(line.split()[1:3] for line in lines if _STATED.match(line))
    name = stated.get("subjectname", "")
    person = label.partition(SESSION)[0]
    if name and _is_of_another(name, person):
        raise TableError(
            path,
            "owner",
            f"its line 'subjectname' must name sub-{person}, got {name}. "
            "Copy the participant's own file.",
        )
    own = path.name.partition(".")[0]
    side = stated.get("hemi", "")
    if {own, side} == {"lh", "rh"}:
        raise TableError(
            path,
            "owner",
            f"its line 'hemi' must be {own}, got {side}. Copy the file of the named hemisphere.",
        )


def _is_of_another(name: str, person: str) -> bool:
    """Return whether a name in FreeSurfer is a label of the same kind and of another participant.

    A site may have used other names, such as bert, which have no meaning.
    """
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    bare = last.partition(".long.")[0].partition(SESSION)[0]
    kinds = {re.sub(r"\d", "0", plain_label(each)).casefold() for each in (bare, person)}
    alike = bare.casefold().startswith("sub-") or (len(kinds) == 1 and any(map(str.isdigit, bare)))
    return alike and canonical_label(bare) != canonical_label(person)


def _cells(folder: Path, path: Path, label: str, names: Sequence[str]) -> dict[str, str]:
    """Return the cells of a participant's file, by column."""
    lines = _lines(folder, path)
    if not path.name.endswith(_PAIRS):
        if not path.name.endswith(PARCELS):
            _check_owner(path, label, lines)
        return _single_cells(path.name, lines)
    try:
        return pair_cells(lines, names, courses=path.name.endswith(_COURSES))
    except PairsError as error:
        raise TableError(path, "pairs", str(error)) from error
    except ValueError as error:
        raise TableError(
            path,
            "width",
            f"every row must have a cell for each region, and {error}. Write the file again.",
        ) from error


def _single_cells(name: str, lines: Sequence[str]) -> dict[str, str]:
    """Return the cells of a file that has one for each region."""
    return parcel_cells(lines) if name.endswith(PARCELS) else stats_cells(lines)


def _lines(folder: Path, path: Path) -> list[str]:
    """Return the lines of a file, or none if it does not exist.

    Raises TableError if it exists and can't be read.
    """
    try:
        own = path_in_folder(folder, str(path.relative_to(folder)))
        if not own.exists():
            return []
        if own.name.endswith(PARCELS):
            return parcel_lines(own)
        if own.name.endswith(PARCEL_SERIES):
            return course_lines(own)
        return text_of(own, _MOST_BYTES).splitlines()
    except UnicodeDecodeError as error:
        raise wrong_encoding(path) from error
    except (OSError, ValueError, DataError) as error:
        raise TableError(
            path,
            "unreadable",
            "the file must be readable and inside the data set, and it is not. "
            "Check its rights, or copy it again.",
        ) from error
