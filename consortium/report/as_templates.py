"""The components that a run found, as the templates of a next study."""

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.base.atomic import write_bytes
from consortium.errors import DataError
from consortium.report.comparison import ComparedRun, found_components, read_outcome
from consortium.space.atlas import read_image
from consortium.space.templates import DENSE, read_dense

HOME_PAGE = "networks.html"
"""Page of a folder that must not leave its hospital."""
_ENDS = ".nii", ".nii.gz"


def write_templates(folder: Path, target: Path) -> tuple[int, ...]:
    """Write the maps that were found as one image, or as dense maps, without privacy loss.

    Raises DataError if the run found no component, its maps can't be read, or the file can't be
    made there. Raises OutputError if the folder has no result, or the file can't be written.

    Parameters
    ----------
    folder : Path
        Output folder of a run with component maps.
    target : Path
        A new file next to the next study's file.

    Returns
    -------
    tuple of int
        Numbers of the written components, from 1, in their order.
    """
    if target.exists():
        raise DataError(f"{target} exists already; name another file, or remove it.")
    if (folder / HOME_PAGE).exists():
        raise DataError(
            f"{folder} has a hospital's networks at home, which must not leave it; name the "
            "output folder of a run."
        )
    outcome = read_outcome(folder)
    if outcome.maps is None:
        raise DataError(
            f"{folder} has no component maps; name the output of group_ica, ica, pca or "
            "template_networks."
        )
    _check_name(target, outcome)
    write = _dense if outcome.on_mesh else _image
    found = write(outcome, outcome.maps, target)
    if not found:
        raise DataError(f"The run in {folder} found no component; there is nothing to start from.")
    return tuple(k + 1 for k in found)


def _check_name(target: Path, outcome: ComparedRun) -> None:
    dense = target.name.endswith(DENSE)
    end = DENSE if outcome.on_mesh else _ENDS[-1]
    if dense != outcome.on_mesh or not target.name.endswith(_ENDS):
        raise DataError(
            f"{target} is not a name of a file for the maps of '{outcome.name}'; let it end in "
            f"{end}."
        )


def _image(outcome: ComparedRun, source: Path, target: Path) -> list[int]:
    """Write the found maps as NIfTI, and return their numbers, from 0; nothing of none."""
    image, values = read_image(source, "component image")
    maps = values if values.ndim == 4 else values[..., None]
    found = found_components(outcome, maps.shape[3])
    if found:
        chosen = nib.Nifti1Image(np.ascontiguousarray(maps[..., found], np.float32), image.affine)
        chosen.header.set_xyzt_units("mm")
        data = chosen.to_bytes()
        packed = target.name.endswith(".gz")
        write_bytes(target, gzip.compress(data, mtime=0) if packed else data)
    return found


def _dense(outcome: ComparedRun, source: Path, target: Path) -> list[int]:
    """Write the found maps as CIFTI, likewise."""
    image, values = read_dense(source)
    found = found_components(outcome, len(values))
    if found:
        names = nib.cifti2.ScalarAxis([f"component {k + 1}" for k in found])
        chosen = nib.Cifti2Image(values[found], (names, image.header.get_axis(1)))
        chosen.nifti_header.set_intent("ConnDenseScalar")
        write_bytes(target, chosen.to_bytes())
    return found
