"""A whole study by templates in one process: real files in, maps and a page out."""

import csv

import nibabel as nib
import numpy as np
import yaml
from rich.console import Console

from consortium.coordinator.simulate import simulate_study
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.networks import network_maps
from consortium.simulation.signals import SignalLevels
from consortium.space.grid import template_grid
from tests.support.bids_validator import objections

SITES, RESOLUTION, NETWORKS = ("north", "east", "south"), 10.0, 3


def test_a_study_by_templates_writes_maps_tables_and_a_page(tmp_path):
    recipe = Recipe(
        SITES, 3, 1, 40, NETWORKS, resolution=RESOLUTION, levels=SignalLevels(signal=0.04)
    )
    folders = make_consortium(tmp_path / "hospitals", recipe).sites
    grid = template_grid(RESOLUTION)
    _, maps = network_maps(grid.affine, grid.shape, grid.mask, count=NETWORKS)
    nib.save(grid.image(maps), tmp_path / "maps.nii.gz")
    content = {
        "study": "small",
        "sites": list(SITES),
        "participants": dict.fromkeys(SITES, 10),
        "data": {"resolution": RESOLUTION, "maps_resolution": 8.0, "detrend": "quadratic"},
        "privacy": {"epsilon": 8, "delta": 1e-5, "scheme": "none", "colluding_sites": 1},
        "algorithm": "template_networks",
        "analysis": {"templates": "maps.nii.gz"},
    }
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(yaml.safe_dump(content))
    simulate_study(study, folders, out, 0, Console(quiet=True))
    fine = template_grid(8.0)
    (path,) = out.glob("tpl-*/func/*_components.nii.gz")
    found = np.asarray(nib.load(path).dataobj)[fine.mask]
    _, truth = network_maps(fine.affine, fine.shape, fine.mask, count=NETWORKS)
    table = np.corrcoef(truth.T, found.T)[:NETWORKS, NETWORKS:]
    assert np.diag(table).min() > 0.8
    assert len(list(out.glob("tpl-*/func/*stat-z*.nii.gz"))) == 1
    assert len(list(out.glob("tpl-*/func/*stat-stderr*.nii.gz"))) == 1
    tables = [list(csv.reader(p.open(), delimiter="\t")) for p in sorted(out.rglob("*.tsv"))]
    assert any(rows[0][:2] == ["map", "1"] and rows[1][1] == "–" for rows in tables)
    assert "beyond" in (out / "report.html").read_text()
    assert objections(out, "TOO_FEW_AUTHORS") == []
