"""Templates on a mesh are nibabel's values, and what is none of them is named in a sentence."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from benchmarks.loading_surface import made_up_mesh
from consortium.errors import DataError
from consortium.report.image_sets import write_surface
from consortium.space.templates import read_surface_templates

MESH, NAME = made_up_mesh(), "tpl-fsLR_den-32k_desc-x"
VALUES = np.random.default_rng(0).standard_normal((MESH.features, 2)).astype(np.float32)


def written(folder: Path, values: np.ndarray = VALUES, *, kept: bool = False) -> list[Path]:
    labels = [f"map {k}" for k in range(values.shape[1])]
    return write_surface(folder, NAME, "components", MESH, values, labels, {}, kept=kept)[:2]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for path in written(tmp_path):
        np.testing.assert_array_equal(read_surface_templates(path, MESH).values, VALUES)


def test_what_is_exact_stays_at_home(tmp_path: Path) -> None:
    for path in written(tmp_path, kept=True):
        with pytest.raises(DataError, match=r"must not leave it. Take maps that a study released"):
            read_surface_templates(path, MESH)
        assert read_surface_templates(path, MESH, at_home=True).count == 2


def test_what_is_no_template_of_the_mesh_is_named(tmp_path: Path) -> None:
    dense, left = written(tmp_path)
    right = left.with_name(left.name.replace("hemi-L", "hemi-R"))
    with pytest.raises(DataError, match=r"are of one hemisphere. Name that of hemi-L"):
        read_surface_templates(right, MESH)
    right.unlink()
    with pytest.raises(DataError, match=r"can't be read. Give a whole GIFTI file"):
        read_surface_templates(left, MESH)
    (tmp_path / "x.nii.gz").write_bytes(b"")
    for path in (tmp_path / "x.nii.gz", tmp_path / "gone.dscalar.nii"):
        with pytest.raises(DataError, match="is not a complete file of maps on fsLR-32k"):
            read_surface_templates(path, MESH)
    dense.write_bytes(dense.read_bytes()[:-100])
    with pytest.raises(DataError, match="is not a complete file of maps on fsLR-32k"):
        read_surface_templates(dense, MESH)


def test_maps_that_are_flat_or_lack_numbers_are_named(tmp_path: Path) -> None:
    dense, _ = written(tmp_path, np.ones_like(VALUES))
    with pytest.raises(DataError, match=r"Map 1 of the templates .* is the same everywhere"):
        read_surface_templates(dense, MESH)
    gap = VALUES.copy()
    gap[7, 1] = np.nan
    with pytest.raises(DataError, match="must be finite everywhere on the study's cortex"):
        read_surface_templates(written(tmp_path, gap)[0], MESH)


def test_files_of_voxels_are_no_maps(tmp_path: Path) -> None:
    path = tmp_path / "x.dscalar.nii"
    nib.save(nib.Nifti1Image(np.zeros((2, 2, 2)), np.eye(4)), path)
    with pytest.raises(DataError, match="is not a complete file of maps on fsLR-32k"):
        read_surface_templates(path, MESH)
