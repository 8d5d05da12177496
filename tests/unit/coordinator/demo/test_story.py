"""Simulated volunteers: by how much illness moves what is measured."""

import json

import nibabel as nib
import numpy as np
import pytest

from consortium.coordinator.demo import run
from consortium.coordinator.demo.prepare import DemoFolders, write_study
from consortium.coordinator.demo.run import (
    SITES,
    FoundMaps,
    agreement,
    found_maps,
    measure_volunteers,
    score_lines,
)
from consortium.simulation.bids import Patients, Recipe, Scanner
from consortium.simulation.networks import network_maps
from consortium.space.grid import template_grid

NAMES = ("left", "right")
SHAPE = (4, 4, 4)
NETWORKS, LOUD = 4, 0


@pytest.fixture
def place(tmp_path) -> DemoFolders:
    """A truth of two networks, each a half of a small brain."""
    made = DemoFolders(tmp_path)
    made.truth.mkdir(parents=True)
    networks = np.zeros((*SHAPE, 2), dtype=np.float32)
    networks[:2, ..., 0] = networks[2:, ..., 1] = 1.0
    networks += np.random.default_rng(0).uniform(0, 0.2, networks.shape)
    nib.save(nib.Nifti1Image(networks, np.eye(4)), made.truth / "networks.nii.gz")
    nib.save(nib.Nifti1Image(np.ones(SHAPE, np.float32), np.eye(4)), made.truth / "mask.nii.gz")
    (made.truth / "truth.json").write_text(json.dumps({"networks": dict.fromkeys(NAMES, 1)}))
    return made


def _maps(place, *order, expected=()):
    truth = nib.load(place.truth / "networks.nii.gz").get_fdata(dtype=np.float32)
    return FoundMaps(nib.Nifti1Image(truth[..., list(order)], np.eye(4)), expected)


def test_the_truth_agrees_with_itself_in_any_order_and_sign(place):
    maps = _maps(place, 1, 0)
    turned = FoundMaps(nib.Nifti1Image(-maps.image.get_fdata(), np.eye(4)))
    assert agreement(place, turned).argmax(axis=1).tolist() == [1, 0]
    assert agreement(place, turned).max(axis=1) == pytest.approx(1.0)


def test_what_was_expected_stands_with_the_network_that_a_map_is_of(place):
    lines = score_lines(place, _maps(place, 1, expected=(0.75,)))
    assert [line.split()[0] for line in lines[1:3]] == list(NAMES)
    assert "(0.75)" not in lines[1]
    assert lines[2].endswith("1.00  (0.75)")


def test_no_map_is_said_to_be_none(place):
    empty = FoundMaps(nib.Nifti1Image(np.zeros((*SHAPE, 0), np.float32), np.eye(4)))
    assert score_lines(place, empty) == ["No network was found."]


def test_a_study_that_wrote_no_map_has_found_none(place):
    place.files.out.mkdir(parents=True)
    assert score_lines(place, found_maps(place.files)) == ["No network was found."]


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Measure volunteers of whom the first network is stronger when they are ill."""
    monkeypatch.setattr(run, "_COUNT", 5)
    grid = template_grid(8.0)
    names, maps = network_maps(grid.affine, grid.shape, grid.mask, count=NETWORKS)
    files = DemoFolders(tmp_path).study("patients")
    write_study(
        files,
        "demo-patients.yaml",
        dict.fromkeys(SITES, 5),
        {site: [3, 2] for site in SITES},
    )
    text = files.study.read_text(encoding="utf-8").replace("volumes: 80", "volumes: 30")
    files.study.write_text(text, encoding="utf-8")
    nib.save(grid.image(maps), files.study.parent / "networks.nii.gz")
    recipe = Recipe(("north",), 9, 3, volumes=30, networks=NETWORKS, scanners=(Scanner(2.0, 1.5),))

    def measure(factor, folder):
        ill = Patients(0.5, {names[LOUD]: factor})
        return measure_volunteers(tmp_path / folder, files.study, recipe, ill)

    return measure


def test_a_stronger_network_moves_the_others_too_and_none_moves_nothing(measured):
    stronger, same = measured(1.5, "stronger"), measured(1.0, "same")
    assert np.array_equal(same.well, stronger.well)
    assert not same.moved.any()
    assert stronger.moved[LOUD] > 0.5 * stronger.well[LOUD].std()
    # Strengths are parts of a person's whole variance: what one gains the others lose.
    assert (np.delete(stronger.moved, LOUD) < 0).all()
