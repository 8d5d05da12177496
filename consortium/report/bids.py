"""The group maps as a BIDS-derivatives data set.

Nothing in it names or counts a subject: what is written is the study's public
result, what the study file says, and how to read the two.
Source: BIDS 1.11, derivatives and template-based data (``tpl-``). ``components``
is a suffix of BEP012, not yet of the standard, and BIDS has no functional mask of a
template; hence ``.bidsignore``.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.affines import voxel_sizes
from numpy.typing import NDArray

from consortium import __version__
from consortium.files.atomic import write_bytes, write_json, write_text
from consortium.report.components import Components
from consortium.space.grid import Grid
from consortium.study.spec import Study

BIDS_VERSION = "1.11.0"
GENERATOR = "cape-consortium"
NOT_IN_BIDS = (
    "*_components.*",
    "*_mask.*",
    "*_noise.*",
    "*_loadings.*",
    "*_results.*",
    "*_statmap.*",
    "privacy_report.json",
    "report.html",
    "run.json",
    "evidence",
    "transcript",  # no slash: the validator would not match the folder itself
)
"""What the validator shall pass over, as lines of ``.bidsignore``."""


@dataclass(frozen=True)
class Paths:
    """Files of the maps' data set."""

    description: Path
    ignore: Path
    components: Path
    components_sidecar: Path
    mask: Path
    mask_sidecar: Path
    noise: Path | None = None
    noise_sidecar: Path | None = None


