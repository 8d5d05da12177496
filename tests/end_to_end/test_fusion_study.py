"""Images and EEG of the same persons, from files of four hospitals to linked maps and courses."""

import csv
import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import yaml
from rich.console import Console

from consortium.coordinator.outputs import Publisher
from consortium.coordinator.simulate import simulate_study
from consortium.opened_study import OpenedStudy
from consortium.simulation.array_data import ArrayData
from consortium.simulation.networks import network_maps
from consortium.simulation.simulation import Simulation
from consortium.space.grid import template_grid
from consortium.space.study_space import Space, ViewSpace
from consortium.study.reader import read_study
from consortium.study.spec import Study
from tests.support.bids_validator import objections
from tests.support.fusion import fusion_arrays
from tests.support.fusion_bids import make_fusion_consortium
from tests.support.fusion_person import FusionRecipe

SITES = ("north", "east", "south")
RESOLUTION = 24.0


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A study without noise, of few persons, so that reading files is what is tested."""
    pytest.importorskip("mne")
    root = tmp_path_factory.mktemp("fusion")
    recipe = FusionRecipe(
        SITES, 8, 1, correlations=(0.99, 0.0), volumes=0, trials=8, rate=100, modulation=0.4,
        noise=2.0, one_sided=8, resolution=16.0,
    )  # fmt: skip
    made = make_fusion_consortium(root, recipe)
    content = yaml.safe_load(open_example())
    content["sites"] = list(SITES)
    content["privacy"] |= {"scheme": "none"}
    content["analysis"] |= {"pairs": 1, "reduce": {"image": 2, "potential": 2}}
    (root / "study.yaml").write_text(yaml.safe_dump(content))
    simulate_study(root / "study.yaml", made.sites, root / "out", 0, Console(quiet=True))
    return root


def open_example():
    return (Path(__file__).parents[2] / "configs" / "fusion.yaml").read_text(encoding="utf-8")


def test_the_linked_network_and_potential_are_found_from_files(written):
    grid = template_grid(RESOLUTION)
    (path,) = written.glob("out/tpl-*/func/*_loadings.nii.gz")
    found = np.asarray(nib.load(path).dataobj)[grid.mask][:, 0]
    truth = network_maps(grid.affine, grid.shape, grid.mask, count=2)[1]
    assert abs(np.corrcoef(found, truth[:, 0])[0, 1]) > 0.8  # of 18 participants
    (path,) = written.glob("out/eeg/*_loadings.tsv")
    with path.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t"))
    peak = max(rows, key=lambda row: abs(float(row["pair-1"])))
    assert float(peak["time"]) == pytest.approx(0.13, abs=0.04)  # P1 and its rebound
    assert peak["channel"] in ("O1", "O2", "Pz")  # its source is at the back of the head


def test_who_lacks_a_view_is_left_out_and_the_page_tells_the_rest(written):
    report = json.loads((written / "out" / "privacy_report.json").read_text())
    assert [site["units"] for site in report["sites"]] == [6, 6, 6]
    page = (written / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="pair-1"' in page
    assert "18 participants" in page


def test_private_maps_and_courses_keep_their_promise_and_are_found(tmp_path):
    """Four sites of 200 persons through the engine, at the loss that the plan predicted."""
    made = fusion_arrays(
        np.random.default_rng(3), subjects=800, correlations=(0.95, 0.7, 0.2), side=10, channels=8,
        times=10,
    )  # fmt: skip
    sizes = [len(view) for view in made.views]
    study = table_study(sizes, bounds={"first": 4.0, "second": 4.0})
    views = list(zip(("first", "second"), sizes, strict=True))
    columns = np.vstack(made.views).T[:, :, None]
    sites = [ArrayData(list(columns[s::4]), views=views) for s in range(4)]
    simulation = Simulation(study, sites, seed=1)
    result = simulation.run()
    patterns = np.split(result.arrays["patterns"], [sizes[0]])
    for pattern, sources in zip(
        patterns, (made.image_sources, made.potential_sources), strict=True
    ):
        for k in range(2):
            assert abs(np.corrcoef(pattern[:, k], sources[:, k])[0, 1]) > 0.9
    assert result.arrays["correlations"] == pytest.approx([0.95, 0.7, 0.2], abs=0.08)
    space = Space(template_grid(30.0), views=tuple(map(ViewSpace, study.features, sizes)))
    report = Publisher(tmp_path, OpenedStudy(study, space)).publish(
        simulation.plan, simulation.session.rounds, result
    )
    assert report.guarantees.coalition.epsilon == pytest.approx(simulation.plan.epsilon, rel=1e-6)
    assert report.guarantees.coalition.epsilon <= 8.0 * (1 + 1e-9)


def table_study(sizes, bounds):
    limits = {"low": -1.0, "high": 1.0}
    views = [
        {"name": name, "source": "table", "columns": {f"{name}[1-{size}]": limits}}
        for name, size in zip(("first", "second"), sizes, strict=True)
    ]
    return Study.model_validate(
        {
            "study": "small",
            "sites": ["north", "east", "south", "west"],
            "participants": dict.fromkeys(["north", "east", "south", "west"], 10),
            "features": views,
            "privacy": {"epsilon": 8.0, "delta": 1e-5, "colluding_sites": 1},
            "algorithm": "cca",
            "analysis": {"pairs": 3, "bounds": bounds},
        }
    )


def test_the_example_study_is_one(tmp_path):
    (tmp_path / "fusion.yaml").write_text(open_example(), encoding="utf-8")
    study = read_study(tmp_path / "fusion.yaml")
    assert study.algorithm == "cca"
    assert [view.name for view in study.features] == ["image", "potential"]


def test_the_bids_validator_passes_on_loadings_of_images_and_eeg(written):
    assert objections(written / "out", "TOO_FEW_AUTHORS") == []
