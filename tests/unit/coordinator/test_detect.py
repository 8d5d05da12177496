"""What a table of persons suggests: two levels, columns of numbers, and which are covariates."""

from pathlib import Path

import pytest

from consortium.coordinator.detect import Detected, detect
from consortium.errors import StudyError


def _table(folder: Path, header: str, *lines: str) -> Detected:
    path = folder / "participants.tsv"
    rows = [header, *lines]
    path.write_text("\n".join("\t".join(row.split()) for row in rows) + "\n")
    return detect(path)


def test_the_level_of_controls_comes_first(tmp_path: Path) -> None:
    lines = ("01 patient 1 3", "02 control 0 4", "03 patient 1 5", "04 control 0 n/a")
    found = _table(tmp_path, "participant_id group asd brain", *lines)
    assert found.groups == {"group": ("control", "patient"), "asd": ("0", "1")}
    assert found.numeric["brain"] == pytest.approx((4.0, 0.816), abs=1e-3)
    assert found.of("asd") == {"outcomes": "brain", "levels": "0,1"}
    with pytest.raises(StudyError, match=r"group, asd. Say by --column"):
        found.suggested()


def test_a_level_of_one_person_is_a_slip_and_ages_are_no_outcome(tmp_path: Path) -> None:
    lines = ("01 a F 20 3", "02 a F 30 4", "03 b M 40 5", "04 a M 50 6")
    found = _table(tmp_path, "participant_id note sex age brain", *lines)
    assert list(found.groups) == ["sex"]
    assert found.of("dx") == {"outcomes": "brain"}
    with pytest.raises(StudyError, match="in the table: none"):
        found.suggested()


def test_a_name_that_no_list_can_hold_is_no_column(tmp_path: Path) -> None:
    found = _table(tmp_path, "participant_id a,b x[1-2] y", "01 1 2 3", "02 4 5 6", "03 1 3 2")
    assert list(found.numeric) == ["y"]
