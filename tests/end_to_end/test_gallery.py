"""The gallery: every example runs, draws, and finds what it says that it finds."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.gallery import SCRIPTS, run, script

LINES = 100


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_needs_only_what_is_public(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, *rest = (ast.get_docstring(tree) or "").splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert "".join(rest)
    assert len(text.splitlines()) <= LINES
    assert text.endswith("plt.show()\n")
    nodes = list(ast.walk(tree))
    modules = [each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)]
    modules += [a.name for each in nodes if isinstance(each, ast.Import) for a in each.names]
    ours = {name for name in modules if name.split(".")[0] in ("consortium", "site_agent", "flows")}
    assert ours <= {"consortium"}
    assert not [each for each in nodes if isinstance(each, ast.Attribute) and each.attr[0] == "_"]


def test_examples_are_numbered_without_a_gap() -> None:
    numbers = range(1, len(SCRIPTS) + 1)
    assert [path.stem[5:7] for path in SCRIPTS] == [f"{number:02d}" for number in numbers]


def test_ten_lines_lead_from_data_to_a_map_with_its_accuracy_and_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script("one_hospital").read_text(encoding="utf-8")
    last = text.rpartition("# %%")[2].splitlines()
    assert len([line for line in last if line and not line.startswith("#")]) == 10
    _, marks = run(script("one_hospital"), tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert re.search(r"map 1 is found; expected correlation 0\.\d\d", said)
    assert "ε = 8 at δ = 1e-05" in said
    assert marks > 0  # of a figure that pyplot knows, as a notebook needs it


@pytest.mark.long
def test_a_result_is_shown_to_anybody_and_a_changed_table_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, _ = run(script("verify"), tmp_path, monkeypatch)
    assert (names["code"], names["changed"]) == (0, 1)
    assert "bins_results.tsv" in str(names["refuted"])


def test_the_mega_analysis_finds_the_thinner_regions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, marks = run(script("mega_analysis"), tmp_path, monkeypatch)
    table = names["table"]
    assert {*table["entry"][names["found"]]} == names["THINNER"]  # type: ignore[index]
    assert marks > 4


def test_the_first_table_has_the_ages_of_both_groups_and_falling_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, marks = run(script("participants"), tmp_path, monkeypatch)
    tables = names["result"].tables  # type: ignore[attr-defined]
    rows = tables["table1"].set_index(["entry", "statistic"]).loc[("age", "mean")]
    for group, age in (("control", 50.0), ("patient", 56.0)):
        heading = f"diagnosis={group}"
        assert rows[f"{heading} low"] < age < rows[f"{heading} high"]
        assert (np.diff(tables["survival"][heading]) <= 0).all()
    assert marks >= 4


def test_the_prediction_has_the_auc_of_the_best_rule_and_is_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, marks = run(script("prediction"), tmp_path, monkeypatch)
    tables = names["result"].tables  # type: ignore[attr-defined]
    auc = tables["auc"].set_index("of").loc["AUC"]
    best = 0.789  # Φ(d/√2) for d² = 1 + (0.07 / 0.13)²
    assert auc["value low"] < best < auc["value high"]
    slope = tables["calibration"].set_index("of").loc["slope"]
    assert slope["value low"] < 1 < slope["value high"]
    assert marks >= 2


def test_the_normative_curve_holds_the_true_slope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, marks = run(script("normative_curve"), tmp_path, monkeypatch)
    assert names["low"] < -18.0 < names["high"] < 0.0  # type: ignore[operator]
    assert marks >= 6


def test_a_year_costs_less_than_its_releases_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, marks = run(script("ledger"), tmp_path, monkeypatch)
    together = np.array(names["together"])
    assert np.all(np.diff(together) > 0)
    assert together[0] == pytest.approx(1.0, abs=1e-3)
    assert together[-1] == pytest.approx(4.02, abs=0.01)  # twelve times ε would be 12
    assert marks == 3


@pytest.mark.long
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_example_runs_and_draws(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, marks = run(path, tmp_path, monkeypatch)
    assert marks > 0


@pytest.mark.long
def test_the_attack_finds_patients_in_exact_sums_and_few_in_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(script("membership"), tmp_path, monkeypatch)
    said = capsys.readouterr().out
    parts = [int(found) for found in re.findall(r": (\d+)% of the patients", said)]
    assert parts[0] > 45
    assert parts[1] < 25


@pytest.mark.long
def test_the_fusion_finds_the_link_and_no_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, _ = run(script("fusion"), tmp_path, monkeypatch)
    pairs = names["pairs"]
    assert [*pairs["found"]] == ["yes", "no"]  # type: ignore[index]
    low, high = pairs["correlation low"][0], pairs["correlation high"][0]  # type: ignore[index]
    noise = (1 + 0.3**2 / 3) * (1 + 0.3**2 / 2)  # of three regions, and of two potentials
    assert low < 0.8 / noise**0.5 < high
