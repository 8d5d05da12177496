"""Names, images and descriptions of a BIDS-derivatives data set.

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
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.affines import voxel_sizes

from consortium import __version__
from consortium.files.atomic import write_bytes, write_json, write_text
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


def start_dataset(folder: Path, study: Study) -> None:
    """Write what makes a folder a data set: its description, and what validators pass over.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    write_json(folder / "dataset_description.json", describe(study))
    write_text(folder / ".bidsignore", "\n".join(NOT_IN_BIDS) + "\n")


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


def about_image(study: Study, grid: Grid) -> dict[str, Any]:
    """Tell in an image's sidecar where its voxels are."""
    return {"SpatialReference": study.data.space, "Resolution": voxel_text(grid)}


def about_study(study: Study, numbers: Mapping[str, float | int | str]) -> dict[str, Any]:
    """Tell in a sidecar which study, which analysis and which public numbers it belongs to."""
    return {
        "Study": study.study,
        "StudyDigest": study.digest,
        "Analysis": study.algorithm,
        "AnalysisParameters": study.analysis.model_dump(mode="json"),
        "Numbers": _strict(numbers),
    }


def _strict(numbers: Mapping[str, float | int | str]) -> dict[str, float | int | str]:
    """Numbers that JSON can hold: one that is not finite is written as its name."""
    return {
        name: value if isinstance(value, str) or np.isfinite(value) else str(value)
        for name, value in numbers.items()
    }
