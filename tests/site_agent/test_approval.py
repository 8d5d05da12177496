"""Approvals: exactly this study, exactly this roster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from village import SITES, STUDY

from consortium.errors import ConfigurationError, StudyError
from consortium.roster import save_roster
from site_agent.approval import approvals, approve


def _files(folder: Path, scheme: str = "cape") -> tuple[Path, Path]:
    study, roster = folder / "study.yaml", folder / "roster.yaml"
    study.write_text(STUDY.replace("SCHEME", scheme).replace("DROPOUTS", "0"))
    keys = {name: bytes([place] * 32) for place, name in enumerate(("centre", *SITES), start=1)}
    save_roster(roster, keys)
    return study, roster


def test_what_was_approved_is_read_again(tmp_path: Path) -> None:
    assert approvals(tmp_path) == []
    first = approve(tmp_path, *_files(tmp_path))
    assert approve(tmp_path, *_files(tmp_path)) == first
    assert approvals(tmp_path) == [first]


def test_another_roster_is_another_approval(tmp_path: Path) -> None:
    study, roster = _files(tmp_path)
    first = approve(tmp_path, study, roster)
    save_roster(roster, {**first.keys, "west": bytes([9] * 32)})
    approve(tmp_path, study, roster)
    assert len(approvals(tmp_path)) == 2


def test_a_study_that_protects_nobody_is_not_approved(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="'none' protects nobody"):
        approve(tmp_path, *_files(tmp_path, "none"))
    assert approvals(tmp_path) == []


def test_a_site_without_key_is_named(tmp_path: Path) -> None:
    study, roster = _files(tmp_path)
    save_roster(roster, {"centre": bytes(32)})
    with pytest.raises(StudyError, match="no key for north, east, south, west"):
        approve(tmp_path, study, roster)


@pytest.mark.parametrize("damage", ["", "{", "[]", "keys", "study", "folder", "unknown", "binary"])
def test_a_damaged_record_is_named(damage: str, tmp_path: Path) -> None:
    approve(tmp_path, *_files(tmp_path))
    (path,) = (tmp_path / "approved").glob("*.json")
    record = json.loads(path.read_text())
    if damage in record:
        record[damage] = 7
        path.write_text(json.dumps(record))
    elif damage == "unknown":
        record["study"]["backdoor"] = True
        path.write_text(json.dumps(record))
    else:
        path.write_bytes(b"\xff\xfe" if damage == "binary" else damage.encode())
    with pytest.raises(ConfigurationError, match=path.name):
        approvals(tmp_path)


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    files = _files(tmp_path)
    (tmp_path / "approved").write_text("in the way")
    with pytest.raises(ConfigurationError, match="can't be written"):
        approve(tmp_path, *files)
