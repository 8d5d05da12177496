"""The study's grid: template, mask files, and values put back in their places."""

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.space.grid import Grid, study_grid, template_grid
from consortium.study.data_section import DataSection

AFFINE = np.diag([4.0, 4.0, 4.0, 1.0])


def tiny_grid() -> Grid:
    mask = np.zeros((3, 4, 5), dtype=bool)
    mask[1, 1:3, 2:] = True
    return Grid(mask, AFFINE)


@pytest.mark.parametrize("resolution", [1, 3, 8])
def test_template_is_nilearns_mask(resolution):
    from nilearn.datasets import load_mni152_brain_mask

    reference = load_mni152_brain_mask(resolution=resolution)
    grid = template_grid(float(resolution))
    np.testing.assert_array_equal(grid.mask, np.asarray(reference.dataobj) > 0)
    np.testing.assert_array_equal(grid.affine, reference.affine)


def test_resolution_may_be_fractional():
    from nilearn.datasets import load_mni152_template
    from nilearn.image import resample_img

    grid = template_grid(10.5)
    reference = resample_img(load_mni152_template(resolution=1), np.eye(3) * 10.5)
    np.testing.assert_array_equal(grid.mask, np.asarray(reference.dataobj) > 0.2)
    np.testing.assert_allclose(np.diag(grid.affine)[:3], 10.5)
    # A brain has a volume near 1.9 litres in this template, whatever the voxels.
    assert grid.features * 10.5**3 / 1e6 == pytest.approx(1.9, abs=0.15)


def test_image_is_the_inverse_of_masking():
    grid = tiny_grid()
    values = np.random.default_rng(0).standard_normal((grid.features, 3)).astype(np.float32)
    image = grid.image(values)
    np.testing.assert_array_equal(image.get_fdata()[grid.mask], values)
    assert not image.get_fdata()[~grid.mask].any()
    assert grid.image(values[:, 0]).shape == grid.shape
    assert image.get_data_dtype() == np.float32
    assert image.header["sform_code"] == image.header["qform_code"] == 4
    assert image.header.get_xyzt_units()[0] == "mm"


@pytest.mark.parametrize("shape", [(5,), (7, 2), (6, 1, 1)])
def test_image_refuses_other_lengths(shape):
    with pytest.raises(DataError, match="6 voxels"):
        tiny_grid().image(np.zeros(shape))


def test_coordinates_follow_c_order():
    grid = tiny_grid()
    np.testing.assert_array_equal(grid.coordinates, 4.0 * np.argwhere(grid.mask))


def test_digest_sees_every_change():
    grid = tiny_grid()
    other = grid.mask.copy()
    other[0, 0, 0] = True
    moved = AFFINE.copy()
    moved[0, 3] = 0.5
    digests = {
        Grid(*case).digest
        for case in [
            (grid.mask, AFFINE),
            (other, AFFINE),
            (grid.mask, moved),
            (grid.mask.reshape(4, 3, 5), AFFINE),
        ]
    }
    assert len(digests) == 4
    assert Grid(grid.mask.copy(), AFFINE + 1e-9).digest == grid.digest


def test_mask_file_brings_its_own_grid(tmp_path):
    grid = tiny_grid()
    nib.save(nib.Nifti1Image(grid.mask.astype(np.uint8), AFFINE), tmp_path / "mask.nii.gz")
    loaded = study_grid(DataSection(mask="mask.nii.gz", resolution=2), tmp_path)
    assert loaded.digest == grid.digest


def test_nan_is_outside(tmp_path):
    values = np.ones((2, 2, 2), dtype=np.float32)
    values[0, 0, 0] = np.nan
    nib.save(nib.Nifti1Image(values, AFFINE), tmp_path / "mask.nii")
    assert study_grid(DataSection(mask="mask.nii"), tmp_path).features == 7


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("empty.nii", np.zeros((2, 2, 2)), "empty"),
        ("flat.nii", np.ones((2, 2)), "3-D"),
        ("series.nii", np.ones((2, 2, 2, 5)), "3-D"),
    ],
)
def test_unfit_masks_are_named(tmp_path, name, values, words):
    nib.save(nib.Nifti1Image(values.astype(np.uint8), AFFINE), tmp_path / name)
    with pytest.raises(DataError, match=f"{name}.*{words}"):
        study_grid(DataSection(mask=name), tmp_path)


def test_singular_and_damaged_masks_are_named(tmp_path):
    nib.save(nib.Nifti1Image(np.ones((2, 2, 2), np.uint8), AFFINE), tmp_path / "singular.nii")
    content = bytearray((tmp_path / "singular.nii").read_bytes())
    content[280:296] = bytes(16)  # first row of the sform
    (tmp_path / "singular.nii").write_bytes(content)
    (tmp_path / "text.nii").write_text("no image")
    for name in ("singular.nii", "text.nii", "missing.nii.gz"):
        with pytest.raises(DataError, match=name):
            study_grid(DataSection(mask=name), tmp_path)


@pytest.mark.parametrize("mask", ["/etc/mask.nii", "../mask.nii", "a/../../mask.nii"])
def test_a_study_can_not_point_elsewhere(tmp_path, mask):
    with pytest.raises(DataError, match="next to the study file"):
        study_grid(DataSection(mask=mask), tmp_path)
