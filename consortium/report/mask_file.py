"""The voxels that a study's maps are of, as an image."""

from pathlib import Path
from typing import Any

import numpy as np

from consortium.base.atomic import write_json
from consortium.report.bids import about_image, mask_stem, write_image
from consortium.space.grid import Grid
from consortium.study.spec import Study


def write_mask(folder: Path, study: Study, grid: Grid) -> Path:
    """Write the mask of a grid, with its sidecar.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    stem = folder / f"tpl-{study.data.space}" / "anat" / mask_stem(study, grid)
    write_json(stem.with_name(f"{stem.name}_mask.json"), _about(study, grid))
    return write_image(stem, "mask", grid, np.ones(grid.features, dtype=np.uint8))


def _about(study: Study, grid: Grid) -> dict[str, Any]:
    source = "the MNI152 template's brain" if study.data.mask == "template" else "the study's mask"
    return {
        "Description": f"Voxels of the study's grid, from {source}; the same at every site.",
        "Type": "Brain",
        **about_image(study, grid),
        "Voxels": grid.features,
        "GridDigest": grid.digest,
    }
