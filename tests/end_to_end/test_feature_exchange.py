"""Analyses of persons over a real exchange: agents read tables, ledgers pay, the centre solves."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from consortium import open_result
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.verify import Checkup
from consortium.errors import SiteError
from consortium.simulation.dataset import start_derivatives
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from tests.support.finished_run import play
from tests.support.local_consortium import SITES, LocalConsortium, build, conduct, limit

CENTRES = np.array([[0.8, 0.0, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.8]])
PRIVACY = {"epsilon": 30.0, "delta": 1e-5, "colluding_sites": 1}
SCALES = {"s[0-2]": {"low": -2, "high": 2}}
VIEWS = [
    {"name": "scales", "source": "table", "columns": SCALES},
    {"name": "group", "source": "table", "columns": {"group": {"levels": ["control", "patient"]}}},
]
FEATURES = {
    "glm": [
        {**VIEWS[0], "columns": {"s[0-1]": {"low": -2, "high": 2}}},
        {"name": "more", "source": "table", "columns": {"s2": {"low": -2, "high": 2}}},
        VIEWS[1],
    ],
    "tensor": VIEWS[:1],
}
"""Views of analyses that take others."""
EDGES = [SITES[0:2], SITES[1:3], SITES[2:4], (SITES[3], SITES[1])]
ANALYSES = {
    "admm": {
        "target": "group",
        "rounds": 8,
        "broadcasts": 6,
        "threshold": 0.0,
        "edges": [list(pair) for pair in EDGES],
    },
    "cca": {"pairs": 1},
    "coordinate": {"target": "group", "levels": {"scales": 25.0}, "dependence": 0.1},
    "glm": {
        "outcomes": "scales",
        "formula": "group + s2",
        "contrasts": {"patients": "group"},
        "groups": {name: [220, 180] for name in SITES},
        "norms": {"deviation": 1.0},
    },
    "regression": {"target": "group", "bound": 1.0, "model": "logistic", "held_out": 0.4},
    "network": {"target": "group", "hidden": [4], "rounds": 2},
    "summarize": {"target": "north", "frequencies": 10, "points": 3},
    "tensor": {"components": 3, "bound": 1.0},
}


def make_tables(folder: Path, subjects: int) -> None:
    """Persons around three centres; those around the first are mostly patients."""
    generator = np.random.default_rng(3)
    for site in SITES:
        labels = [f"{number:03d}" for number in range(subjects)]
        start_derivatives(folder / site / "bids", "made-up tables", labels)
        kinds = generator.integers(3, size=subjects)
        values = 2 * (CENTRES[:, kinds] + 0.1 * generator.standard_normal((3, subjects)))
        groups = np.where(generator.random(subjects) < np.array([0.9, 0.2, 0.2])[kinds], 1, 0)
        lines = ["participant_id\ts0\ts1\ts2\tgroup"]
        for label, column, group in zip(labels, values.T, groups, strict=True):
            cells = "\t".join(f"{value:.5f}" for value in column)
            lines.append(f"sub-{label}\t{cells}\t{('control', 'patient')[group]}")
        text = "\n".join(lines) + "\n"
        (folder / site / "bids" / "participants.tsv").write_text(text, encoding="utf-8")


def place_of(root: Path, algorithm: str, **privacy: object) -> DemoFolders:
    study = {
        "study": "small",
        "sites": list(SITES),
        "participants": dict.fromkeys(SITES, 400),
        "features": FEATURES.get(algorithm, VIEWS),
        "privacy": {**PRIVACY, **privacy},
        "algorithm": algorithm,
        "analysis": ANALYSES[algorithm],
        "timing": {"join": 4, "answer": 4},
    }
    place = build(root, text=yaml.safe_dump(study), subjects=400, make=make_tables)
    for name in SITES:
        limit(place, name, 50.0)
    return place


@pytest.mark.parametrize("algorithm", sorted(ANALYSES))
def test_agents_run_an_analysis_of_persons(algorithm: str, tmp_path: Path) -> None:
    local = LocalConsortium(place_of(tmp_path / "place", algorithm))
    found = conduct(local.centre())
    if algorithm == "admm":
        coefficients = np.frombuffer(found["coefficients"])
        assert coefficients[0] > max(coefficients[1:]) + 1
        assert len(np.frombuffer(found["iterations"])) == 6 * 4  # three scales and a constant
    if algorithm == "regression":
        coefficients = np.frombuffer(found["coefficients"])
        assert coefficients[0] > 2  # patients are those around the first centre
        assert coefficients[0] > max(coefficients[1:]) + 2
        held_out = np.frombuffer(found["held_out"]).reshape(2, -1)
        assert held_out.sum() == pytest.approx(0.4 * 4 * 400, rel=0.15)
        scores = held_out @ np.frombuffer(found["bin_scores"]) / held_out.sum(axis=1)
        assert scores[1] > scores[0] + 1  # patients have higher predictions
    if algorithm == "glm":  # patients have more of s0 and, s2 being equal, less of s1
        effect, error = np.frombuffer(found["effect"]), np.frombuffer(found["error"])
        assert effect[0] > 10 * error[0]
        assert effect[1] < -5 * error[1]
        assert error.max() < 0.1
    if algorithm == "coordinate":
        assert np.frombuffer(found["coefficients"])[0] > max(
            np.frombuffer(found["coefficients"])[1:]
        )
    if algorithm == "cca":  # persons around the first centre are mostly patients
        assert np.frombuffer(found["correlations"])[0] > 0.5
        pattern = np.frombuffer(found["patterns"]).reshape(4, 1)[:3, 0]
        assert np.abs(pattern).argmax() == 0
    if algorithm == "tensor":
        centres = np.frombuffer(found["centres"]).reshape(3, 3)
        nearest = np.linalg.norm(centres[:, :, None] - CENTRES[:, None], axis=0).min(axis=1)
        assert nearest.max() < 0.25
    numbers = (np.frombuffer(raw) for raw in found.values() if len(raw) % 8 == 0)
    assert all(np.isfinite(array).all() for array in numbers)
    for name in SITES:  # every round was paid for, in the site's own ledger
        ledger = Ledger(local.place.site(name) / LEDGER)
        lines = [entry for entry in ledger.entries() if entry.is_of_round]
        assert {entry.charge.run for entry in lines} == {"small-0001"}


def test_the_auc_of_held_out_participants_is_verified_from_the_output_folder(
    tmp_path: Path,
) -> None:
    run = play(place_of(tmp_path / "place", "regression"))
    verdict = Checkup(run.out, None, None).run()
    assert verdict.code == 0, verdict.lines()
    assert verdict.shown == {1, 2, 3}
    table = open_result(run.out).tables["auc"].set_index("of")
    assert 0.7 < table.loc["AUC", "value low"] < table.loc["AUC", "value"] < 1
    page = (run.out / "report.html").read_text(encoding="utf-8")
    assert "points next to the diagonal" in page
    # A changed AUC is found.
    (path,) = (run.out / "tables").glob("*auc_results.tsv")
    path.write_text(path.read_text(encoding="utf-8").replace("0.", "1."), encoding="utf-8")
    assert Checkup(run.out, None, None).run().code == 1


def test_a_run_beyond_the_budget_is_refused_before_the_tables_are_read(tmp_path: Path) -> None:
    local = LocalConsortium(place_of(tmp_path / "place", "network", epsilon=60.0))
    with pytest.raises(SiteError):
        conduct(local.centre())
    assert "50" in local.said("north")
    ledger = Ledger(local.place.site("north") / LEDGER)
    assert not any(entry.is_of_round for entry in ledger.entries())
