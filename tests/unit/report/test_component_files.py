"""Component maps on disk."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import nibabel as nib
import numpy as np
import pytest
from nibabel.affines import apply_affine

from consortium.errors import OutputError
from consortium.report.outputs import write_component_maps
from tests.support.report_samples import blob, box_grid, finished_maps, sample_study

NUMBERS = {"rounds": 8, "gradient": 0.25, "loss": float("inf"), "note": "done"}
ENTITIES = r"tpl-[A-Za-z0-9]+(_task-[A-Za-z0-9]+)?(_res-[A-Za-z0-9]+)?_desc-[A-Za-z0-9]+"
NAME = re.compile(rf"{ENTITIES}_(components|mask)\.(nii\.gz|json)")
CENTRES = ((0.0, 0.0, 4.0), (-8.0, 8.0, 16.0))


@pytest.fixture
def grid():
    return box_grid()


@pytest.fixture
def run(grid):
    noise = np.random.default_rng(0).standard_normal((grid.features, 2))
    blobs = np.stack([blob(grid, centre, 5.0) for centre in CENTRES], axis=1)
    maps = blobs * [-9.0, 6.0] + 0.1 * noise
    return finished_maps(sample_study(), grid, maps, numbers=NUMBERS)


@pytest.fixture
def components(run):
    return run.components.components


@pytest.fixture
def paths(tmp_path, run):
    return Paths(*write_component_maps(tmp_path, run))


class Paths(NamedTuple):
    components: Path
    mask: Path
    noise: Path | None = None


def sidecar(path):
    return path.with_name(path.name.replace(".nii.gz", ".json"))


def test_maps_come_back_in_their_places(paths, grid, components):
    image = nib.load(paths.components)
    values = np.asarray(image.dataobj)
    assert values.shape == (*grid.shape, 2)
    assert image.get_data_dtype() == np.float32
    assert np.array_equal(values[grid.mask], components.maps.astype(np.float32))
    assert (values[~grid.mask] == 0).all()
    assert np.isfinite(values).all()
    assert np.allclose(image.affine, grid.affine)


def test_the_highest_voxel_is_where_the_network_was_put(paths):
    image = nib.load(paths.components)
    values = np.asarray(image.dataobj)
    for r, centre in enumerate(CENTRES):
        voxel = np.unravel_index(values[..., r].argmax(), values.shape[:3])
        assert np.linalg.norm(apply_affine(image.affine, voxel) - centre) <= 4.0


def test_headers_say_mni_and_millimetres(paths):
    for path in (paths.components, paths.mask):
        header = nib.load(path).header
        assert (int(header["sform_code"]), int(header["qform_code"])) == (4, 4)
        assert header.get_xyzt_units()[0] == "mm"


def test_mask_is_the_grid(paths, grid):
    image = nib.load(paths.mask)
    assert image.get_data_dtype() == np.uint8
    assert np.array_equal(np.asarray(image.dataobj) != 0, grid.mask)


def test_names_are_bids_names(paths, tmp_path):
    for path in (paths.components, sidecar(paths.components), paths.mask, sidecar(paths.mask)):
        assert path.exists()
        assert NAME.fullmatch(path.name), path.name
        kind = "anat" if "_mask" in path.name else "func"
        assert path.parent == tmp_path / "tpl-MNI152NLin2009cAsym" / kind
    assert "_res-4_desc-threehospitalsaverage_" in paths.components.name


def test_sidecar_describes_every_volume(paths, components):
    about = json.loads(sidecar(paths.components).read_text(), parse_constant=pytest.fail)
    for key in ("NoiseFloor", "ExplainedShare", "Peaks", "PeakScores"):
        assert len(about[key]) == len(components)
    assert about["Peaks"] == components.peaks.tolist()
    assert about["ExplainedShare"] == components.shares.tolist()
    assert about["Numbers"] == {"rounds": 8, "gradient": 0.25, "loss": "inf", "note": "done"}
    assert "RepetitionTime" not in about
    assert about["StudyDigest"] == sample_study().digest


def test_a_second_run_replaces_the_first(paths, tmp_path, run):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    paths.components.write_bytes(b"stale")
    write_component_maps(tmp_path, run)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before  # and no temporary file is left


def test_a_folder_that_is_a_file_is_an_output_error(tmp_path, run):
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="can't be written"):
        write_component_maps(tmp_path / "out", run)


def test_the_noise_image_is_in_the_units_of_the_maps(tmp_path, run, grid, components):
    assert len(write_component_maps(tmp_path, run)) == 2
    noise = np.linspace(0.1, 0.2, grid.features)
    known = replace(run, components=replace(run.components, noise=noise))
    paths = Paths(*write_component_maps(tmp_path, known))
    assert paths.noise.name == paths.components.name.replace("_components", "_noise")
    values = np.asarray(nib.load(paths.noise).dataobj)[grid.mask]
    assert values * components.noise == pytest.approx(np.tile(noise[:, None], 2), rel=1e-6)
    told = json.loads(sidecar(paths.noise).read_text())
    assert told["MedianNoise"] == pytest.approx(list(np.median(values, axis=0)))
