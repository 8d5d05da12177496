"""A whole study in one process: real files, an atlas, maps of every voxel and their noise."""

import json

import nibabel as nib
import numpy as np
import pytest
import yaml
from rich.console import Console

from consortium.coordinator.simulate import simulate_study
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.networks import network_maps
from consortium.simulation.signals import SignalLevels
from consortium.space.grid import template_grid
from tests.support.cube_atlas import cube_atlas

SITES, RESOLUTION, NETWORKS = ("north", "east", "south"), 8.0, 4
CUBE = 24.0
"""Edge of the atlas's regions in mm."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("consortium")
    levels = SignalLevels(signal=0.04)
    recipe = Recipe(SITES, 4, 1, 60, NETWORKS, resolution=RESOLUTION, levels=levels)
    return make_consortium(root, recipe).sites


def study(tmp_path, scheme, **data):
    nib.save(cube_atlas(template_grid(RESOLUTION), CUBE), tmp_path / "atlas.nii.gz")
    content = {
        "study": "small",
        "sites": list(SITES),
        "participants": dict.fromkeys(SITES, 10),
        "data": {"resolution": RESOLUTION, "atlas": "atlas.nii.gz", "detrend": "quadratic", **data},
        "privacy": {
            "epsilon": 8,
            "delta": 1e-5,
            "scheme": scheme,
            "boost": "exact",
            "colluding_sites": 1,
        },
        "algorithm": "ica",
        "analysis": {"components": NETWORKS, "pca_bound": 1.0, "bound": 5.0, "maps": True},
    }
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def written(out, suffix):
    (path,) = out.glob(f"tpl-*/func/*_{suffix}.nii.gz")
    return np.asarray(nib.load(path).dataobj)


def test_maps_have_every_voxel_and_show_the_networks(folders, tmp_path):
    grid = template_grid(RESOLUTION)
    path = study(tmp_path, "none", confounds=["trans_*", "rot_*"])
    simulate_study(path, folders, tmp_path / "out", 0, Console(quiet=True))
    maps = written(tmp_path / "out", "components")[grid.mask]
    assert maps.shape == (grid.features, NETWORKS)
    _, truth = network_maps(grid.affine, grid.shape, grid.mask, count=NETWORKS)
    table = np.abs(np.corrcoef(truth.T, maps.T)[:NETWORKS, NETWORKS:])
    assert table.max(axis=1).min() > 0.8
    assert not list((tmp_path / "out").rglob("*_noise.nii.gz"))  # there is none


def test_the_noise_image_tells_most_of_what_few_people_show(folders, tmp_path):
    grid = template_grid(RESOLUTION)
    out = tmp_path / "out"
    simulate_study(study(tmp_path, "cape"), folders, out, 0, Console(quiet=True))
    noise = written(out, "noise")[grid.mask]
    # Twelve people at ε = 8: nearly all of a robust z-score is noise of privacy.
    assert 0.9 < np.median(noise) < 1.06
    assert "averaged for the analysis over the regions" in (out / "report.html").read_text()
    told = json.loads((out / "privacy_report.json").read_text())
    assert told["releases"][-1]["statistic"] == "maps"
    assert told["releases"][-1]["entries"] == grid.features * NETWORKS + 3  # and three counts
