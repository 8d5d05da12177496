"""A study with the table of an open cohort, from hospitals' files to a page that is verified."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import glm_open_table
from tests.end_to_end.test_mega_analysis import (
    DEVIATION,
    REGIONAL,
    REGIONS,
    THICKNESS,
    THINNER,
    finished,
    make_stats,
    rows_of,
)
from tests.support.command_line import enter

STUDY = {
    **REGIONAL,
    "analysis": {
        "open": "cohort.tsv",
        **{k: v for k, v in REGIONAL["analysis"].items() if k not in ("norms", "covariates")},
    },
}
PERSONS, SITES = 200, 4
ROOT = Path(__file__).parents[2]


def make_cohort(path):
    """Other participants than the hospitals', at sites of their own, with a smaller effect."""
    generator = np.random.default_rng(31)
    names = ["participant_id", "site", "diagnosis", "age"]
    scanners = 0.5 * generator.standard_normal((SITES, len(REGIONS)))
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow([*names, *(f"{region}_ThickAvg" for region in REGIONS)])
        for number in range(PERSONS):
            patient, age = generator.random() < 0.4, float(generator.normal(45, 12))
            own = generator.standard_normal(len(REGIONS))
            u = scanners[number % SITES] + 0.5 * generator.standard_normal() + 0.87 * own
            u = u - 0.02 * (age - 45) - 0.5 * patient * np.isin(REGIONS, sorted(THINNER))
            row = [f"open-{number}", f"site{number % SITES}", ("control", "patient")[patient]]
            values = (THICKNESS + DEVIATION * u).tolist()
            table.writerow([*row, f"{age:.1f}", *(f"{value:.3f}" for value in values)])


def make(folder, subjects):
    make_stats(folder, subjects)
    make_cohort(folder.parent / "cohort.tsv")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("open") / "place", STUDY, make)


def test_a_study_with_an_open_cohort_becomes_a_page_and_is_verified(place):
    files, out = place
    rows = {row["entry"].removesuffix("_ThickAvg"): row for row in rows_of(out, "contrastpatients")}
    found = {name for name, row in rows.items() if row["found"] == "yes"}
    assert found >= THINNER
    assert len(found - THINNER) <= 1
    for name in THINNER:
        effect, both, opened = (float(rows[name][c]) for c in ("effect", "with_open", "open"))
        assert min(effect, opened) <= both <= max(effect, opened)
        assert float(rows[name]["with_open_error"]) < float(rows[name]["error"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "200 participants of an open cohort at 4 sites" in page
    assert "not only of the hospitals" in page
    said = enter("consortium", "verify", out, "--exchange", files.files.exchange)
    assert said.code == 0, said.out + said.err
    # The table is part of the evidence: with another one the result is not the same.
    (kept,) = out.rglob("cohort.tsv")
    kept.write_text(kept.read_text(encoding="utf-8").replace("site1", "site2"), encoding="utf-8")
    assert enter("consortium", "verify", out, "--exchange", files.files.exchange).code != 0


def test_the_page_and_the_example_show_what_is_planned_and_what_is_written(tmp_path):
    said = enter("consortium", "plan", ROOT / "configs" / "glm-open.yaml")
    assert said.code == 0, said.err
    printed = {tuple(line.split("│")[n].strip() for n in (1, 2)) for line in lines_of(said.out)}
    page = (ROOT / "docs" / "explanation" / "glm-open-cohorts.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (as it is|.*open cohort.*) \| (\S+) \|$", page, re.MULTILINE)
    assert len(shown) == 3
    assert set(shown) <= printed
    glm_open_table.main(tmp_path / "again.tsv")
    made = (tmp_path / "again.tsv").read_text(encoding="utf-8")
    assert made == (ROOT / "configs" / "glm-open.tsv").read_text(encoding="utf-8")


def lines_of(text):
    return [line for line in text.splitlines() if line.count("│") > 4]


def test_a_plan_and_an_assessment_state_what_the_open_cohort_gives(place):
    files, _ = place
    said = enter("consortium", "plan", files.files.study)
    assert said.code == 0, said.err
    assert "only the open cohort" in said.out
    assert "cohort.tsv" in said.out
    folder = files.root / "dpia"
    folder.mkdir()
    assert enter("consortium", "dpia", files.files.study, "--out", folder).code == 0
    text = (folder / "dpia.md").read_text(encoding="utf-8")
    assert "also in a hospital, the table is public as before" in text
