"""Comparison of two results, only from their output folders, without privacy loss."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from consortium.base.array import Array
from consortium.base.atomic import DAMAGED
from consortium.base.tables import MOST_BYTES, read_rows
from consortium.errors import DataError, OutputError
from consortium.report.bids import label
from consortium.report.legend import correlation
from consortium.report.privacy_report import PrivacyReport, read_privacy_report
from consortium.report.shown_maps import FAR, nearest_region
from consortium.space.atlas import read_image, sample_maps
from consortium.space.grid import Grid
from consortium.space.templates import DENSE, read_dense

_MAPS = ".nii.gz", DENSE
_KEYS = ("view", "entry")
_MISSING = "n/a"
_MNI = "MNI152"
_OF_ANALYSIS = ("Analysis", "AnalysisParameters")


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One of two runs that are compared, from its output folder."""

    name: str
    """Name of the study."""
    report: PrivacyReport
    about: Mapping[str, Any]
    """Content of the maps' sidecar, or without maps of another one about the analysis."""
    maps: Path | None
    """Component maps."""
    contrasts: Mapping[str, Mapping[tuple[str, str], tuple[float, float]]]
    """Effect and standard error of every outcome (view, entry) of every contrast."""

    @property
    def on_mesh(self) -> bool:
        """Whether the maps are at vertices of a mesh, and not in voxels."""
        return self.maps is not None and self.maps.name.endswith(DENSE)


@dataclass(frozen=True)
class Pair:
    """Components of two compared runs that were matched, numbered from 1."""

    first: int
    second: int
    correlation: float


@dataclass(frozen=True, eq=False)
class Matching:
    """How the components that two runs found go together."""

    pairs: tuple[Pair, ...]
    """The best first; the sign of a component is arbitrary, that of a correlation is reported."""
    correlations: Array
    """K x L. Over the voxels where the first run has a map, or over the vertices of both."""
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    """Numbers of the components of rows and of columns, from 1."""
    names: tuple[Mapping[int, str], Mapping[int, str]] = ({}, {})
    """Names of the components of both runs, by their numbers."""


@dataclass(frozen=True)
class Difference:
    """An outcome's effect in the second compared run less that in the first."""

    contrast: str
    view: str
    entry: str
    first: float
    second: float
    value: float
    error: float
    """The difference, and its standard error if the runs had no participant in common."""

    @property
    def z(self) -> float:
        """The difference over its standard error; 0 if both are exact and equal."""
        return self.value / self.error if self.error > 0 else 0.0


def read_outcome(folder: Path) -> ComparedRun:
    """Read the files of one of the compared runs.

    Raises OutputError if the folder has no result, or a damaged one.
    """
    report = read_privacy_report(folder / "privacy_report.json")
    maps = [path for end in _MAPS for path in sorted(folder.glob(f"tpl-*/func/*_components{end}"))]
    try:
        about = _json(_sidecar(maps[0])) if maps else _analysis(folder)
        contrasts = {
            _contrast(path, report.study): _effects(path)
            for path in sorted((folder / "tables").glob("desc-*contrast*_results.tsv"))
        }
    except DAMAGED as error:
        raise OutputError(f"The tables or maps in {folder} are damaged.") from error
    return ComparedRun(report.study, report, about, maps[0] if maps else None, contrasts)


def match_components(first: ComparedRun, second: ComparedRun) -> Matching:
    """Match the found components with the largest sum of absolute correlations.

    Raises DataError if the maps can't be read, or are not of one mesh.
    """
    if first.maps is None or second.maps is None:
        return Matching((), np.zeros((0, 0)))
    read = _at_vertices if first.on_mesh or second.on_mesh else _in_voxels
    ours, theirs = read(first.maps, second.maps)
    rows = found_components(first, len(ours))
    columns = found_components(second, len(theirs))
    found = np.array([[correlation(ours[r], theirs[c]) for c in columns] for r in rows])
    found = found.reshape(len(rows), len(columns))
    pairs = [
        Pair(rows[i] + 1, columns[j] + 1, float(found[i, j]))
        for i, j in zip(*linear_sum_assignment(-np.abs(found)), strict=True)
    ]
    best = tuple(sorted(pairs, key=lambda pair: -abs(pair.correlation)))
    numbers = tuple(r + 1 for r in rows), tuple(c + 1 for c in columns)
    names = (
        _stated_names(first, len(ours)) or _regions(first, ours, numbers[0]),
        _stated_names(second, len(theirs)) or _regions(first, theirs, numbers[1]),
    )
    return Matching(best, found, *numbers, names)


def component_names(outcome: ComparedRun) -> Mapping[int, str]:
    """Return the names of a run's found components, by their numbers from 1.

    They are those that its report states, or otherwise the published regions next to the peaks.
    Empty on a mesh. Raises DataError if the maps can't be read.
    """
    if outcome.maps is None or outcome.on_mesh:
        return {}
    _, maps = _voxels(outcome.maps)
    found = [k + 1 for k in found_components(outcome, len(maps))]
    names = _stated_names(outcome, len(maps)) or _regions(outcome, maps, found)
    return {number: names[number] for number in found if number in names}


def _stated_names(outcome: ComparedRun, many: int) -> dict[int, str]:
    """Return the names in the sidecar of ``many`` maps, by the maps' numbers."""
    listed = outcome.about.get("Names")
    if not isinstance(listed, list) or len(listed) != many:
        return {}
    return {number: str(name) for number, name in enumerate(listed, start=1) if name}


