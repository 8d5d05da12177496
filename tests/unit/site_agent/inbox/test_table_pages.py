"""Forms of the left-out table and of names: they write what the commands and staff write."""

import re
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.approval.left_out import read_states
from site_agent.config import Alias, SiteConfig
from site_agent.data.people import read_left_out
from site_agent.layout import CONFIG
from tests.support.command_line import enter
from tests.support.inbox_client import Visitor
from tests.support.membership_files import papers

HEAD = "participant_id\treason\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place: DemoFolders = papers(tmp_path)[0]
    for label in ("001", "002", "003"):
        (place.dataset("east") / f"sub-{label}").mkdir()
    return place.site("east")


def _rows(folder: Path) -> dict[str, str]:
    table = SiteConfig.load(folder).left_out
    return {} if table is None else read_left_out(table)


def _add(visitor: Visitor, person: str, reason: str = "withdrew") -> int:
    fields = {"participant": person, "reason": reason, "shown": visitor.shown("left-out")}
    return visitor.post("left-out/add", **fields).status_code


def test_the_first_row_makes_the_table_and_names_it(folder: Path) -> None:
    visitor = Visitor(folder).enter()
    assert "The table is empty" in visitor.get("left-out").text
    assert _add(visitor, "sub-002", "withdrew consent, by letter") == 200
    table = folder / "left-out.tsv"
    assert table.read_text() == HEAD + "sub-002\twithdrew consent, by letter\n"
    assert table.stat().st_mode & 0o777 == 0o600
    assert _rows(folder) == {"002": "withdrew consent, by letter"}
    assert _add(visitor, "17") == 200
    page = visitor.get("left-out").text
    assert "WARNING: matches no participant" in page
    assert (
        "The left-out table names 2 participants"
        in enter("site-agent", "left-out", "-f", folder).out
    )


def test_other_columns_line_ends_and_rows_of_a_table_stay(folder: Path) -> None:
    table = folder / "ours.tsv"
    table.write_bytes(b"\xef\xbb\xbfreason\twhen\tparticipant_id\r\nwithdrew\t2026\tsub-001")
    SiteConfig.load(folder).model_copy(update={"left_out": table}).save(folder)
    visitor = Visitor(folder).enter()
    assert _add(visitor, "003", "moved") == 200
    text = table.read_bytes().decode("utf-8-sig")
    assert text == "reason\twhen\tparticipant_id\r\nwithdrew\t2026\tsub-001\r\nmoved\tn/a\t003\r\n"


@pytest.mark.parametrize(
    "text", ["", " ", "a\tb", "a\nb", "x" * 201, "\x1b[2J", '"a', 'a"b', "\u202e"]
)
def test_a_cell_is_one_line_of_text(folder: Path, text: str) -> None:
    visitor = Visitor(folder).enter()
    assert _add(visitor, text) == 409
    assert _add(visitor, "sub-001", text) == 409
    assert _rows(folder) == {}


def test_a_participant_takes_part_again_only_after_a_question(folder: Path) -> None:
    visitor = Visitor(folder).enter()
    _add(visitor, "sub-001")
    _add(visitor, "sub-002")
    read_states(folder).settle_left_out("before a run")
    shown = visitor.shown("left-out")
    asked = visitor.post("left-out/return", participant="002", shown=shown)
    assert "Let 002 take part again?" in asked.text
    assert [*_rows(folder)] == ["001", "002"]
    assert visitor.post("left-out/remove", participant="SUB-2", shown=shown).status_code == 200
    assert [*_rows(folder)] == ["001"]
    assert read_states(folder).count_left_out() == (1, 0)  # recorded, as left-out --confirm does
    assert visitor.post("left-out/remove", participant="001", shown=shown).status_code == 409
    shown = visitor.shown("left-out")
    assert visitor.post("left-out/remove", participant="nobody", shown=shown).status_code == 409
    assert [*_rows(folder)] == ["001"]


@pytest.mark.parametrize("exact", [False, True])
def test_only_the_participant_who_was_shown_is_removed(folder: Path, exact: bool) -> None:
    table = folder / "ours.tsv"
    table.write_text(HEAD + "sub-1\twithdrew\nsub-002\tmoved\n")
    labels = "exact" if exact else "canonical"
    SiteConfig.load(folder).model_copy(update={"left_out": table, "labels": labels}).save(folder)
    visitor = Visitor(folder).enter()
    shown = visitor.shown("left-out")
    answer = visitor.post("left-out/remove", participant="sub-01", shown=shown)
    assert answer.status_code == (409 if exact else 200)
    assert [*_rows(folder)] == (["1", "002"] if exact else ["002"])


def test_a_participant_is_not_left_out_twice(folder: Path) -> None:
    visitor = Visitor(folder).enter()
    assert _add(visitor, "sub-002") == 200
    before = (folder / "left-out.tsv").read_text()
    assert _add(visitor, "2", "another reason") == 409
    assert (folder / "left-out.tsv").read_text() == before


