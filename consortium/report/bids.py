"""Names, images and sidecars of a BIDS-derivatives data set.

It neither names nor counts a subject: it contains the study's public result, the fields of the
study file, and how to read the two.
Source: BIDS 1.11, derivatives and template-based data (``tpl-``).
"""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.affines import voxel_sizes

from consortium.base.atomic import write_bytes
from consortium.space.grid import Grid
from consortium.study.spec import Study


def map_stem(study: Study, grid: Grid, view: str = "") -> str:
    """Return the file name of the study's (or a view's) maps up to the suffix, in BIDS labels.

    If each participant has one image, it names no task, because the study's task chose none.
    """
    images = [each for each in study.features if each.is_image]
    series = not images or any(each.is_series for each in images)
    return _stem(study, grid, f"task-{study.data.task}" if series else "", view)


def mask_stem(study: Study, grid: Grid) -> str:
    """Return the file name of the study's mask up to the suffix: a mask of the template."""
    return _stem(study, grid)


def _stem(study: Study, grid: Grid, task: str = "", view: str = "") -> str:
    resolution = resolution_label(grid)
    parts = (
        f"tpl-{study.data.space}",
        task,
        f"res-{resolution}" if resolution else "",
        f"desc-{label(study.study + study.algorithm + view)}",
    )
    return "_".join(part for part in parts if part)


def resolution_label(grid: Grid) -> str:
    """Return the edge of a voxel in mm as a BIDS label, 2.5 as ``2p5``; empty if not cubes."""
    edges = voxel_sizes(grid.affine)
    if not np.allclose(edges, edges[0], rtol=1e-3):
        return ""
    return f"{edges[0]:.3f}".rstrip("0").rstrip(".").replace(".", "p")


def label(text: str) -> str:
    """Return the letters and digits of a text, which is all that a BIDS label may have."""
    return re.sub("[^A-Za-z0-9]", "", text)


def write_image(stem: Path, suffix: str, grid: Grid, values: np.ndarray[Any, Any]) -> Path:
    """Write one compressed image; the same values give the same bytes (no time stamp in gzip)."""
    image = grid.image(values)
    image.set_data_dtype(values.dtype)
    path = stem.with_name(f"{stem.name}_{suffix}.nii.gz")
    return write_bytes(path, gzip.compress(image.to_bytes(), compresslevel=6, mtime=0))


def voxel_text(grid: Grid) -> str:
    """Return the edges of a voxel for the report: 4 x 4 x 4 mm."""
    edges = " x ".join(f"{edge:g}" for edge in np.round(voxel_sizes(grid.affine), 3))
    return f"{edges} mm"


def about_image(study: Study, grid: Grid) -> dict[str, Any]:
    """Return the fields of an image's sidecar about its voxels."""
    return {"SpatialReference": study.data.space, "Resolution": voxel_text(grid)}


def about_study(study: Study, numbers: Mapping[str, float | int | str]) -> dict[str, Any]:
    """Return the fields of an output's sidecar about its study, its analysis and public numbers."""
    return {
        "Study": study.study,
        "StudyDigest": study.digest,
        "Analysis": study.algorithm,
        "AnalysisParameters": study.analysis.model_dump(mode="json"),
        "Numbers": _strict(numbers),
    }


def _strict(numbers: Mapping[str, float | int | str]) -> dict[str, float | int | str]:
    """Return numbers for JSON: one that is not finite is written as its name."""
    return {
        name: value if isinstance(value, str) or np.isfinite(value) else str(value)
        for name, value in numbers.items()
    }
