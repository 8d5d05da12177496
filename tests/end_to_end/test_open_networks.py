"""The command that makes an open cohort's file, and a study of networks with it."""

import csv

import pytest
import yaml

from consortium.simulation.bids import Recipe, make_consortium
from tests.support.command_line import enter

SITES = "north", "south"
NETWORKS, VOLUMES, RESOLUTION = 6, 50, 12.0
STUDY = {
    "study": "openly",
    "sites": list(SITES),
    "data": {"task": "rest", "space": "MNI152NLin2009cAsym", "resolution": RESOLUTION},
    "participants": dict.fromkeys(SITES, 30),
    "volumes": VOLUMES,
    "privacy": {"unit": "subject", "epsilon": 6, "delta": 1e-5, "colluding_sites": 1},
    "algorithm": "group_ica",
    "analysis": {"components": NETWORKS, "replays": 10, "open": "cohort.npz"},
}


def recipe(sites, seed, subjects=30):
    return Recipe(sites, subjects, seed, VOLUMES, NETWORKS, RESOLUTION)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("open")
    make_consortium(root / "data", recipe(SITES, 1))
    source = make_consortium(root / "public", recipe(("open",), 2, 32)).sites["open"]
    table = source / "participants.tsv"
    labels = [line for line in table.read_text().splitlines()[1:] if line]
    rows = [f"{label}\tscanner {k % 3}" for k, label in enumerate(labels)]
    table.write_text("\n".join(["participant_id\tsite", *rows]) + "\n")
    (root / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return root, source


def test_the_file_is_made_planned_and_used(place):
    root, source = place
    study = root / "study.yaml"
    missing = enter("consortium", "plan", study)
    assert missing.code != 0
    assert "cohort.npz" in missing.err
    made = enter("consortium", "open-cohort", study, source, "--source", "made for a test")
    assert made.code == 0, made.err
    assert "32 participants of 3 sites" in made.out
    again = enter("consortium", "open-cohort", study, source)
    assert again.code != 0
    assert "exists already" in again.err
    planned = enter("consortium", "plan", study)
    assert planned.code == 0, planned.err
    assert "open participants" in planned.out
    assert "(made for a test)" in " ".join(planned.out.split())
    out = root / "out"
    data = [part for site in SITES for part in ("--data", f"{site}={root}/data/{site}/bids")]
    ran = enter("consortium", "simulate", study, *data, "--out", out, "--seed", "3")
    assert ran.code == 0, ran.err
    (table,) = out.glob("tables/*components_results.tsv")
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    words = {row["network"] for row in rows}
    found = "found in these hospitals"
    assert words <= {found, "open cohort only", "not confirmed", "too uncertain"}
    assert sum(row["state"] == "found" for row in rows) >= 2
    assert all((row["state"] == "found") == (row["network"] == found) for row in rows)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "found in these hospitals" in page
    assert "32 open participants" in page


def test_a_column_that_is_not_there_is_named(place, tmp_path):
    root, source = place
    study = tmp_path / "study.yaml"
    study.write_text((root / "study.yaml").read_text())
    said = enter("consortium", "open-cohort", study, source, "--site-column", "scanner_id")
    assert said.code != 0
    assert "'scanner_id'" in said.err
    assert not (tmp_path / "cohort.npz").exists()


@pytest.mark.parametrize("change", [{"open": None}, {"open": "cohort.tsv"}])
def test_a_study_without_a_file_of_directions_is_refused(place, tmp_path, change):
    _, source = place
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump({**STUDY, "analysis": {"components": NETWORKS, **change}}))
    said = enter("consortium", "open-cohort", study, source)
    assert said.code != 0
    assert "analysis.open" in said.err


def test_a_file_outside_the_folder_of_the_study_is_not_written(place, tmp_path):
    _, source = place
    folder = tmp_path / "folder"
    folder.mkdir()
    study = folder / "study.yaml"
    asked = {**STUDY, "analysis": {**STUDY["analysis"], "open": "../cohort.npz"}}
    study.write_text(yaml.safe_dump(asked))
    said = enter("consortium", "open-cohort", study, source)
    assert said.code != 0
    assert "in the study's folder" in " ".join(said.err.split())
    assert not (tmp_path / "cohort.npz").exists()
