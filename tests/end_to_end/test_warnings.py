"""What a hospital must be warned of before its yes, in spite of which it must say so expressly."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.keys import load_identity
from site_agent.approval.approval import approvals
from tests.support.command_line import Said, enter
from tests.support.local_consortium import SITES
from tests.support.membership_files import papers

STUDY = f"""
study: thickness
title: Patients' cortex
sites: [{", ".join(SITES)}]
features:
  - name: cortex
    source: table
    columns: {{insula: {{low: 1, high: 5}}, cuneus: {{low: 1, high: 5}}}}
  - name: person
    source: table
    columns: {{diagnosis: {{levels: [control, patient]}}}}
privacy: {{unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}}
participants: {{{", ".join(f"{name}: 400" for name in SITES)}}}
algorithm: glm
analysis:
  outcomes: cortex
  formula: diagnosis
  contrasts: {{patients: diagnosis}}
  groups: {{{", ".join(f"{name}: [200, 200]" for name in SITES)}}}
  norms: {{location: 2.5, deviation: 0.3}}
"""
Rows = Sequence[list[str]]


def _rows(patients: int = 200) -> list[list[str]]:
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(2.5, 0.3, (400, 2)), 3).astype(str)
    groups = ["patient"] * patients + ["control"] * (400 - patients)
    ages = rng.integers(20, 60, 400).astype(str)
    return [
        [f"sub-{n:03}", group, *pair, age]
        for n, (group, pair, age) in enumerate(zip(groups, values.tolist(), ages, strict=True))
    ]


def _say(place: DemoFolders, rows: Rows, command: str, *words: str) -> Said:
    lines = [["participant_id", "diagnosis", "insula", "cuneus", "age"], *rows]
    table = place.dataset("east") / "participants.tsv"
    table.write_text("\n".join("\t".join(line) for line in lines) + "\n")
    files = (place.files.study, "--roster", place.files.roster, "-f", place.site("east"))
    return enter("site-agent", command, *files, *words)


def _approved(place: DemoFolders) -> bool:
    return bool(approvals(place.site("east"), load_identity(place.site("east"))))


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    return papers(tmp_path, STUDY)[0]


def test_a_study_that_fits_has_no_warning(place: DemoFolders) -> None:
    said = _say(place, _rows(), "approve", "--yes")
    assert (said.code, said.err) == (0, "")
    assert "WARNING" not in said.out
    assert "lack" not in said.out
    assert _approved(place)


def _levels_of_its_own() -> Rows:
    return [[r[0], r[1].title() if n % 2 else r[1], *r[2:]] for n, r in enumerate(_rows())]


def _few_of_them() -> Rows:
    return _rows()[100:250]


OFF = {
    "few": (_few_of_them, "150 participants here, and the study states a nominal number of 400"),
    "levels": (_levels_of_its_own, "{levels: {patient: [Patient], control: [Control]}}"),
}


@pytest.mark.parametrize("case", OFF)
def test_data_that_are_off_need_a_yes_of_their_own(place: DemoFolders, case: str) -> None:
    rows, words = OFF[case]
    said = _say(place, rows(), "approve", "--yes")
    assert said.code == 1
    assert any(line.startswith("WARNING: ") for line in said.out.splitlines())
    assert words in said.out
    assert "in spite of" in said.err
    assert not _approved(place)
    assert "once you have resolved the WARNING above" in _say(place, rows(), "check").out
    assert _say(place, rows(), "approve", "--yes", "--despite-warnings").code == 0
    assert _approved(place)


def _all_of_its_own() -> Rows:
    return [[row[0], row[1].title(), *row[2:]] for row in _rows()]


def test_a_refusal_names_the_sites_own_file_before_the_study(place: DemoFolders) -> None:
    said = _say(place, _all_of_its_own(), "approve", "--yes")
    assert said.code == 1
    first = said.err.split("If this is not the cause: ")[0]
    assert "into site.yaml" in first
    assert "Ask the study's coordinator" not in first
