"""A result's named sets of maps as image files, each with a sidecar."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consortium.algorithms.base import Result
from consortium.algorithms.findings import Array, ImageSet
from consortium.files.atomic import write_json, write_text
from consortium.report.bids import (
    NOT_IN_BIDS,
    describe,
    label,
    map_stem,
    strict,
    voxel_text,
    write_image,
)
from consortium.report.cells import cell_json
from consortium.report.tables import paint_view
from consortium.space.grid import Grid
from consortium.space.study_space import Space
from consortium.study.spec import Study


def write_image_sets(folder: Path, study: Study, space: Space, result: Result) -> list[Path]:
    """Write every set as one image, in `ImageSet`'s order of entities, before ``desc``.

    Returns
    -------
    list of Path
        The images, relative to the folder.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    if not result.images:
        return []
    write_json(folder / "dataset_description.json", describe(study))
    write_text(folder / ".bidsignore", "\n".join(NOT_IN_BIDS) + "\n")
    written = []
    for images in result.images.values():
        grid = space.maps if images.fine else space.grid
        name = map_stem(study, grid, images.view)
        front, _, description = name.partition("_desc-")
        entities = "".join(f"_{key}-{label(value)}" for key, value in images.entities.items())
        name = f"{front}{entities}_desc-{description}"
        stem = folder / f"tpl-{study.data.space}" / "func" / name
        about = _about(study, grid, result, images)
        write_json(stem.with_name(f"{name}_{images.suffix}.json"), about)
        values = painted(space, images).astype(np.float32)
        # A file of one map has three dimensions.
        values = values[:, 0] if values.shape[1] == 1 else values
        written.append(write_image(stem, images.suffix, grid, values))
    return [path.relative_to(folder) for path in written]


def painted(space: Space, images: ImageSet) -> Array:
    """Values of a set on the voxels of its grid: V x K."""
    if images.fine:
        return images.values
    for view in space.views:
        if view.name == images.view:
            return paint_view(space, view, images.values)
    return np.asarray(space.paint(images.values))


def _about(study: Study, grid: Grid, result: Result, images: ImageSet) -> dict[str, object]:
    many = range(len(images.labels))
    accuracy = [cell_json(each) for each in images.accuracy]
    return {
        "Description": images.caption,
        "Units": images.units,
        "SpatialReference": study.data.space,
        "Resolution": voxel_text(grid),
        "Maps": list(images.labels),
        "Found": [images.is_found(k) for k in many],
        **({"Accuracy": accuracy, "AccuracyOf": images.accuracy_caption} if accuracy else {}),
        "Study": study.study,
        "StudyDigest": study.digest,
        "Analysis": study.algorithm,
        "AnalysisParameters": study.analysis.model_dump(mode="json"),
        "Numbers": strict(result.numbers),
    }
