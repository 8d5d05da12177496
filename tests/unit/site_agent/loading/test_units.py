"""Families and sessions at a site: which rows are whose, and what is told of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import yaml

from consortium.errors import DataError
from consortium.opened_study import OpenedStudy
from consortium.space.study_space import study_space
from consortium.study.reader import parse_study
from consortium.views.meshes import MESHES
from site_agent.data.cap import NO_CAP, Cap
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import open_dataset
from site_agent.loading.units import group_rows, rows_by_person
from tests.support.surfaces import write_values
from tests.support.tiny_images import FUNC, tiny_grid, tiny_series
from tests.support.tiny_views import image, view_space

WHO = {
    "name": "who",
    "source": "table",
    "columns": {"age": {"low": 0, "high": 100}, "ill": {"levels": ["no", "yes"]}},
}
BRAIN = {
    "name": "brain",
    "source": "table",
    "file": "brain.tsv",
    "columns": {"area": {"low": 0, "high": 10}},
}
FMRI = {"name": "brain", "source": "fmri"}
CORTEX = {"name": "brain", "source": "surface", "mesh": "fsaverage5", "values": "thickness"}


def opened(
    folder: Path,
    units: dict[str, Any] | None,
    *views: dict[str, Any],
    missing: Sequence[float] = (),
    cap: Cap = NO_CAP,
    persons: dict[str, Any] | None = None,
) -> FeatureDataset:
    values: dict[str, Any] = {
        "study": "related",
        "sites": ["north", "east", "south", "west"],
        "participants": dict.fromkeys(["north", "east", "south", "west"], 10),
        "data": {
            "standardize": "none",
            "scale": 0.001,
            "missing": list(missing),
            "persons": persons or {},
        },
        "features": list(views or (WHO, BRAIN)),
        "privacy": {"epsilon": 8, "delta": 1e-5, "colluding_sites": 1},
        "algorithm": "glm",
        "analysis": {
            "outcomes": "brain",
            "formula": "age",
            "contrasts": {"age": "age"},
            **({} if units is None else {"units": units}),
        },
    }
    study = parse_study(yaml.safe_dump(values))
    space = view_space(study) if views[-1:] != (CORTEX,) else study_space(study, folder)
    found = open_dataset(folder, OpenedStudy(study, space), folder.parent / "cache", cap=cap)
    assert isinstance(found, FeatureDataset)
    return found


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(line.replace(" ", "\t") for line in lines) + "\n")


@pytest.fixture
def families(tmp_path: Path) -> Path:
    folder = tmp_path / "bids"
    write(
        folder / "participants.tsv",
        "participant_id family_id age ill",
        "sub-05 F1 10 no",
        "sub-01 F1 20 yes",
        "sub-02 F2 30 no",
        "sub-03 n/a 40 yes",
        "sub-04 n/a 50 no",
        "sub-06 F2 n/a no",
    )
    write(
        folder / "brain.tsv",
        "participant_id area",
        *(f"sub-0{number} {number}" for number in range(1, 7)),
    )
    return folder


def rows_in(data: FeatureDataset, most: int) -> np.ndarray:
    """K x D x U."""
    table = data.table()
    return table.reshape(most, data.features, table.shape[1])


def test_families_are_one_column_each_with_a_row_for_every_person(families: Path) -> None:
    data = opened(families, {"family": "family_id", "most_rows": 3})
    assert data.units == 4
    assert data.lengths == (1, 1, 1, 1)
    assert data.people == ("01", "02", "03", "04", "05")  # all of whom are charged
    rows = rows_in(data, 3)
    np.testing.assert_allclose(rows[:, 0, 0], [-0.6, -0.8, np.nan])
    np.testing.assert_allclose(rows[:, 2, 0], [-0.8, 0.0, np.nan])
    np.testing.assert_allclose(rows[:2, 0, 1], [-0.4, np.nan])  # 06 has no age
    assert np.isnan(rows[1:, :, 2:]).all()  # who has no family is one alone


def test_the_cap_counts_families_and_all_relatives_are_charged(families: Path) -> None:
    whole = opened(families, {"family": "family_id"})
    capped = opened(families, {"family": "family_id"}, cap=Cap(2, b"secret"))
    assert capped.people == whole.people == ("01", "02", "03", "04", "05")
    assert (capped.units, capped.lengths) == (2, (1, 1))
    places = Cap(2, b"secret").taken(["family f1", "family f2", "sub-03", "sub-04"])
    np.testing.assert_array_equal(capped.table(), whole.table()[:, places])
    names = [["family f1", "family f2", "sub-03", "sub-04"][place] for place in places]
    assert capped.person_hashes.tolist() == Cap(2, b"secret").hashes(names).tolist()


def test_no_study_says_that_a_family_is_not_known(families: Path) -> None:
    text = (families / "participants.tsv").read_text().replace("F1", "91").replace("F2", "92")
    (families / "participants.tsv").write_text(text)
    units = {"family": "family_id"}
    data = opened(families, units)
    coded = opened(families, units, missing=[91, 92])
    assert coded.units == data.units < len(coded.people)


def test_rows_beyond_the_first_of_a_unit_are_not_used_and_told_at_home(families: Path) -> None:
    text = (families / "participants.tsv").read_text().replace("n/a\t", "F1\t")
    (families / "participants.tsv").write_text(text)
    data = opened(families, {"family": "family_id", "most_rows": 2})
    ages = rows_in(data, 2)[:, 0, 0]
    np.testing.assert_allclose(ages, [-0.6, -0.2])  # of 01 and 03
    told, more = data.notes
    assert told.startswith("5 participants with 3 rows are 2 families")
    assert more.startswith("2 rows are beyond the first 2")


def test_lines_of_sessions_are_rows_of_their_participant(tmp_path: Path) -> None:
    folder = tmp_path / "bids"
    write(
        folder / "participants.tsv",
        "participant_id session_id age ill",
        *("sub-02 ses-2 31 no", "sub-02 ses-1 30 no", "sub-01 1 20 yes", "sub-01 3 22 yes"),
    )
    lines = (
        "sub-01_ses-1 1",
        "sub-01_ses-2 2",
        "sub-01_ses-3 3",
        "sub-02_ses-1 4",
        "sub-02_ses-2 5",
    )
    write(folder / "brain.tsv", "participant_id area", *lines)
    data = opened(folder, {"sessions": True, "most_rows": 2})
    assert data.people == ("01", "02")
    rows = rows_in(data, 2)
    np.testing.assert_allclose(rows[:, 0], [[-0.6, -0.4], [-0.56, -0.38]])
    np.testing.assert_allclose(rows[:, 2], [[-0.8, -0.2], [-0.4, 0.0]])


def test_rules_choose_sessions_and_leave_out_who_has_none(tmp_path: Path) -> None:
    folder = tmp_path / "bids"
    lines = ("01 1 17 no", "01 2 19 no", "02 1 12 no", "02 2 14 no", "03 1 30 no", "03 2 33 no")
    write(
        folder / "participants.tsv",
        "participant_id session_id age ill",
        *(f"sub-{line}" for line in lines),
    )
    brain = ("01_ses-1", "01_ses-2", "02_ses-1", "02_ses-2", "03_ses-3")
    write(folder / "brain.tsv", "participant_id area", *(f"sub-{row} 5" for row in brain))
    data = opened(folder, {"sessions": True}, persons={"age": {"low": 18}})
    assert data.people == ("01",)
    np.testing.assert_allclose(rows_in(data, 5)[:2, 0, 0], [-0.62, np.nan])
    why = {each.label: (each.reason, each.detail) for each in data.survey.skipped}
    assert why["02"][0] == "not-chosen"
    assert why["03"] == (
        "no-view",
        f"{folder}: sub-03 has no session that fits and has all views.",
    )


def test_tables_of_sessions_and_folders_of_sessions_are_matched(tmp_path: Path) -> None:
    folder = tmp_path / "bids"
    write(folder / "participants.tsv", "participant_id ill", "sub-01 yes", "sub-02 no")
    for label, ages in (("01", (20, 25)), ("02", (40,))):
        lines = (f"ses-{n} {age}" for n, age in enumerate(ages, 1))
        write(folder / f"sub-{label}" / f"sub-{label}_sessions.tsv", "session_id age", *lines)
        for session in range(1, len(ages) + 1):
            stats = folder / "free" / f"sub-{label}" / f"ses-{session}" / "lh.aparc.stats"
            stats.parent.mkdir(parents=True)
            stats.write_text(f"# ColHeaders StructName ThickAvg\ninsula {session}\n")
    views = (
        {**WHO, "columns": {"ill": {"levels": ["no", "yes"]}}},
        {
            "name": "visit",
            "source": "table",
            "file": "sub-*/sub-*_sessions.tsv",
            "columns": {"age": {"low": 0, "high": 100}},
        },
        {
            "name": "brain",
            "source": "table",
            "file": "free/sub-*/ses-*/lh.aparc.stats",
            "columns": {"insula_ThickAvg": {"low": 0, "high": 4}},
        },
    )
    rows = rows_in(opened(folder, {"sessions": True, "most_rows": 2}, *views), 2)
    np.testing.assert_allclose(rows[:, :, 0], [[1, -0.6, -0.5], [1, -0.5, 0]])
    np.testing.assert_allclose(rows[:, :, 1], [[-1, -0.2, -0.5], [np.nan] * 3])


def test_images_of_sessions_are_rows(tmp_path: Path) -> None:
    folder = tmp_path / "bids"
    write(folder / "participants.tsv", "participant_id age ill", "sub-01 20 yes", "sub-02 30 no")
    for label, session in (("01", "a"), ("01", "b"), ("02", "a")):
        name = f"sub-{label}_ses-{session}_{FUNC}"
        path = folder / f"sub-{label}" / f"ses-{session}" / "func" / name
        path.parent.mkdir(parents=True)
        nib.save(image(tiny_series(int(label) + ord(session))), path)
    data = opened(folder, {"sessions": True, "most_rows": 2}, WHO, FMRI)
    rows = rows_in(data, 2)
    assert rows.shape == (2, 2 + tiny_grid().features, 2)
    assert np.isfinite(rows[:, :, 0]).all()
    assert not np.allclose(rows[0, 2:, 0], rows[1, 2:, 0])
    assert np.isnan(rows[1, :, 1]).all()


def test_a_participant_of_two_families_is_left_out(families: Path) -> None:
    before = opened(families, {"family": "family_id"}).people
    with (families / "participants.tsv").open("a") as file:
        file.write("sub-01\tF2\t20\tyes\n")
    after = opened(families, {"family": "family_id"})
    assert {*before} - {*after.people} == {"01"}
    assert [each.reason for each in after.survey.skipped if each.label == "01"] == ["unusable"]


@pytest.mark.parametrize(
    ("name", "like"),
    [("Müller", "Mu\u0308ller"), ("F1", "f1"), ("F1", "F1\u200b"), ("F1", "\ufeffＦ１")],
)
def test_one_family_is_one_however_its_name_is_typed(families: Path, name: str, like: str) -> None:
    path = families / "participants.tsv"
    text = path.read_text().replace("F1\t10", f"{name}\t10").replace("F1\t20", f"{like}\t20")
    path.write_text(text)
    data = opened(families, {"family": "family_id"})
    assert data.units == 4


def test_a_family_with_a_name_that_nobody_sees_is_none(families: Path) -> None:
    text = (families / "participants.tsv").read_text().replace("n/a\t", "\u200b\t")
    (families / "participants.tsv").write_text(text)
    data = opened(families, {"family": "family_id"})
    assert data.units == 4


@pytest.mark.parametrize("prefix", ["sub-", ""])
def test_sessions_behind_a_name_dissolve_no_family(tmp_path: Path, prefix: str) -> None:
    lines = (f"{prefix}{who}_ses-1 {family} 30 no" for who, family in (("01", "A"), ("02", "A")))
    write(tmp_path / "bids" / "participants.tsv", "participant_id family_id age ill", *lines)
    brain = (f"{prefix}{who}_ses-1 3" for who in ("01", "02"))
    write(tmp_path / "bids" / "brain.tsv", "participant_id area", *brain)
    for sessions in (False, True):
        units = {"family": "family_id", "sessions": sessions}
        data = opened(tmp_path / "bids", units)
        assert (data.units, data.people) == (1, ("01", "02"))


def test_a_line_of_nobody_is_named_though_it_has_a_session(families: Path) -> None:
    text = "participant_id session_id age ill\nsub-01 1 30 no\n 2 40 no\n".replace(" ", "\t")
    (families / "participants.tsv").write_text(text)
    data = opened(families, {"sessions": True})
    assert data.people == ("01",)
    assert any("line 3: every row must have a label" in x.detail for x in data.survey.skipped)


def test_a_family_that_no_table_names_is_refused(families: Path) -> None:
    with pytest.raises(DataError, match="a column 'household' is required"):
        opened(families, {"family": "household"}).table()


def test_what_a_view_has_of_a_participant_it_has_of_all_their_sessions() -> None:
    views = [{"01_ses-1", "01_ses-2", "02_ses-1"}, {"01", "02", "03"}, {"01_ses-2", "02", "03"}]
    assert rows_by_person(views) == {"01": ["01_ses-2"], "02": ["02_ses-1"]}
    assert rows_by_person([{"01"}, {"01"}]) == {"01": ["01"]}


def test_units_stand_in_the_order_of_their_first_row() -> None:
    family = {"01": "b", "02": "a", "03": "b"}
    groups = group_rows({one: [one] for one in family}, family)
    assert [*groups.items()] == [("b", ["01", "03"]), ("a", ["02"])]


@pytest.mark.parametrize("units", [None, {"family": "age"}])
def test_folders_of_one_participants_sessions_are_no_several_rows(
    tmp_path: Path, units: dict[str, Any] | None
) -> None:
    folder, vertices = tmp_path / "bids", MESHES["fsaverage5"].vertices
    lines = (f"sub-0{number} 30 no" for number in (1, 2, 3))
    write(folder / "participants.tsv", "participant_id age ill", *lines)
    for name in ("sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1", "sub-03"):
        for side in "lr":
            path = folder / name / "surf" / f"{side}h.thickness.fsaverage5.mgh"
            write_values(path, 2 + np.sin(np.arange(vertices)))
    data = opened(folder, units, WHO, CORTEX)
    assert data.people == ("02", "03")
    assert data.units == (2 if units is None else 1)
    (skipped,) = (each for each in data.survey.skipped if each.label == "01")
    assert skipped.reason == "unusable"
    assert "a participant must not count as two" in skipped.detail


def test_by_which_column_they_are_families_is_said(families: Path) -> None:
    data = opened(families, {"family": "ill"})  # whatever a study calls a family
    assert data.units == 2
    assert "families by column 'ill'" in data.notes[0]


def test_a_damaged_row_of_a_family_leaves_out_its_participant_only(tmp_path: Path) -> None:
    folder = tmp_path / "bids"
    rows = ("sub-01 A", "sub-02", "sub-03 A", "sub-04 B")
    write(folder / "participants.tsv", "participant_id family_id", *rows)
    write(folder / "brain.tsv", "participant_id area", *(f"0{k} 3" for k in range(1, 5)))
    write(folder / "who.tsv", "participant_id age ill", *(f"0{k} 30 no" for k in range(1, 5)))
    data = opened(folder, {"family": "family_id"}, {**WHO, "file": "who.tsv"}, BRAIN)
    assert data.people == ("01", "03", "04")
    (skipped,) = [each for each in data.survey.skipped if each.label == "02"]
    assert "line 3" in skipped.detail


@pytest.mark.parametrize("first", ["9", "09", "ses-009"])
def test_one_participants_spelling_of_a_session_moves_no_other(tmp_path: Path, first: str) -> None:
    """Session 9 is the first of every participant, and session 10 the second."""
    folder, own = tmp_path / "bids", {"01": first, "02": "9", "03": "9"}
    rows = [(who, session) for who, nine in own.items() for session in (nine, "10", "11")]
    people = (f"sub-{who} {session} 30 no" for who, session in rows)
    write(folder / "participants.tsv", "participant_id session_id age ill", *people)
    values = (f"sub-{who} {session} {number % 3}" for number, (who, session) in enumerate(rows))
    write(folder / "brain.tsv", "participant_id session_id area", *values)
    for persons in (None, {"age": {"low": 18}}):
        data = opened(folder, {"sessions": True, "most_rows": 2}, persons=persons)
        assert data.people == ("01", "02", "03")
        assert np.ptp(rows_in(data, 2), axis=2).max() == 0
        assert rows_in(data, 2)[0, -1, 0] != rows_in(data, 2)[1, -1, 0]


def test_a_label_of_any_number_of_digits_is_a_row():
    long = "7" * 5000
    found = rows_by_person([[long, "10", "9", "09_ses-10", "09_ses-2"]])
    assert list(found) == ["9", "09", "10", long]
    assert found["09"] == ["09_ses-2", "09_ses-10"]
