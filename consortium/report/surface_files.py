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
from consortium.study.spec import Study


def surface_name(study: Study, mesh: Mesh, view: str, entities: str = "") -> str:
    """File name of maps on a mesh up to the suffix, for both hemispheres.

    ``entities`` come before ``desc``, each with an underscore in front.
    """
    description = label(study.study + study.algorithm + view)
    return f"tpl-{mesh.kind.space}_den-{mesh.kind.density}{entities}_desc-{description}"


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
) -> list[Path]:
    """Write maps (D x K) with a sidecar.

    Parameters
    ----------
    folder : Path
        Output folder.
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

    Returns
    -------
    list of Path
        The CIFTI file, and GIFTI files of the left and the right hemisphere.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    place = folder / f"tpl-{mesh.kind.space}" / "func"
    write_json(place / f"{name}_{suffix}.json", {**about, **about_mesh(mesh)})
    written = [
        write_bytes(place / f"{name}_{suffix}.dscalar.nii", _cifti(mesh, values, labels).to_bytes())
    ]
    front = f"tpl-{mesh.kind.space}"
    for side, rows in mesh.split(values):
        own = name.replace(front, f"{front}_hemi-{side.side}", 1)
        content = _gifti(side, rows, labels).to_bytes()
        written.append(write_bytes(place / f"{own}_{suffix}.func.gii", content))
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


def _gifti(side: Hemisphere, values: Array, labels: Sequence[str]) -> GiftiImage:
    structure = f"Cortex{SIDE_NAMES[side.side].capitalize()}"
    arrays = [
        GiftiDataArray(
            side.spread(column, np.nan),
            datatype="NIFTI_TYPE_FLOAT32",
            meta=GiftiMetaData({"Name": name}),
        )
        for column, name in zip(values.T, labels, strict=True)
    ]
    meta = GiftiMetaData({"AnatomicalStructurePrimary": structure})
    return GiftiImage(darrays=arrays, meta=meta)
