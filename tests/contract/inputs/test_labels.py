"""Spellings of participants: all spellings of one match in every file and in the ledger."""

import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import LedgerError, TableError
from consortium.study.data_section import DataSection
from consortium.views.table import TableView
from site_agent.data.people import chosen_by, everybody_in, left_out_here
from site_agent.data.survey import twin_folders
from site_agent.data.tsv import read_table, rows_or_errors
from site_agent.data.wording import SiteTables, Wording
from site_agent.labels import Spellings, canonical_label, former_spellings
from site_agent.ledger import file as ledger_file
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import charged

CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.5),
)

SPELLINGS = (
    "{}",
    "sub-{}",
    "SUB-{}",
    "Sub-{}/",
    "{}.0",
    "0{}",
    "sub-00{}",
    " {} ",
    "{}/",
    "sub-{}.00",
)
NUMBERS = st.integers(1, 99_999)


@given(NUMBERS, st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_all_spellings_of_a_number_are_one_label(number: int, one: str, other: str) -> None:
    a, b = one.format(number), other.format(number)
    assert canonical_label(a) == canonical_label(b) == str(number)
    assert canonical_label(canonical_label(a)) == canonical_label(a)


@given(NUMBERS, NUMBERS, st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_two_numbers_are_two_labels(first: int, second: int, one: str, other: str) -> None:
    same = canonical_label(one.format(first)) == canonical_label(other.format(second))
    assert same is (first == second)


@given(st.sampled_from(["", "CTRL", "NDAR_INV", "s"]), st.integers(0, 9999), st.integers(0, 6))
def test_an_earlier_spelling_is_found_from_any_later_one(name: str, number: int, pad: int) -> None:
    earlier = f"{name}{number:0{pad}d}"
    for later in (earlier.lower(), f"sub-{earlier}", f"{name}{number}", f"{earlier}/"):
        assert earlier in set(former_spellings(later))


@pytest.mark.parametrize("labels", [("a0b1", "a0b01x"), ("0a1", "a1"), ("100", "10"), ("x", "y")])
def test_other_labels_stay_apart(labels: tuple[str, str]) -> None:
    assert canonical_label(labels[0]) != canonical_label(labels[1])


# -- between files ---------------------------------------------------------------------------------


def bids(root: Path, folders: list[str], rows: list[str]) -> Path:
    for label in folders:
        (root / f"sub-{label}" / "anat").mkdir(parents=True)
    table = "\n".join(["participant_id\tage", *(f"{row}\t{20 + k}" for k, row in enumerate(rows))])
    (root / "participants.tsv").write_text(table + "\n")
    return root


YOUNG = DataSection.model_validate({"persons": {"age": {"high": 20}}})


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_rules_and_left_out_lists_find_every_spelling(spelling: str, tmp_path: Path) -> None:
    rows = [spelling.format(7), spelling.format(17)]
    site = bids(tmp_path / "bids", ["007", "017"], rows)
    out = {each.label for each in chosen_by(site, YOUNG)(["007", "017"])}
    assert out == {"017"}  # 21 years
    table = tmp_path / "out.tsv"
    table.write_text(f"participant_id\treason\n{spelling.format(17)}\twithdrew\n")
    assert [each.label for each in left_out_here(table)(["007", "017"])] == ["017"]
    assert everybody_in(site).all() == {"007", "017"}


def test_two_spellings_in_one_table_leave_out_their_participant_unless_labels_are_exact(
    tmp_path: Path,
) -> None:
    site = bids(tmp_path, [], ["001", "1", "2"])
    limits = {"age": {"low": 0, "high": 40}}
    view = TableView.model_validate({"name": "t", "source": "table", "columns": limits})
    vectors, lacking = read_table(site, view)
    assert (set(vectors), {k: x.reason for k, x in lacking.items()}) == ({"2"}, {"001": "unusable"})
    assert [error.kind for _, error in errors_in(site, ["age"])] == ["spelling"]
    exact = Wording(tables=SiteTables(exact_labels=True))
    assert set(read_table(site, view, exact)[0]) == {"001", "1", "2"}


def test_two_folders_of_one_participant_leave_it_out_unless_labels_are_exact(
    tmp_path: Path,
) -> None:
    site = bids(tmp_path, ["1", "01"], ["1"])
    out = twin_folders(everybody_in(site))
    assert {label: each.reason for label, each in out.items()} == dict.fromkeys(
        ["1", "01"], "unusable"
    )
    exact = everybody_in(site, SiteTables(exact_labels=True))
    assert (exact.all(), twin_folders(exact)) == ({"1", "01"}, {})


def errors_in(site: Path, columns: Sequence[str]) -> list[tuple[str, TableError]]:
    """The rows of participants.tsv that can't be used."""
    rows = rows_or_errors(site / "participants.tsv", columns)
    return [(label, row) for label, row in rows if isinstance(row, TableError)]


@pytest.mark.parametrize("label", ["MEAN", "sub-mean", "Average", "SD", "total", "fsaverage"])
def test_a_row_of_means_is_no_participant(label: str, tmp_path: Path) -> None:
    site = bids(tmp_path, [], ["01", label])
    limits = {"age": {"low": 0, "high": 40}}
    view = TableView.model_validate({"name": "t", "source": "table", "columns": limits})
    vectors, lacking = read_table(site, view)
    assert set(vectors) == {"01"}
    assert [each.reason for each in lacking.values()] == ["unusable"]
    ((_, error),) = errors_in(site, ["age"])
    assert (error.kind, error.line) == ("summary", 3)


# -- in the ledger ---------------------------------------------------------------------------------

LABELS = ["001", "017", "NDAR02"]
LATER = ["1", "sub-17", "ndar2"]


def test_no_participant_starts_a_new_account_by_another_spelling(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charged(ledger, CHARGE, LABELS)
    assert ledger.total("", CHARGE.unit, LATER) == CHARGE.mu
    assert ledger.enroll(LATER) == ledger.enroll(LABELS)
    assert ledger.knows_any(["17.0"])
    assert not ledger.knows_any(["18"])


def earlier_ledger(path: Path, *groups: list[str]) -> None:
    """Write a ledger of the version before, with one charge for each group of labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_file, "canonical_label", lambda label: label)
        ledger = Ledger(path)
        for number, labels in enumerate(groups):
            charged(ledger, replace(CHARGE, run=f"run-{number}"), labels)
        ledger.close()
    with sqlite3.connect(path) as connection:
        for table in ("spellings", "former"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("ALTER TABLE participants RENAME TO persons")
        connection.execute("PRAGMA user_version = 6")


def test_a_ledger_of_the_version_before_knows_all_of_its_participants(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    earlier_ledger(path, LABELS)
    for labels in (LABELS, LATER, LATER[::-1], ["SUB-001/"]):
        assert Ledger(path).total("", CHARGE.unit, labels) == CHARGE.mu
    after = Ledger(path)
    after.enroll(LATER)
    assert Ledger(path).total("", CHARGE.unit, ["0001"]) == CHARGE.mu
    assert after.total("", CHARGE.unit, ["2"]) == 0.0


def test_charges_under_two_spellings_are_one_account(tmp_path: Path) -> None:
    """Both were the participant's, so both losses count; another agent sees the same sum."""
    path = tmp_path / "ledger.sqlite"
    earlier_ledger(path, ["001", "002"], ["1", "003"])
    other = Ledger(path)
    assert other.total("", CHARGE.unit, ["002"]) == CHARGE.mu
    both = pytest.approx(2**0.5 * CHARGE.mu)
    assert Ledger(path).total("", CHARGE.unit, ["01"]) == both
    assert other.most_charged(CHARGE.unit) == both
    other.enroll(["1", "2", "3"])
    assert Ledger(path).total("", CHARGE.unit, ["001"]) == both
    other.verify()


def test_an_exact_site_is_charged_too_much_rather_than_too_little(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charged(ledger, CHARGE, ["1"])
    assert ledger.total("", CHARGE.unit, ["01"]) == CHARGE.mu
    assert Spellings(["1", "01"], exact=True).all() == {"1", "01"}


def test_a_link_is_never_undone_by_another_spelling(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    earlier_ledger(path, ["PatCtrl01"], ["PATCTRL01"])
    both = pytest.approx(2**0.5 * CHARGE.mu)
    first = Ledger(path)
    assert first.total("", CHARGE.unit, ["PatCtrl01"]) == both
    for spelling in ("PATCTRL01", "patctrl1", "PatCtrl01"):
        assert Ledger(path).total("", CHARGE.unit, [spelling]) == both
        assert first.total("", CHARGE.unit, [spelling]) == both


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Zoe\u0301", "Zoe\u0301"),
        ("Zoe\u0301", "sub-ZO\u00c9"),
        ("1.00", "1"),
        ("1e+05", "100000"),
        ("1E5", "1.00E+05"),
        ("NDARinv003RTV85", "ndarinv003rtv85"),
        ("0000000000001", "1"),
        ("CTRL007", "Sub-Ctrl7"),
    ],
)
def test_an_earlier_account_is_found(earlier: str, later: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    earlier_ledger(path, [earlier, "other"])
    ledger = Ledger(path)
    ledger.total("", CHARGE.unit, [canonical_label(later)])  # as another data set may ask first
    assert ledger.total("", CHARGE.unit, [later]) == CHARGE.mu
    assert Ledger(path).total("", CHARGE.unit, [later]) == CHARGE.mu


def test_an_older_ledger_in_its_place_is_noticed_though_labels_are_linked(tmp_path: Path) -> None:
    path, copy = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    earlier_ledger(path, ["001", "002"], ["1", "003"])
    ledger = Ledger(path)
    ledger.total("", CHARGE.unit, ["1"])
    ledger.settle()
    shutil.copy(path, copy)
    charged(ledger, replace(CHARGE, run="later"), ["4"])
    ledger.close()
    reader = Ledger(path)
    reader.total("", CHARGE.unit, ["1"])
    for each in (path, path.with_name("ledger.sqlite-wal"), path.with_name("ledger.sqlite-shm")):
        each.unlink(missing_ok=True)
    shutil.copy(copy, path)
    with pytest.raises(LedgerError, match="the ledger was replaced"):
        reader.total("", CHARGE.unit, ["1"])


def test_an_agent_of_the_version_before_can_not_mark_labels_any_more(tmp_path: Path) -> None:
    """It may still run, with the file open, while another agent of the hospital is upgraded."""
    path = tmp_path / "ledger.sqlite"
    earlier_ledger(path, ["001"])
    with sqlite3.connect(path) as connection:
        connection.execute("SELECT mark FROM persons").fetchall()
        Ledger(path)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            connection.execute("INSERT INTO persons (mark) VALUES (?)", (b"x",))


@pytest.mark.parametrize(
    "text",
    [
        *("sub-017_T1w.nii.gz", "/data/fs/sub-017", "D:\\fs\\sub-017", "./sub-017/", "sub017"),
        *("sub_017", "Sub 017", "'sub-017'", '="sub-017"', "'017", "sub\u2013017", "\ufeffsub-017"),
        *(
            "17,0",
            "sub-017\u200b",
            "\u0661\u0667",
            "\uff11\uff17",
            "017_SES-1",
            "sub-017_acq-x_T1w",
        ),
    ],
)
def test_a_view_s_rows_are_matched_in_every_spelling(text: str, tmp_path: Path) -> None:
    """As FreeSurfer, SAS, spreadsheets, Windows and people write them."""
    table = tmp_path / "aparc.tsv"
    table.write_text(f"participant_id\tage\n{text}\t20\n", encoding="utf-8")
    limits = {"age": {"low": 0, "high": 40}}
    view = TableView.model_validate(
        {"name": "t", "source": "table", "columns": limits, "file": "aparc.tsv"}
    )
    (label,) = read_table(tmp_path, view)[0]
    assert canonical_label(label) == "17"
    out = tmp_path / "out.tsv"
    out.write_text(f"participant_id\treason\n{text}\twithdrew\n", encoding="utf-8")
    assert [each.label for each in left_out_here(out)(["017", "018"])] == ["017"]


def test_a_label_with_a_slash_is_no_path(tmp_path: Path) -> None:
    """Case numbers of hospitals: 2019/017 and 2020/017 are two patients."""
    labels = ("2019/017", "2020/017", "2020-017", "17")
    assert len({canonical_label(label) for label in labels}) == 4
    rows = "\n".join(["participant_id\tage", *(f"{label}\t20" for label in labels)])
    (tmp_path / "participants.tsv").write_text(rows + "\n")
    limits = {"age": {"low": 0, "high": 40}}
    view = TableView.model_validate({"name": "t", "source": "table", "columns": limits})
    assert set(read_table(tmp_path, view)[0]) == set(labels)
