"""A result's named sets of maps as image files, each with a sidecar.

Maps on a mesh are a pair of GIFTI, and one of CIFTI. Source: GIFTI 1.0; CIFTI-2; entities hemi and
den of BIDS 1.11. The same values give the same bytes.

Also what NeuroVault asks of a map, under its own names, for the map's sidecar. Source: fields and
choices of NeuroVault's images (neurovault.org/api). All of it is public: the study file says it, or
the privacy report.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import ImageSet
from consortium.base.atomic import write_bytes, write_json
from consortium.report.bids import about_image, about_study, label, map_stem, mask_stem, write_image
from consortium.report.finished import Finished
from consortium.report.tables import cell_json
from consortium.space.grid import Grid
from consortium.space.mesh import SIDE_NAMES, Hemisphere, Mesh
from consortium.space.nifti import KEPT, mark_kept
from consortium.space.study_space import Space
from consortium.study.spec import Study

_DENSITY = "_den-"
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


def surface_name(study: Study, mesh: Mesh, view: str, entities: str = "") -> str:
    """Return the file name of maps on a mesh up to the suffix, for both hemispheres.

    ``entities`` come before ``desc``, each with an underscore in front. Maps of series name the
    task.
    """
    description = label(study.study + study.algorithm + view)
    front = f"tpl-{mesh.kind.space}" + ("" if view else f"_task-{study.data.task}")
    return f"{front}{_DENSITY}{mesh.kind.density}{entities}_desc-{description}"


def surface_folder(folder: Path, mesh: Mesh) -> Path:
    """Return the folder of maps on a mesh in an output folder."""
    return folder / f"tpl-{mesh.kind.space}" / "func"


def about_mesh(mesh: Mesh) -> dict[str, Any]:
    """Return the fields of a sidecar about the mesh."""
    return {
        "SpatialReference": mesh.name,
        "Density": f"{mesh.kind.vertices:,} vertices per hemisphere",
        "Vertices": mesh.features,
        "MeshDigest": mesh.digest,
    }


def write_surface(
    folder: Path,
    name: str,
    suffix: str,
    mesh: Mesh,
    values: Array,
    labels: Sequence[str],
    about: dict[str, Any],
    *,
    kept: bool = False,
) -> list[Path]:
    """Write maps (D x K) with a sidecar.

    Raises OutputError if the folder can't be written.

    Parameters
    ----------
    folder : Path
        Folder of the files; `surface_folder` of an output folder.
    name : str
        From `surface_name`.
    suffix : str
        End of the files' names.
    values : array, shape (D, K)
        The medial wall is NaN in GIFTI, as 0 would be a small p, and has no place in CIFTI.
    labels : sequence of str
        Of the K maps.
    about : dict
        Content of the sidecar.
    kept : bool
        Whether the files must not leave the hospital, and say so.

    Returns
    -------
    list of Path
        The CIFTI file, and GIFTI files of the left and the right hemisphere.
    """
    write_json(folder / f"{name}_{suffix}.json", {**about, **about_mesh(mesh)})
    dense = _cifti(mesh, values, labels)
    if kept:
        mark_kept(dense)
    written = [write_bytes(folder / f"{name}_{suffix}.dscalar.nii", dense.to_bytes())]
    before = "_space-" if "_space-" in name else _DENSITY
    for side, rows in mesh.split(values):
        own = name.replace(before, f"_hemi-{side.side}{before}", 1)
        content = _gifti(side, rows, labels, {"Description": KEPT.decode()} if kept else {})
        written.append(write_bytes(folder / f"{own}_{suffix}.func.gii", content.to_bytes()))
    return written


def _cifti(mesh: Mesh, values: Array, labels: Sequence[str]) -> nib.Cifti2Image:
    left, right = (
        nib.cifti2.BrainModelAxis.from_surface(
            np.flatnonzero(side.cortex), len(side.cortex), f"cortex_{SIDE_NAMES[side.side]}"
        )
        for side in mesh.sides
    )
    axes = nib.cifti2.ScalarAxis(list(labels)), left + right
    image = nib.Cifti2Image(np.asarray(values.T, dtype=np.float32), axes)
    image.nifti_header.set_intent("ConnDenseScalar")
    return image


def _gifti(
    side: Hemisphere, values: Array, labels: Sequence[str], more: dict[str, str]
) -> GiftiImage:
    structure = f"Cortex{SIDE_NAMES[side.side].capitalize()}"
    arrays = [
        GiftiDataArray(
            side.spread(column, np.nan),
            datatype="NIFTI_TYPE_FLOAT32",
            meta=GiftiMetaData({"Name": name}),
        )
        for column, name in zip(values.T, labels, strict=True)
    ]
    meta = GiftiMetaData({"AnatomicalStructurePrimary": structure, **more})
    return GiftiImage(darrays=arrays, meta=meta)


def write_image_sets(
    folder: Path, run: Finished, more: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Path]:
    """Write every set as one image, in `ImageSet`'s order of entities, before ``desc``; and masks.

    A set on a mesh becomes a CIFTI file and a GIFTI file of each hemisphere, and has no mask.
    Raises ValueError if two sets would be one file; none is written then. Raises OutputError if the
    folder can't be written.

    Parameters
    ----------
    more : mapping of str to mapping, optional
        Further fields of the sidecars, by the sets' keys in the result.

    Returns
    -------
    list of Path
        The images.
    """
    study = run.study
    space = run.space
    names = _names(study, space, run.result)
    written = []
    grids = {}
    for key, images in run.result.images.items():
        grid = image_set_grid(space, images)
        about = {
            "Description": images.caption,
            "Units": images.units,
            **_about_maps(images),
            **(more or {}).get(key, {}),
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
    """Return the voxels or vertices of a set's maps."""
    mesh = space.mesh_of(images.view)
    if mesh is not None:
        return mesh
    return space.maps if images.fine else space.grid


def on_grid(space: Space, images: ImageSet, values: Array) -> Array:
    """Return values in a set's rows as values of its grid's voxels: V x K."""
    if images.fine or (space.views and space.mesh_of(images.view) is not None):
        return values
    for view in space.views:
        if view.name == images.view:
            return np.asarray(space.paint_view(view, values))
    return np.asarray(space.paint(values))


def _names(study: Study, space: Space, result: Result) -> dict[str, str]:
    """Return the file name of every set up to the suffix."""
    names: dict[str, str] = {}
    owners: dict[tuple[str, str], str] = {}
    for key, images in result.images.items():
        entities = "".join(f"_{name}-{label(value)}" for name, value in images.entities.items())
        names[key] = _name(study, space, images, entities)
        other = owners.setdefault((names[key], images.suffix), key)
        if other != key:
            raise ValueError(
                f"the sets of maps '{other}' and '{key}' would both be the file "
                f"{names[key]}_{images.suffix}.nii.gz. Give them different entities"
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
    """Return the known fields of a released map for NeuroVault.

    Parameters
    ----------
    place : Grid or Mesh
        Its voxels or vertices; NeuroVault names templates of volumes only.
    stat : str
        Kind of the map's values in BIDS's terms; empty for none of them.
    view : str
        The view that the map is of; empty for series of images.
    """
    space = run.study.data.space
    persons = _persons(run)
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
    """Return participants at the sites that answered; 0 if units are not participants."""
    study = run.study
    if study.privacy.unit != "subject" or study.analysis.grouped is not None:
        return 0
    return sum(site.units for site in run.report.sites if site.answered)
