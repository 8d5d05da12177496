"""Real NIfTI files, as small as they can be, for the tests of the loaders."""

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.space.grid import Grid

AFFINE = np.array([[4.0, 0, 0, -12], [0, 4, 0, -10], [0, 0, 4, -8], [0, 0, 0, 1]])
SHAPE = (6, 5, 4)
VOLUMES = 24
FUNC = "task-rest_space-MNI152NLin2009cAsym_desc-preproc_bold.nii.gz"


def tiny_grid() -> Grid:
    """Return a study grid with a margin around the mask."""
    mask = np.zeros(SHAPE, dtype=bool)
    mask[1:5, 1:4, 1:3] = True
    mask[1, 1, 1] = False
    return Grid(mask, AFFINE)


def tiny_series(seed: int = 0, volumes: int = VOLUMES, shape=SHAPE) -> np.ndarray:
    """Return baseline, trend and noise, as in a scan."""
    generator = np.random.default_rng(seed)
    time = np.linspace(-1, 1, volumes)
    slopes = generator.normal(0, 20, (*shape, 1))
    noise = generator.normal(0, 10, (*shape, volumes))
    return (1000 + 100 * generator.random((*shape, 1)) + slopes * time + noise).astype(np.float32)


def save(path: Path, data: np.ndarray, affine=AFFINE) -> Path:
    """Write float32 NIfTI with a repetition time of 2 s."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(data, affine)
    if data.ndim == 4:
        image.header.set_zooms((*image.header.get_zooms()[:3], 2.0))
    nib.save(image, path)
    return path


def save_subject(dataset: Path, label: str, data: np.ndarray, affine=AFFINE) -> Path:
    """Write a subject's only run into a BIDS derivatives folder."""
    return save(dataset / f"sub-{label}" / "func" / f"sub-{label}_{FUNC}", data, affine)


def save_confounds(bold: Path, columns: dict[str, np.ndarray], first: str = "") -> Path:
    """Write the table next to an image; ``first`` replaces every value of the first line."""
    stem = bold.name.split("_space-")[0]
    path = bold.with_name(f"{stem}_desc-confounds_timeseries.tsv")
    lines = [[repr(float(x)) for x in row] for row in zip(*columns.values(), strict=True)]
    if first:
        lines[0] = [first] * len(columns)
    path.write_text("\n".join("\t".join(line) for line in [list(columns), *lines]) + "\n")
    return path


def without_orientation(path: Path) -> Path:
    """Set both form codes of an image to 0, as nibabel itself does not write them."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        content = bytearray(file.read())
    content[252:256] = bytes(4)
    with opened(path, "wb") as file:
        file.write(content)
    header = nib.load(path).header
    assert (int(header["sform_code"]), int(header["qform_code"])) == (0, 0)
    return path
