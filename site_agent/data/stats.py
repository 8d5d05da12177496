"""FreeSurfer's stats files, one for each person: regions in lines, measures in columns.

Source: the comment lines of ``aparc.stats`` and ``aseg.stats`` (FreeSurfer 5 to 8), of which
``ColHeaders`` names the columns and ``Measure`` lines hold numbers of the whole brain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from consortium.base.atomic import beside
from consortium.errors import DataError
from consortium.views.table import ANYONE, TableView
from site_agent.data.wording import Wording

_MOST_BYTES = 4_000_000
_LABEL = re.compile(r"sub-([A-Za-z0-9]+)")
_NAME = "StructName"
_LONGER = re.compile(rf"{re.escape(ANYONE)}[A-Za-z0-9]")


def stats_rows(
    folder: Path, view: TableView, wording: Wording
) -> Iterator[tuple[str, Mapping[str, str], Path]]:
    """Yield every person's label, cells and stats file.

    A column is called after its region and its measure, as ``insula_ThickAvg`` or
    ``Left-Hippocampus_Volume_mm3``; a number of the whole brain by its own name, as
    ``EstimatedTotalIntraCranialVol``.

    Parameters
    ----------
    folder : Path
        The site's data set.
    view : TableView
        Its file has ``sub-*`` for a person's folder.
    wording : Wording

    Raises
    ------
    DataError
        If there is no folder of any person, or the path leads out of the data set or to another
        person's files.
    """
    names = [name for name, _ in view.single_columns]
    for label, path in _files(folder, view.file):
        found = _numbers(folder, path)
        yield label, {n: wording.cell(n, found.get(wording.column(n))) for n in names}, path


def _files(folder: Path, pattern: str) -> list[tuple[str, Path]]:
    """Every person's label and file; the pattern comes from the coordinator.

    A label that more letters follow is another person's, who would not be charged.
    """
    home = next(part for part in pattern.split("/") if ANYONE in part)
    if home != ANYONE or _LONGER.search(pattern):
        raise DataError(
            f"The study's files {pattern} may be another person's than their folder's; let the "
            f"first '{ANYONE}' be a folder's whole name, and no letter or digit follow any."
        )
    before = pattern.partition(ANYONE)[0]
    try:
        parent = beside(folder, before or ".")
        names = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
        labels = [match[1] for match in map(_LABEL.fullmatch, names) if match]
        beside(folder, pattern.replace(ANYONE, "sub-"))
    except (ValueError, OSError) as error:
        raise DataError(
            f"The study's files {pattern} are not in the site's data set; give a relative path."
        ) from error
    if not labels:
        raise DataError(f"{parent} has no folder sub-... of a person; look at the study's path.")
    return [(each, folder / pattern.replace(ANYONE, f"sub-{each}")) for each in labels]


def _numbers(folder: Path, path: Path) -> dict[str, str]:
    """Every number of a file by name; none if it can't be read, which is its person's lack."""
    try:
        own = beside(folder, str(path.relative_to(folder)))
        if own.stat().st_size > _MOST_BYTES:
            return {}
        lines = own.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    found: dict[str, str] = {}
    headings: list[str] = []
    for line in lines:
        words = line.split()
        if line.startswith("# ColHeaders"):
            headings = words[2:]
        elif line.startswith("# Measure"):
            parts = [part.strip() for part in line.split(",")]
            if len(parts) >= 4:
                found[parts[1]] = parts[3]
        elif words and not line.startswith("#") and len(words) == len(headings):
            row = dict(zip(headings, words, strict=True))
            region = row.pop(_NAME, "")
            found |= {f"{region}_{heading}": value for heading, value in row.items()}
    return found
