"""A result's named sets of maps as image files, each with a sidecar.

Also what NeuroVault asks of a map, under its own names, for the map's sidecar. Source: fields and
choices of NeuroVault's images (neurovault.org/api). All of it is public: the study file says it, or
the privacy report.
"""

from pathlib import Path
from typing import Any

import numpy as np

from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import ImageSet
from consortium.base.atomic import write_json
from consortium.report.bids import about_image, about_study, label, map_stem, mask_stem, write_image
from consortium.report.finished import Finished
from consortium.report.surface_files import surface_folder, surface_name, write_surface
from consortium.report.tables import cell_json
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.study_space import Space
from consortium.study.spec import Study

_TYPES = {
    "effect": "univariate-beta map",
    "p": "P map (given null hypothesis)",
    "t": "T map",
    "variance": "variance",
    "z": "Z map",
}
"""By the label of the entity ``stat``; other maps are ``other``."""
_TEMPLATES = ("MNI152NLin2009cAsym",)
_MODALITIES = {"surface": "Structural MRI"}


def write_image_sets(folder: Path, run: Finished) -> list[Path]:
    """Write every set as one image, in `ImageSet`'s order of entities, before ``desc``; and masks.

    A set on a mesh becomes a CIFTI file and a GIFTI file of each hemisphere, and has no mask.
    Raises ValueError if two sets would be one file; none is written then. Raises OutputError if the
    folder can't be written.

    Returns
    -------
    list of Path
        The images.
    """
    study, space = run.study, run.space
    names = _names(study, space, run.result)
    written = []
    grids = {}
    for key, images in run.result.images.items():
        grid = image_set_grid(space, images)
        about = {
            "Description": images.caption,
            "Units": images.units,
            **_about_maps(images),
            **about_map(run, grid, images.entities.get("stat", ""), images.view),
            **about_study(study, run.result.numbers),
        }
        if isinstance(grid, Mesh):
            content = on_grid(space, images, images.values), images.labels, about
            place = surface_folder(folder, grid)
            written += write_surface(place, names[key], images.suffix, grid, *content)
            continue
        grids[grid.digest] = grid
        stem = folder / f"tpl-{study.data.space}" / "func" / names[key]
        about |= about_image(study, grid)
        write_json(stem.with_name(f"{stem.name}_{images.suffix}.json"), about)
        values = on_grid(space, images, images.values).astype(np.float32)
        # A file of one map has three dimensions.
        values = values[:, 0] if values.shape[1] == 1 else values
        written.append(write_image(stem, images.suffix, grid, values))
    return [*written, *(write_mask(folder, study, grid) for grid in grids.values())]


def image_set_grid(space: Space, images: ImageSet) -> Grid | Mesh:
    """Voxels or vertices that a set's maps are painted on."""
    mesh = space.mesh_of(images.view)
    if mesh is not None:
        return mesh
    return space.maps if images.fine else space.grid


def on_grid(space: Space, images: ImageSet, values: Array) -> Array:
    """Values in a set's rows as values of its grid's voxels: V x K."""
    if images.fine or (space.views and space.mesh_of(images.view) is not None):
        return values
    for view in space.views:
        if view.name == images.view:
            return np.asarray(space.paint_view(view, values))
    return np.asarray(space.paint(values))


def _names(study: Study, space: Space, result: Result) -> dict[str, str]:
    """File name of every set up to the suffix."""
    names: dict[str, str] = {}
    owners: dict[tuple[str, str], str] = {}
    for key, images in result.images.items():
        entities = "".join(f"_{name}-{label(value)}" for name, value in images.entities.items())
        names[key] = _name(study, space, images, entities)
        other = owners.setdefault((names[key], images.suffix), key)
        if other != key:
            raise ValueError(
                f"the sets of maps '{other}' and '{key}' would both be the file "
                f"{names[key]}_{images.suffix}.nii.gz; give them different entities"
            )
    return names


def _name(study: Study, space: Space, images: ImageSet, entities: str) -> str:
    grid = image_set_grid(space, images)
    if isinstance(grid, Mesh):
        return surface_name(study, grid, images.view, entities)
    stem = map_stem(study, grid, images.view)
    front, _, description = stem.partition("_desc-")
    return f"{front}{entities}_desc-{description}"


def _about_maps(images: ImageSet) -> dict[str, Any]:
    accuracy = [cell_json(each) for each in images.accuracy]
    return {
        "Maps": list(images.labels),
        "Found": [images.is_found(k) for k in range(len(images.labels))],
        **({"Accuracy": accuracy, "AccuracyOf": images.accuracy_caption} if accuracy else {}),
    }


def write_mask(folder: Path, study: Study, grid: Grid) -> Path:
    """Write the mask of a grid, with its sidecar.

    Raises OutputError if the folder can't be written.
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


def about_map(run: Finished, place: Grid | Mesh, stat: str = "", view: str = "") -> dict[str, Any]:
    """Fields of a released map that NeuroVault has, as far as they are known.

    Parameters
    ----------
    place : Grid or Mesh
        Its voxels or vertices; NeuroVault names templates of volumes only.
    stat : str
        What the map's values are, as BIDS calls it; empty for none of its names.
    view : str
        The view that the map is of; empty for series of images.
    """
    space, persons = run.study.data.space, _persons(run)
    template = space if space in _TEMPLATES else "GenericMNI"
    named = isinstance(place, Grid) and space.startswith("MNI")
    return {
        "analysis_level": "group",
        "map_type": _TYPES.get(stat, "other"),
        "modality": _modality(run, view),
        **({"number_of_subjects": persons} if persons else {}),
        **({"target_template_image": template} if named else {}),
    }


def _modality(run: Finished, view: str) -> str:
    for each in run.study.features:
        if each.name == view and not each.is_series:
            return _MODALITIES.get(each.source, "Other")
    return "fMRI-BOLD"


def _persons(run: Finished) -> int:
    """Participants at the sites that answered; 0 if units of privacy are not participants."""
    study = run.study
    if study.privacy.unit != "subject" or study.analysis.grouped is not None:
        return 0
    return sum(site.units for site in run.report.sites if site.answered)
