"""A made-up consortium on disk: BIDS names, determinism, truth apart, truth recovered."""

import csv
import hashlib
import json
import re

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import OutputError
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.dataset import SLOPE, stored_image
from consortium.simulation.networks import network_maps
from consortium.simulation.signals import BASELINE, SignalLevels, anatomy, scan
from consortium.space.grid import template_grid

RECIPE = Recipe(("north", "south"), (2, 1), seed=5, volumes=(30, 34), networks=10, resolution=16.0)
NAME = re.compile(
    r"sub-\d{3}_task-rest_(space-MNI152NLin2009cAsym_desc-preproc_bold\.(nii\.gz|json)"
    r"|desc-confounds_timeseries\.tsv)"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_consortium(tmp_path_factory.mktemp("made"), RECIPE)


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.suffix != ".npz"  # a zip archive holds the time of day
    }


def test_names_and_required_files_are_bids(made):
    for bids in made.sites.values():
        description = json.loads((bids / "dataset_description.json").read_text())
        assert description.keys() >= {"Name", "BIDSVersion", "DatasetType", "GeneratedBy"}
        listed = (bids / "participants.tsv").read_text().split()
        assert listed == ["participant_id", *sorted(path.name for path in bids.glob("sub-*"))]
        for subject in bids.glob("sub-*"):
            names = [path.name for path in (subject / "func").iterdir()]
            assert len(names) == 3
            assert all(NAME.fullmatch(name) and name.startswith(subject.name) for name in names)
    assert [len(list(bids.glob("sub-*"))) for bids in made.sites.values()] == [2, 1]


def test_images_carry_place_time_and_integers(made):
    grid = template_grid(16.0)
    for path in made.sites["north"].rglob("*_bold.nii.gz"):
        image = nib.load(path)
        sidecar = json.loads(path.with_name(path.name.replace(".nii.gz", ".json")).read_text())
        assert image.header.get_zooms()[3] == sidecar["RepetitionTime"] == 2.0
        assert image.get_data_dtype() == np.int16
        assert 30 <= image.shape[3] <= 34
        np.testing.assert_allclose(image.affine, grid.affine)
        data = image.get_fdata()
        assert not data[~grid.mask].any()
        assert data[grid.mask].mean() == pytest.approx(0.85 * BASELINE, rel=0.2)


def test_confounds_fit_the_images(made):
    for path in made.sites["south"].rglob("*_timeseries.tsv"):
        with path.open() as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        volumes = nib.load(next(path.parent.glob("*_bold.nii.gz"))).shape[3]
        assert len(rows) == volumes
        expected = {"trans_x", "rot_z", "csf", "framewise_displacement", "trans_x_derivative1"}
        assert expected <= rows[0].keys()
        assert rows[0]["trans_x_derivative1"] == "n/a"
        assert all("n/a" not in row.values() for row in rows[1:])


def test_truth_is_apart_from_every_site(made):
    for bids in made.sites.values():
        assert not made.truth.is_relative_to(bids.parent)
        held = " ".join(str(path) for path in bids.parent.rglob("*"))
        assert "truth" not in held.split("made", 1)[-1]
        assert "networks" not in held
    truth = json.loads((made.truth / "truth.json").read_text())
    assert len(truth["networks"]) == 10
    assert nib.load(made.truth / "networks.nii.gz").shape[3] == 10


def test_seed_decides_whatever_the_number_of_workers(made, tmp_path):
    make_consortium(tmp_path / "again", RECIPE, workers=1)
    assert contents(tmp_path / "again") == contents(made.truth.parent)
    other = Recipe(("north",), 1, seed=6, volumes=30, networks=10, resolution=16.0)
    make_consortium(tmp_path / "other", other)
    image = "north/bids/sub-001/func/sub-001_task-rest_space-MNI152NLin2009cAsym_desc-preproc_bold"
    names = [tmp_path / run / f"{image}.nii.gz" for run in ("again", "other")]
    assert names[0].read_bytes() != names[1].read_bytes()


