"""Families whose members were seen several times, as four hospitals have them in tables."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.approval.folder import SiteFolder
from tests.support.command_line import enter
from tests.support.finished_run import carry_out
from tests.support.local_consortium import SITES, LocalConsortium, build, limit

FAMILIES = dict(zip(SITES, (150, 110, 90, 80), strict=True))
REGIONS, EFFECT = ("frontal", "temporal", "parietal", "occipital"), 0.8
STUDY: dict[str, Any] = {
    "study": "siblings",
    "title": "Where the cortex of patients among siblings is thinner",
    "sites": list(SITES),
    "participants": FAMILIES,
    "features": [
        {
            "name": "person",
            "source": "table",
            "columns": {
                "diagnosis": {"levels": ["control", "patient"]},
                "age": {"low": 8, "high": 40},
            },
        },
        {
            "name": "cortex",
            "source": "table",
            "file": "thickness.tsv",
            "columns": {region: {"low": 0.0, "high": 5.0} for region in REGIONS},
        },
    ],
    "privacy": {"epsilon": 8.0, "delta": 1e-5, "colluding_sites": 1},
    "algorithm": "glm",
    "analysis": {
        "outcomes": "cortex",
        "formula": "diagnosis + age",
        "contrasts": {"patients": "diagnosis"},
        "shares": 0.4,
        "norms": {"location": 2.5, "deviation": 0.25},
        "covariates": {"age": {"mean": 18, "deviation": 5}},
        "units": {"family": "family_id", "sessions": True, "most_rows": 4, "usual_rows": 3},
    },
    "timing": {"join": 4, "answer": 4},
}


def make_families(folder: Path, subjects: int) -> None:
    """Two siblings a family, some of them patients, seen once or twice."""
    del subjects
    for number, site in enumerate(SITES):
        generator = np.random.default_rng((21, number))
        home = folder / site / "bids"
        home.mkdir(parents=True)
        scanner = 0.5 * generator.standard_normal(len(REGIONS))
        persons = ["participant_id\tsession_id\tfamily_id\tdiagnosis\tage"]
        values = ["\t".join(["participant_id", *REGIONS])]
        for family in range(FAMILIES[site]):
            shared = generator.standard_normal(len(REGIONS))
            for sibling in range(2):
                label, ill = f"{family:03d}{'ab'[sibling]}", generator.random() < 0.4
                age = generator.normal(18, 4)
                own = generator.standard_normal(len(REGIONS))
                for session in range(int(generator.integers(1, 3))):
                    now = float(np.clip(age + 2 * session, 8, 40))
                    u = scanner + 0.6 * shared + 0.6 * own - 0.02 * (now - 18)
                    u = u + 0.5 * generator.standard_normal(len(REGIONS))
                    u[0] -= EFFECT * ill
                    group = "patient" if ill else "control"
                    persons.append(f"sub-{label}\t{session + 1}\tF{family}\t{group}\t{now:.1f}")
                    row = [f"sub-{label}_ses-{session + 1}", *(f"{2.5 + 0.25 * x:.4f}" for x in u)]
                    values.append("\t".join(row))
        (home / "participants.tsv").write_text("\n".join(persons) + "\n")
        (home / "thickness.tsv").write_text("\n".join(values) + "\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    text = yaml.safe_dump(STUDY, sort_keys=False)
    found = build(tmp_path_factory.mktemp("place"), text=text, make=make_families)
    for name in SITES:
        limit(found, name, 20.0)
    return found


def test_a_site_is_told_how_many_participants_are_how_many_families(place: DemoFolders) -> None:
    files = place.files
    words = ("check", files.study, "--roster", files.roster, "-f", place.site("west"))
    said = enter("site-agent", *words)
    assert said.code == 0, said.err
    assert "80 families with all sessions of theirs qualify with all views" in said.out
    assert "NOTE: 160 participants with " in said.out
    assert " rows are 80 families with all sessions of theirs by column " in said.out
    assert "Each of the families with all sessions of theirs is one unit of privacy" in said.out
    told = json.loads(enter("site-agent", *words, "--json").out)
    assert told["persons"] == 80


def test_families_of_four_hospitals_become_a_page_and_each_is_charged_once(
    place: DemoFolders,
) -> None:
    out = carry_out(LocalConsortium(place))
    (path,) = (out / "tables").glob("*contrastpatients_results.tsv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = {row["entry"]: row for row in csv.DictReader(file, delimiter="\t")}
    assert [name for name in REGIONS if rows[name]["found"] == "yes"] == ["frontal"]
    assert float(rows["frontal"]["low"]) <= -EFFECT <= float(rows["frontal"]["high"])
    page = (out / "report.html").read_text(encoding="utf-8")
    told = re.search(r"(\d+) families with all sessions of theirs of up to 4 rows", page)
    assert told
    assert abs(int(told[1]) - sum(FAMILIES.values())) < 40
    assert "The number of units is released with noise, and that of rows is not" in page
    ledger = SiteFolder.open(place.site("west")).ledger
    everybody = [f"{family:03d}{sibling}" for family in range(80) for sibling in "ab"]
    charged = {ledger.outsider_total("subject", [label]) for label in everybody}
    assert len(charged) == 1  # who was seen twice, and their sibling, as who was seen once
    assert charged.pop() > 0