def _regions(first: ComparedRun, maps: Array, numbers: Iterable[int]) -> Mapping[int, str]:
    """Return the published region next to each map's peak; none outside of MNI space.

    Parameters
    ----------
    first : ComparedRun
        The run in whose voxels the maps are.
    maps : array, shape (K, V)
    numbers : iterable of int
        Numbers of the found maps, from 1.
    """
    if first.maps is None or first.on_mesh or _MNI not in str(first.maps.parent.parent.name):
        return {}
    grid, _ = _voxels(first.maps)
    peaks = {k: grid.coordinates[int(np.abs(maps[k - 1]).argmax())] for k in numbers}
    near = {k: nearest_region(peak, FAR) for k, peak in peaks.items()}
    return {k: region.name for k, region in near.items() if region is not None}


def differences(first: ComparedRun, second: ComparedRun) -> Iterator[Difference]:
    """Yield the difference of every effect that both runs report."""
    for contrast, ours in first.contrasts.items():
        theirs = second.contrasts.get(contrast, {})
        for (view, entry), (effect, error) in ours.items():
            if (view, entry) in theirs:
                other, its = theirs[view, entry]
                both = float(np.hypot(error, its))
                yield Difference(
                    contrast=contrast,
                    view=view,
                    entry=entry,
                    first=effect,
                    second=other,
                    value=other - effect,
                    error=both,
                )


def without_effects(first: ComparedRun, second: ComparedRun) -> str:
    """Return why two compared runs have no effects in common; empty if one reports none."""
    ours = first.contrasts
    theirs = second.contrasts
    if not (ours and theirs):
        return ""
    if ours.keys() & theirs.keys():
        return (
            f"Both runs report {_named(ours.keys() & theirs.keys())}, but no outcome has the same "
            "view and entry in both, so no effect is compared."
        )
    return (
        f"No effect is compared: the first run reports {_named(ours)} and the second "
        f"{_named(theirs)}, and effects are matched by the name of their contrast. If they mean "
        "the same, give them one name in both studies."
    )


def _named(contrasts: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(contrasts))


def _in_voxels(first: Path, second: Path) -> tuple[Array, Array]:
    """Return maps of both in the first one's voxels: K x V, and L x V."""
    grid, ours = _voxels(first)
    image, values = read_image(second, "component image")
    return ours, sample_maps(values if values.ndim == 4 else values[..., None], image, grid)


def _at_vertices(first: Path, second: Path) -> tuple[Array, Array]:
    """Return maps of both at the vertices of their mesh: K x V, and L x V."""
    if not (first.name.endswith(DENSE) and second.name.endswith(DENSE)):
        raise DataError(
            f"Of {first} and {second} one has vertices of a mesh and the other voxels. Compare "
            "two runs on one mesh, or two in voxels."
        )
    image, ours = read_dense(first)
    other, theirs = read_dense(second)
    if image.header.get_axis(1) != other.header.get_axis(1):
        raise DataError(
            f"{first} and {second} are on other meshes, or have other medial walls. Compare two "
            "runs on one mesh with one wall."
        )
    return ours, theirs


def _voxels(path: Path) -> tuple[Grid, Array]:
    """Return the voxels where an image has a value, and its maps there: K x V."""
    image, values = read_image(path, "component image")
    maps = values if values.ndim == 4 else values[..., None]
    mask = (maps != 0).any(axis=3)
    if not mask.any():
        raise DataError(f"{path} has no map. Compare another run.")
    return Grid(mask, np.asarray(image.affine, dtype=np.float64)), maps[mask].T


def found_components(outcome: ComparedRun, many: int) -> list[int]:
    """Return which of ``many`` maps a compared run found; all if the sidecar does not state it."""
    listed = outcome.about.get("Found")
    flags = listed if isinstance(listed, list) and len(listed) == many else [True] * many
    return [k for k in range(many) if flags[k]]


def _contrast(path: Path, study: str) -> str:
    """Name of a table's contrast, which is the same in both runs whatever the study's name."""
    name = path.name.removeprefix("desc-").removesuffix("_results.tsv")
    return name.removeprefix(label(study)).partition("contrast")[2]


def _effects(path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    rows = read_rows(path)
    complete = [row for row in rows if {*_KEYS, "effect", "error"} <= row.keys()]
    complete = [row for row in complete if _MISSING not in (row["effect"], row["error"])]
    found = {}
    for row in complete:
        effect = float(row["effect"])
        error = float(row["error"])
        if np.isfinite([effect, error]).all():
            found[row["view"], row["entry"]] = (effect, error)
    return found


def _analysis(folder: Path) -> Mapping[str, Any]:
    """Return the analysis's fields in the first sidecar of loadings or maps, if there is one."""
    for sidecar in sorted((*folder.rglob("*_loadings.json"), *folder.glob("tpl-*/func/*.json"))):
        about = _json(sidecar)
        if "Analysis" in about:
            return {name: about[name] for name in _OF_ANALYSIS if name in about}
    return {}


def _sidecar(image: Path) -> Path:
    return image.with_name(f"{image.name.removesuffix('.nii.gz').removesuffix(DENSE)}.json")


def _json(sidecar: Path) -> Mapping[str, Any]:
    if sidecar.stat().st_size > MOST_BYTES:
        raise OutputError(f"{sidecar} is too large for a sidecar of maps.")
    about: Mapping[str, Any] = json.loads(sidecar.read_text(encoding="utf-8"))
    if not isinstance(about, dict):
        raise TypeError(sidecar)
    return about
