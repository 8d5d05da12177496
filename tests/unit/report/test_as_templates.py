"""What a run found, as the templates of a next study."""

import json

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError, OutputError
from consortium.report.as_templates import write_templates
from consortium.report.outputs import write_outputs
from consortium.space.grid import template_grid
from consortium.space.mesh import read_mesh
from consortium.space.templates import read_surface_templates, read_templates
from consortium.views.meshes import MeshFiles
from tests.support.report_samples import blob, finished_maps, sample_study

PLACES = ((0.0, -52.0, 28.0), (-8.0, -88.0, 0.0), (40.0, 20.0, 30.0))
GRID = template_grid(10.0)


@pytest.fixture
def out(tmp_path):
    noise = np.random.default_rng(0).standard_normal((GRID.features, len(PLACES)))
    maps = np.stack([30.0 * blob(GRID, place, 16.0) for place in PLACES], axis=1) + noise
    write_outputs(tmp_path / "out", finished_maps(sample_study(), GRID, maps), pages=False)
    return tmp_path / "out"


def say_found(out, flags):
    (about,) = out.glob("tpl-*/func/*_components.json")
    about.write_text(json.dumps(json.loads(about.read_text()) | {"Found": flags}))
    (maps,) = out.glob("tpl-*/func/*_components.nii.gz")
    return np.asarray(nib.load(maps).dataobj)


def test_the_next_study_reads_those_that_were_found(out, tmp_path):
    maps = say_found(out, [True, False, True])
    assert write_templates(out, tmp_path / "next.nii.gz") == (1, 3)
    told = read_templates(tmp_path / "next.nii.gz", GRID)
    assert told.values == pytest.approx(maps[GRID.mask][:, [0, 2]], rel=1e-5)


@pytest.fixture
def on_mesh(tmp_path):
    mesh = read_mesh(MeshFiles("fsaverage5", None, None), tmp_path)
    maps = np.random.default_rng(0).standard_normal((mesh.features, 3))
    write_outputs(tmp_path / "out", finished_maps(sample_study(), mesh, maps), pages=False)
    return mesh


def test_the_next_study_on_a_mesh_reads_those_that_were_found(on_mesh, tmp_path):
    (about,) = (tmp_path / "out").glob("tpl-*/func/*_components.json")
    about.write_text(json.dumps(json.loads(about.read_text()) | {"Found": [True, False, True]}))
    path = tmp_path / "next.dscalar.nii"
    assert write_templates(tmp_path / "out", path) == (1, 3)
    (maps,) = (tmp_path / "out").glob("tpl-*/func/*_components.dscalar.nii")
    told = read_surface_templates(path, on_mesh)
    np.testing.assert_array_equal(told.values.T, nib.load(maps).get_fdata()[[0, 2]])
    assert list(nib.load(path).header.get_axis(0).name) == ["component 1", "component 3"]


def test_maps_in_voxels_are_no_dense_maps(out, tmp_path):
    with pytest.raises(DataError, match=r"must end in \.nii\.gz"):
        write_templates(out, tmp_path / "next.dscalar.nii")


def test_maps_on_a_mesh_are_no_nifti(on_mesh, tmp_path):
    with pytest.raises(DataError, match=r"must end in \.dscalar\.nii"):
        write_templates(tmp_path / "out", tmp_path / "next.nii.gz")


def test_nothing_found_is_nothing_to_start_from(out, tmp_path):
    say_found(out, [False] * 3)
    with pytest.raises(DataError, match="found no component"):
        write_templates(out, tmp_path / "next.nii.gz")
    assert not (tmp_path / "next.nii.gz").exists()


def test_a_file_that_is_there_is_kept_and_another_kind_refused(out, tmp_path):
    taken = tmp_path / "next.nii.gz"
    taken.write_text("somebody's")
    with pytest.raises(DataError, match="exists already"):
        write_templates(out, taken)
    assert taken.read_text() == "somebody's"
    with pytest.raises(DataError, match=r"end in \.nii\.gz"):
        write_templates(out, tmp_path / "next.txt")


def test_a_folder_without_maps_or_result_is_named(out, tmp_path):
    for path in out.glob("tpl-*/func/*_components.nii.gz"):
        path.unlink()
    with pytest.raises(DataError, match="has no component maps"):
        write_templates(out, tmp_path / "next.nii.gz")
    with pytest.raises(OutputError):
        write_templates(tmp_path / "nowhere", tmp_path / "next.nii.gz")
