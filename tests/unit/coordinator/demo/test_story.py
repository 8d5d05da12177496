"""Simulated volunteers: by how much illness moves what is measured."""

import nibabel as nib
import numpy as np
import pytest

from consortium.coordinator.demo import story as module
from consortium.coordinator.demo.layout import DemoFolders
from consortium.coordinator.demo.prepare import write_study
from consortium.coordinator.demo.story import SITES, measure_volunteers
from consortium.simulation.bids import Patients, Recipe, Scanner
from consortium.simulation.networks import network_maps
from consortium.space.grid import template_grid

NETWORKS, LOUD = 4, 0


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Measure volunteers of whom the first network is stronger when they are ill."""
    monkeypatch.setattr(module, "_COUNT", 5)
    grid = template_grid(8.0)
    names, maps = network_maps(grid.affine, grid.shape, grid.mask, count=NETWORKS)
    files = DemoFolders(tmp_path).study("patients")
    write_study(files, "demo-patients.yaml", {site: [3, 2] for site in SITES})
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