def test_courses_on_disk_are_those_in_the_images(made):
    grid = template_grid(16.0)
    _, maps = network_maps(grid.affine, grid.shape, grid.mask, count=10)
    courses = np.load(made.truth / "courses.npz")["south_sub-001"]
    path = next(made.sites["south"].rglob("*_bold.nii.gz"))
    table = np.genfromtxt(next(path.parent.glob("*.tsv")), names=True, missing_values="n/a")
    names = [f"{kind}_{axis}" for kind in ("trans", "rot") for axis in "xyz"]
    time = np.linspace(-1, 1, len(table))
    nuisance = np.column_stack([time**0, time, time**2, table["csf"], *(table[n] for n in names)])

    def cleaned(rows):
        return rows - (nuisance @ np.linalg.lstsq(nuisance, rows.T, rcond=None)[0]).T

    data = cleaned(nib.load(path).get_fdata()[grid.mask])
    found = np.linalg.lstsq(maps, data, rcond=None)[0]
    pairs = zip(found, cleaned(courses), strict=True)
    matches = [np.corrcoef(a, b)[0, 1] for a, b in pairs]
    assert min(matches) > 0.3
    assert np.median(matches) > 0.85


def test_every_person_is_another_at_every_site(made):
    with np.load(made.truth / "courses.npz") as courses:
        assert sorted(courses) == ["north_sub-001", "north_sub-002", "south_sub-001"]
        starts = {courses[name][:, :20].tobytes() for name in courses}
    assert len(starts) == 3


def test_other_files_are_not_mixed_in(made):
    with pytest.raises(OutputError, match="empty"):
        make_consortium(made.truth.parent, RECIPE)


def test_one_size_per_site_is_needed(tmp_path):
    with pytest.raises(ValueError, match="shorter"):
        make_consortium(tmp_path, Recipe(("a", "b"), (3,), seed=0, resolution=16.0))


@pytest.fixture(scope="module")
def head():
    grid = template_grid(12.0)
    return anatomy(grid, network_maps(grid.affine, grid.shape, grid.mask, count=4)[1])


def test_noise_has_its_level_and_is_shared_by_neighbours(head):
    only = SignalLevels(signal=0, drift=0, motion=0, noise=0.01)
    drawn = scan(np.random.default_rng(0), head, 400, only)
    noise = drawn.volumes - head.baseline[:, None]
    assert noise.std() == pytest.approx(10.0, rel=0.02)
    image = head.grid.image(noise).get_fdata()
    middle = tuple(np.array(head.grid.shape) // 2)
    beside = (middle[0] + 1, *middle[1:])
    assert np.corrcoef(image[middle], image[beside])[0, 1] > 0.3


def test_motion_explains_itself_through_its_confounds(head):
    only = SignalLevels(signal=0, drift=0, noise=0, motion=1.0)
    drawn = scan(np.random.default_rng(1), head, 60, only)
    change = drawn.volumes - head.baseline[:, None]
    assert np.abs(change).max() > 1.0
    motion = np.stack([drawn.confounds[f"{a}_{b}"] for a in ("trans", "rot") for b in "xyz"])
    left = change - np.linalg.lstsq(motion.T, change.T, rcond=None)[0].T @ motion
    assert np.abs(left).max() < 1e-3 * np.abs(change).max()
    shown = np.abs(change).max(axis=1)
    # The edge of the brain moves more than its inside.
    inside = np.linalg.norm(head.grid.coordinates - (0, -20, 15), axis=1) < 25
    assert np.median(shown[~inside]) > 2 * np.median(shown[inside])


def test_small_translation_matches_a_moved_image(head):
    from scipy import ndimage

    volume = head.grid.image(head.baseline).get_fdata()
    shift = 0.1  # mm along x, 12 mm voxels; linear between voxels as the model is
    moved = ndimage.shift(volume, (shift / 12.0, 0, 0), order=1)
    back = ndimage.shift(volume, (-shift / 12.0, 0, 0), order=1)
    expected = ((moved - back) / 2)[head.grid.mask]
    np.testing.assert_allclose(shift * head.edges[:, 0], expected, atol=1e-3)


def test_stored_integers_are_off_by_half_a_step():
    values = np.random.default_rng(0).uniform(-3000, 3000, (8, 5)).astype(np.float32)
    image = stored_image(values, np.ones((2, 2, 2), bool), np.eye(4), 1.5)
    again = nib.Nifti1Image.from_bytes(image.to_bytes())
    stored = again.get_fdata().reshape(8, 5)
    assert np.abs(stored - values).max() <= SLOPE / 2 + 1e-3
    assert again.header.get_zooms()[3] == 1.5
