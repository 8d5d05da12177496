"""Files of a surface are refused by name wherever an image of voxels is read."""

from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.atlas import read_image
from consortium.space.grid import mask_grid
from site_agent.images.nifti import open_nifti

VALUES = np.arange(10, dtype=np.float32)
CORTEX = nib.cifti2.BrainModelAxis.from_surface(np.arange(10), 10, "CortexLeft")
PARCELS = nib.cifti2.ParcelsAxis.from_brain_models([("all", CORTEX)])


def _gifti(path: Path) -> None:
    nib.save(nib.gifti.GiftiImage(darrays=[nib.gifti.GiftiDataArray(VALUES)]), path)


def _cifti(*axes: object) -> Callable[[Path], None]:
    shape = tuple(len(axis) for axis in axes)  # type: ignore[arg-type]
    return lambda path: nib.save(nib.Cifti2Image(np.ones(shape, np.float32), axes), path)


SERIES = nib.cifti2.SeriesAxis(0.0, 2.0, 4)
ONE = nib.cifti2.ScalarAxis(["thickness"])
SURFACES: dict[str, Callable[[Path], None]] = {
    "thickness.shape.gii": _gifti,
    "bold.func.gii": _gifti,
    "thickness.dscalar.nii": _cifti(ONE, CORTEX),
    "bold.dtseries.nii": _cifti(SERIES, CORTEX),
    "thickness.pscalar.nii": _cifti(ONE, PARCELS),
    "bold.ptseries.nii": _cifti(SERIES, PARCELS),
}
READERS: dict[str, Callable[[Path], object]] = {
    "mask": mask_grid,
    "maps": lambda path: read_image(path, "atlas"),
    "site": open_nifti,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", SURFACES)
def test_a_file_of_a_surface_is_refused_by_name(name: str, reader: str, tmp_path: Path) -> None:
    SURFACES[name](tmp_path / name)
    with pytest.raises(DataError, match=f"{name} holds values on a surface") as refused:
        READERS[reader](tmp_path / name)
    assert len(str(refused.value).split(". ")) == 1