def test_a_table_that_became_shorter_is_confirmed_by_its_own_form(folder: Path) -> None:
    visitor = Visitor(folder).enter()
    _add(visitor, "sub-001")
    _add(visitor, "sub-002")
    read_states(folder).settle_left_out("before a run")
    (folder / "left-out.tsv").write_text(HEAD + "sub-001\twithdrew\n")
    page = visitor.get("left-out").text
    assert "1 participant of the last run's table is missing" in re.sub(r"\s+", " ", page)
    shown = visitor.shown("left-out")
    asked = visitor.post("left-out/return", participant="001", shown=shown).text
    assert "1 other participant of the last run" in asked  # who would take part again also
    assert read_states(folder).count_left_out() == (1, 1)
    assert "Recorded without 1 participant" in visitor.post("left-out/confirm", shown=shown).text
    assert read_states(folder).count_left_out() == (1, 0)


def test_a_form_does_not_write_over_a_change_by_hand(folder: Path) -> None:
    visitor = Visitor(folder).enter()
    _add(visitor, "sub-001")
    table, pages = folder / "left-out.tsv", {"left-out": "left-out", "names": "names"}
    shown = {name: visitor.shown(path) for name, path in pages.items()}
    table.write_text(HEAD + "sub-003\twithdrew\n")
    forms = {
        "left-out/add": {"participant": "sub-002", "reason": "x"},
        "left-out/remove": {"participant": "003"},
        "left-out/confirm": {},
        "names/set": {"column": "a", "here": "b"},
        "names/remove": {"column": "a"},
    }
    for path, fields in forms.items():
        answer = visitor.post(path, shown=shown[path.split("/")[0]], **fields)
        assert "has changed since the page was shown" in answer.text, path
    assert table.read_text() == HEAD + "sub-003\twithdrew\n"
    assert SiteConfig.load(folder).aliases == {}


def test_a_table_of_another_form_is_changed_by_hand_only(folder: Path) -> None:
    table = folder / "ours.tsv"
    SiteConfig.load(folder).model_copy(update={"left_out": table}).save(folder)
    for text in ("participant_id,reason\nsub-001,x\n", 'participant_id\treason\nsub-001\t"x"\n'):
        table.write_text(text)
        visitor = Visitor(folder).enter()
        assert _add(visitor, "sub-002") == 409
        assert table.read_text() == text


def test_names_are_set_replaced_and_removed(folder: Path) -> None:
    visitor = Visitor(folder).enter()

    def put(**fields: str) -> int:
        return visitor.post("names/set", shown=visitor.shown("names"), **fields).status_code

    assert put(column="diagnosis", here="Dx", levels="SCZ = scz, 1\r\n\r\nHC=0") == 200
    wanted = Alias(column="Dx", levels={"SCZ": ("scz", "1"), "HC": ("0",)})
    assert SiteConfig.load(folder).aliases == {"diagnosis": wanted}
    assert "SCZ = scz, 1" in visitor.get("names").text
    assert put(column="diagnosis", here="", levels="SCZ = s") == 200
    assert SiteConfig.load(folder).aliases == {"diagnosis": Alias(levels={"SCZ": ("s",)})}
    for fields in (
        {"column": "", "here": "x"},
        {"column": "sex"},
        {"column": "sex", "levels": "M"},
        {"column": "sex", "levels": "M ="},
        {"column": "sex", "levels": "M = 1\nM = 2"},
        {"column": "sex", "levels": "M = 1\nF = 1"},
        {"column": "sex", "here": "x" * 201},
    ):
        assert put(**fields) == 409, fields
    shown = visitor.shown("names")
    assert visitor.post("names/remove", column="diagnosis", shown=shown).status_code == 200
    assert SiteConfig.load(folder).aliases == {}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =HYPERLINK(1)"])
def test_a_cell_that_a_spreadsheet_would_run_is_refused(folder: Path, text: str) -> None:
    visitor = Visitor(folder).enter()
    assert _add(visitor, text) == 409
    assert _add(visitor, "sub-001", text) == 409
    assert _rows(folder) == {}


def test_a_link_to_a_shared_table_or_configuration_stays_a_link(folder: Path) -> None:
    shared = folder.parent / "shared"
    shared.mkdir()
    (shared / "left.tsv").write_text(HEAD + "sub-001\twithdrew\n")
    (folder / "left.tsv").symlink_to(shared / "left.tsv")
    SiteConfig.load(folder).model_copy(update={"left_out": folder / "left.tsv"}).save(folder)
    (folder / CONFIG).rename(shared / CONFIG)
    (folder / CONFIG).symlink_to(shared / CONFIG)
    visitor = Visitor(folder).enter()
    assert _add(visitor, "002") == 200
    assert [*read_left_out(shared / "left.tsv")] == ["001", "002"]
    fields = {"column": "age", "here": "Alter", "shown": visitor.shown("names")}
    assert visitor.post("names/set", **fields).status_code == 200
    assert "Alter" in (shared / CONFIG).read_text()
    assert (folder / "left.tsv").is_symlink()
    assert (folder / CONFIG).is_symlink()


def test_a_new_table_is_not_written_where_a_broken_link_leads(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere.tsv"
    (folder / "left-out.tsv").symlink_to(elsewhere)
    assert _add(Visitor(folder).enter(), "002") == 200
    assert not elsewhere.exists()


def test_a_table_that_is_a_folder_is_named(folder: Path) -> None:
    (folder / "left").mkdir()
    SiteConfig.load(folder).model_copy(update={"left_out": folder / "left"}).save(folder)
    visitor = Visitor(folder).enter()
    assert visitor.get("left-out").status_code == 200
    assert _add(visitor, "002") == 409
