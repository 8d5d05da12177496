"""Writing BIDS derivatives: preprocessed runs with their confounds, as fMRIPrep leaves them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.errors import OutputError

BIDS_VERSION = "1.10.0"
SLOPE = 0.5
"""Scanner units per stored integer; int16 then holds values up to 16383."""
_LEVEL = 1  # ISA-L's fastest that looks for repetitions


@dataclass(frozen=True)
class MadeUpRun:
    """Where a run belongs."""

    subject: str
    task: str
    space: str
    """BIDS labels without their keys: letters and digits."""
    repetition_time: float
    """Seconds from volume to volume."""


def start_derivatives(
    folder: Path,
    name: str,
    subjects: Sequence[str],
    columns: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Make a BIDS derivatives data set without runs.

    Raises OutputError if the folder already holds something, which might be another data set's
    subjects.

    Parameters
    ----------
    folder : Path
        Made if it is not there; must be empty.
    name : str
        What the data are, for people.
    subjects : sequence of str
        Labels without ``sub-``.
    columns : mapping of str to sequence of str, optional
        Further columns of ``participants.tsv``, in the subjects' order.
    """
    require_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "Name": name,
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "cape-consortium"}],
    }
    write_indented(folder / "dataset_description.json", description)
    table = {"participant_id": [f"sub-{subject}" for subject in subjects], **(columns or {})}
    lines = ["\t".join(row) for row in [tuple(table), *zip(*table.values(), strict=True)]]
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def require_empty(folder: Path) -> None:
    """Refuse a folder that holds anything; raises OutputError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} is not an empty folder; remove it or choose another.")


def write_run(
    folder: Path,
    run: MadeUpRun,
    image: nib.Nifti1Image,
    confounds: Mapping[str, NDArray[Any]] | None = None,
) -> Path:
    """Write one run into a data set.

    Parameters
    ----------
    folder : Path
        The data set.
    image : nibabel.Nifti1Image
        4-D, in the space of ``run``.
    confounds : mapping of str to array of shape (T,), optional
        Columns of the confounds table; NaN is written n/a.

    Returns
    -------
    Path
        The image.
    """
    func = folder / f"sub-{run.subject}" / "func"
    func.mkdir(parents=True, exist_ok=True)
    stem = f"sub-{run.subject}_task-{run.task}"
    bold = func / f"{stem}_space-{run.space}_desc-preproc_bold.nii.gz"
    save_packed(image, bold)
    sidecar = {"TaskName": run.task, "RepetitionTime": run.repetition_time, "SkullStripped": False}
    write_indented(bold.with_name(bold.name.removesuffix(".nii.gz") + ".json"), sidecar)
    if confounds:
        write_table(func / f"{stem}_desc-confounds_timeseries.tsv", confounds)
    return bold


def save_packed(image: nib.Nifti1Image, path: Path) -> None:
    """Write a ``.nii.gz``, by ISA-L where the package isal is installed: five times faster."""
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        nib.save(image, path)
        return
    with path.open("wb") as file, IGzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
        image.to_stream(packed)


def stored_image(
    values: NDArray[np.float32],
    mask: NDArray[np.bool_],
    affine: NDArray[np.float64],
    repetition_time: float,
) -> nib.Nifti1Image:
    """Pack a D x T block as 16-bit integers on its grid, zero outside the mask.

    Integers of `SLOPE` units compress several times better than float32.
    """
    # Volumes lie one after the other in a NIfTI file: that is Fortran order.
    volume = np.zeros((*mask.shape, values.shape[1]), dtype=np.int16, order="F")
    volume[mask] = np.clip(np.rint(values / SLOPE), -32768, 32767).astype(np.int16)
    image = nib.Nifti1Image(volume, affine)
    image.header.set_slope_inter(SLOPE, 0)
    image.header.set_xyzt_units("mm", "sec")
    image.header.set_zooms((*image.header.get_zooms()[:3], repetition_time))
    image.set_sform(affine, code=4)
    image.set_qform(affine, code=4)
    return image


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write a TSV with a header line."""
    rows = zip(*columns.values(), strict=True)
    lines = ("\t".join("n/a" if np.isnan(x) else f"{x:.8g}" for x in row) for row in rows)
    path.write_text("\n".join(["\t".join(columns), *lines]) + "\n", encoding="utf-8")


def write_indented(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON that people can read."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
