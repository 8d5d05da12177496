"""Series of simulated participants on a few voxels, in memory; half of them are correlated."""

import nibabel as nib
import numpy as np

AFFINE = np.diag([20.0, 20.0, 20.0, 1.0])
SHAPE = (3, 3, 3)
MASK = nib.Nifti1Image(np.ones(SHAPE, dtype=np.float32), AFFINE)


def scan(seed: int, volumes: int = 24) -> nib.Nifti1Image:
    """Return one participant's series."""
    rng = np.random.default_rng(seed)
    values = rng.normal(100.0, 1.0, (*SHAPE, volumes))
    values[0] += 3.0 * rng.normal(size=volumes)
    image = nib.Nifti1Image(values.astype(np.float32), AFFINE)
    image.header.set_xyzt_units("mm", "sec")
    return image


def scans(persons: int, start: int = 0) -> list[nib.Nifti1Image]:
    """Return series of several participants, each with a seed of their own."""
    return [scan(start + number) for number in range(persons)]
