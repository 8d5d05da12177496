"""Maps on a mesh as files: a pair of GIFTI, and one of CIFTI.

Source: GIFTI 1.0; CIFTI-2; entities hemi and den of BIDS 1.11. The same values give the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

from consortium.algorithms.base import Array
from consortium.base.atomic import write_bytes, write_json
from consortium.report.bids import label
from consortium.space.mesh import SIDE_NAMES, Hemisphere, Mesh
from consortium.space.nifti import KEPT, mark_kept
from consortium.study.spec import Study

_DENSITY = "_den-"


def surface_name(study: Study, mesh: Mesh, view: str, entities: str = "") -> str:
    """File name of maps on a mesh up to the suffix, for both hemispheres.

    ``entities`` come before ``desc``, each with an underscore in front. Maps of series name the
    task.
    """
    description = label(study.study + study.algorithm + view)
    front = f"tpl-{mesh.kind.space}" + ("" if view else f"_task-{study.data.task}")
    return f"{front}{_DENSITY}{mesh.kind.density}{entities}_desc-{description}"


def surface_folder(folder: Path, mesh: Mesh) -> Path:
    """Where an output folder has maps on a mesh."""
    return folder / f"tpl-{mesh.kind.space}" / "func"


def about_mesh(mesh: Mesh) -> dict[str, Any]:
    """Tell in a sidecar which mesh values are on."""
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
        Where the files are to lie; `surface_folder` of an output folder.
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
