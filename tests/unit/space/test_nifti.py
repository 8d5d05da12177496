"""Images are opened as nibabel does; files of a surface are refused by name, not read as voxels."""

from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.atlas import read_image
from consortium.space.grid import mask_grid
from consortium.space.nifti import open_image
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
    with pytest.raises(DataError, match=f"{name} has values on a surface") as refused:
        READERS[reader](tmp_path / name)
    assert len(str(refused.value).split(". ")) == 2


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz", "x.img", "x.NII"])
@pytest.mark.parametrize("kind", [nib.Nifti1Image, nib.Nifti2Image, nib.Nifti1Pair])
@pytest.mark.parametrize("order", "<>")
def test_an_image_is_opened_as_nibabel_opens_it(
    name: str, kind: type[nib.Nifti1Image], order: str, tmp_path: Path
) -> None:
    values = np.arange(24, dtype=order + "i2").reshape(2, 3, 4)
    header = kind.header_class(endianness=order)
    path = tmp_path / name
    nib.save(kind(values, np.diag([2.0, 3.0, 4.0, 1.0]), header), path)
    found, wanted = open_image(path), nib.load(path)
    assert type(found) is type(wanted)
    assert found.header == wanted.header
    np.testing.assert_array_equal(found.get_fdata(), values)
