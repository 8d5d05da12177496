"""The official BIDS validator passes on output folders, with nothing hidden that has a name."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console

from consortium.coordinator.simulate import simulate_study
from consortium.report.dataset import NOT_IN_BIDS
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from tests.support.bids_validator import objections
from tests.support.finished_run import finished

SITES = ("north", "east", "south")
PERSONS = 12
STUDIES = {
    "group_ica": {"analysis": {"components": 3}},
    "glm": {
        "analysis": {
            "outcomes": "image",
            "formula": "group",
            "contrasts": {"patients": "group"},
            "groups": {name: [PERSONS // 2, PERSONS // 2] for name in SITES},
            "norms": {"deviation": 1.0},
        },
        "features": [
            {"name": "image", "source": "fmri", "measure": "alff"},
            {
                "name": "group",
                "source": "table",
                "columns": {"group": {"levels": ["control", "patient"]}},
            },
        ],
    },
}


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    recipe = Recipe(SITES, PERSONS, 1, 40, 3, resolution=12.0, levels=SignalLevels(signal=0.04))
    folders = make_consortium(tmp_path_factory.mktemp("hospitals"), recipe).sites
    groups = np.tile(("control", "patient"), PERSONS // 2)
    for folder in folders.values():
        path = folder / "participants.tsv"
        people = [line.split("\t")[0] for line in path.read_text().splitlines()[1:]]
        lines = [f"{person}\t{group}" for person, group in zip(people, groups, strict=True)]
        path.write_text("\n".join(["participant_id\tgroup", *lines]) + "\n")
    return folders


@pytest.fixture(scope="module", params=STUDIES)
def out(
    request: pytest.FixtureRequest,
    hospitals: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    root = tmp_path_factory.mktemp("study")
    content = {
        "study": "small",
        "license": "CC-BY-4.0",
        "authors": ["A. Ox", "B. Yak"],
        "sites": list(SITES),
        "participants": dict.fromkeys(SITES, PERSONS),
        "data": {"resolution": 12.0, "detrend": "quadratic"},
        "privacy": {"epsilon": 8, "delta": 1e-5, "scheme": "none", "colluding_sites": 1},
        "algorithm": request.param,
        **STUDIES[request.param],
    }
    (root / "study.yaml").write_text(yaml.safe_dump(content))
    simulate_study(root / "study.yaml", hospitals, root / "out", 0, Console(quiet=True))
    return root / "out"


def test_the_validator_passes_on_maps_and_tables(out: Path) -> None:
    assert list(out.glob("tpl-*/func/*.nii.gz"))
    assert list(out.glob("tables/*.tsv"))
    assert objections(out) == []


def test_the_validator_passes_on_a_run_with_its_evidence(tmp_path: Path) -> None:
    out = finished().copy(tmp_path).out
    assert objections(out, "TOO_FEW_AUTHORS") == []  # its study names none
    # The mask has a name of the standard's: nothing hides it.
    (mask,) = out.glob("tpl-*/anat/*_mask.nii.gz")
    mask.rename(mask.with_name(mask.name.replace("_desc-", "_colour-")))
    assert any("colour" in each for each in objections(out))


def test_nothing_is_hidden_without_need(tmp_path: Path) -> None:
    out = finished().copy(tmp_path).out
    (out / ".bidsignore").unlink()
    told = "\n".join(objections(out))
    for pattern in NOT_IN_BIDS:
        if list(out.glob(pattern.removeprefix("/"))):
            assert pattern.split("*")[-1 if "tpl" in pattern else 0].strip(".") in told, pattern
