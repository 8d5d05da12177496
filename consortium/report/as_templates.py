"""The components that a run found, as the templates of a next study."""

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.base.atomic import write_bytes
from consortium.errors import DataError
from consortium.report.comparison import found_components, read_outcome
from consortium.space.atlas import read_image

HOME_PAGE = "networks.html"
"""Page of a folder that must not leave its hospital."""
_ENDS = ".nii", ".nii.gz"


def write_templates(folder: Path, target: Path) -> tuple[int, ...]:
    """Write the maps that were found as one 4-D image; it costs no privacy.

    Parameters
    ----------
    folder : Path
        Output folder of a run with component maps.
    target : Path
        A file that is not there yet, beside the next study's file.

    Returns
    -------
    tuple of int
        Components of the run that it holds, from 1, in their order.

    Raises
    ------
    DataError
        If the run found no component, its maps can't be read, or the file can't be made there.
    OutputError
        If the folder holds no result, or the file can't be written.
    """
    if not target.name.endswith(_ENDS):
        raise DataError(f"{target} is no NIfTI file's name; let it end in .nii.gz.")
    if target.exists():
        raise DataError(f"{target} is there already; name another file, or remove it.")
    if (folder / HOME_PAGE).exists():
        raise DataError(
            f"{folder} holds a hospital's networks at home, which must not leave it; name the "
            "output folder of a run."
        )
    outcome = read_outcome(folder)
    if outcome.maps is None:
        raise DataError(
            f"{folder} holds no component maps; name the output of group_ica, ica, pca or "
            "template_networks."
        )
    image, values = read_image(outcome.maps, "component image")
    maps = values if values.ndim == 4 else values[..., None]
    found = found_components(outcome, maps.shape[3])
    if not found:
        raise DataError(f"The run in {folder} found no component; there is nothing to start from.")
    chosen = nib.Nifti1Image(np.ascontiguousarray(maps[..., found], np.float32), image.affine)
    chosen.header.set_xyzt_units("mm")
    data = chosen.to_bytes()
    write_bytes(target, gzip.compress(data, mtime=0) if target.name.endswith(".gz") else data)
    return tuple(k + 1 for k in found)