def write_derivatives(
    folder: Path,
    study: Study,
    grid: Grid,
    components: Components,
    numbers: Mapping[str, float | int | str],
    noise: NDArray[np.float64] | None = None,
) -> Paths:
    """Write maps, mask, sidecars and the data set's description.

    Parameters
    ----------
    folder : Path
        Output folder; files of an earlier run are replaced one by one.
    study : Study
    grid : Grid
    components : Components
        What `consortium.report.components.tidy_components` returns.
    numbers : mapping
        The analysis's public numbers, as its `Result` holds them.
    noise : array, shape (V,), optional
        Standard deviation of the privacy noise in each voxel of the maps that came in; a second
        image then tells it in the units of the maps that are written.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    stem = folder / f"tpl-{study.data.space}" / "func" / map_stem(study, grid)
    paths = Paths(
        description=write_json(folder / "dataset_description.json", describe(study)),
        ignore=write_text(folder / ".bidsignore", "\n".join(NOT_IN_BIDS) + "\n"),
        components=write_image(stem, "components", grid, components.maps.astype(np.float32)),
        components_sidecar=write_json(
            stem.with_name(f"{stem.name}_components.json"),
            _about_maps(study, grid, components) | {"Numbers": strict(numbers)},
        ),
        mask=write_image(stem, "mask", grid, np.ones(grid.features, dtype=np.uint8)),
        mask_sidecar=write_json(stem.with_name(f"{stem.name}_mask.json"), _about_mask(study, grid)),
    )
    if noise is None:
        return paths
    floor = noise_in_maps(noise, components).astype(np.float32)
    about = _about_noise(study, grid, float(np.median(noise)), np.median(floor, axis=0))
    return replace(
        paths,
        noise=write_image(stem, "noise", grid, floor),
        noise_sidecar=write_json(stem.with_name(f"{stem.name}_noise.json"), about),
    )


def noise_in_maps(noise: NDArray[np.float64], components: Components) -> NDArray[np.float64]:
    """Privacy noise of each voxel (V) in the units of each map: V x R."""
    return np.asarray(noise[:, None] / components.noise)


def map_stem(study: Study, grid: Grid, view: str = "") -> str:
    """File name of the study's (or a view's) maps up to the suffix, with plain BIDS labels."""
    resolution = resolution_label(grid)
    parts = (
        f"tpl-{study.data.space}",
        f"task-{study.data.task}",
        f"res-{resolution}" if resolution else "",
        f"desc-{label(study.study + study.algorithm + view)}",
    )
    return "_".join(part for part in parts if part)


def resolution_label(grid: Grid) -> str:
    """Edge of a voxel in mm as a BIDS label, 2.5 as ``2p5``; empty if voxels are not cubes."""
    edges = voxel_sizes(grid.affine)
    if not np.allclose(edges, edges[0], rtol=1e-3):
        return ""
    return f"{edges[0]:.3f}".rstrip("0").rstrip(".").replace(".", "p")


def label(text: str) -> str:
    """Keep letters and digits, which is all that a BIDS label may have."""
    return re.sub("[^A-Za-z0-9]", "", text)


def write_image(stem: Path, suffix: str, grid: Grid, values: np.ndarray[Any, Any]) -> Path:
    """Write one compressed image; the same values give the same bytes (no time stamp in gzip)."""
    image = grid.image(values)
    image.set_data_dtype(values.dtype)
    path = stem.with_name(f"{stem.name}_{suffix}.nii.gz")
    return write_bytes(path, gzip.compress(image.to_bytes(), compresslevel=6, mtime=0))


def describe(study: Study) -> dict[str, Any]:
    """Content of ``dataset_description.json``."""
    return {
        "Name": study.title or f"Group maps of the study {study.study}",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": GENERATOR, "Version": __version__}],
    }


def voxel_text(grid: Grid) -> str:
    """Write the edges of a voxel for people: 4 x 4 x 4 mm."""
    edges = " x ".join(f"{edge:g}" for edge in np.round(voxel_sizes(grid.affine), 3))
    return f"{edges} mm"


def _about_maps(study: Study, grid: Grid, components: Components) -> dict[str, Any]:
    """Sidecar of the maps: how to read volume r of the image, entry r of every list."""
    return {
        "Description": "Group component maps over the consortium's sites, one volume each.",
        "Units": "robust z-score",
        "SpatialReference": study.data.space,
        "Resolution": voxel_text(grid),
        "FourthDimension": "component, in descending order of explained share",
        "SignConvention": "arbitrary in the analysis; fixed so that the heavier tail of a map's "
        "values is positive",
        "Scale": "(value - median) / noise floor; the noise floor is 1.4826 times the median "
        "absolute deviation over the mask (the standard deviation where that is zero)",
        "NoiseFloor": [float(noise) for noise in components.noise],
        "ExplainedShare": [float(share) for share in components.shares],
        "ExplainedShareOf": "the variance of all components together",
        "Peaks": [[round(float(mm), 2) for mm in peak] for peak in components.peaks],
        "PeaksUnits": "mm",
        "PeakScores": [float(height) for height in components.heights],
        "Study": study.study,
        "StudyDigest": study.digest,
        "Analysis": study.algorithm,
        "AnalysisParameters": study.analysis.model_dump(mode="json"),
    }


def _about_noise(
    study: Study, grid: Grid, noise: float, floor: NDArray[np.float32]
) -> dict[str, Any]:
    return {
        "Description": "Standard deviation of the privacy noise in each voxel of each component "
        "map, in the units of that map. A map divided by it has noise of size 1 from privacy "
        "alone; the sampling error comes on top.",
        "Units": "robust z-score",
        "SpatialReference": study.data.space,
        "Resolution": voxel_text(grid),
        "MedianNoise": [float(value) for value in floor],
        "MedianNoiseBeforeScaling": noise,
        "MapsSmoothing": study.data.maps_smoothing,
        "MapsSmoothingUnits": "mm FWHM, after the release",
    }


def _about_mask(study: Study, grid: Grid) -> dict[str, Any]:
    source = "the MNI152 template's brain" if study.data.mask == "template" else "the study's mask"
    return {
        "Description": f"Voxels of the study's grid, from {source}; the same at every site.",
        "Type": "Brain",
        "SpatialReference": study.data.space,
        "Resolution": voxel_text(grid),
        "Voxels": grid.features,
        "GridDigest": grid.digest,
    }


def strict(numbers: Mapping[str, float | int | str]) -> dict[str, float | int | str]:
    """Numbers that JSON can hold: one that is not finite is written as its name."""
    return {
        name: value if isinstance(value, str) or np.isfinite(value) else str(value)
        for name, value in numbers.items()
    }
