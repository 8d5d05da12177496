"""Tables of persons: public limits only, and a sentence for every line that can't be used."""

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.base.delimited import DelimitedTable
from consortium.errors import DataError, TableError
from consortium.views.column import Column
from consortium.views.table import TableView
from site_agent.data.tsv import (
    MOST_BYTES_OF_RUN,
    encode_cell,
    given_in,
    is_nobodys,
    person_rows,
    read_lines,
    read_table,
)
from site_agent.labels import Spellings

AGE = {"low": 20, "high": 80}
SEX = {"levels": ["F", "M"]}
SITE = {"levels": ["a", "b", "c"]}


def view(file: str = "participants.tsv", **columns) -> TableView:
    return TableView.model_validate(
        {"name": "table", "source": "table", "file": file, "columns": columns or {"age": AGE}}
    )


def write(folder: Path, *lines: str, name: str = "participants.tsv") -> Path:
    path = folder / name
    path.write_text("\n".join(x.replace(" ", "\t") for x in lines) + "\n", encoding="utf-8")
    return path


def test_values_become_entries_in_the_order_of_the_study(tmp_path: Path) -> None:
    write(tmp_path, "sex participant_id other age", "M sub-01 x 50", "F 02 x 20", "F sub-03 x 95")
    vectors, lacking = read_table(tmp_path, view(age=AGE, sex=SEX))
    assert {p: v.tolist() for p, v in vectors.items()} == {
        "01": [0, 1],
        "02": [-1, -1],
        "03": [1, -1],
    }
    assert lacking == {}


def test_columns_by_number_are_single_columns(tmp_path: Path) -> None:
    columns = {"x[2-4]": {"low": 0, "high": 10}}
    write(tmp_path, "participant_id x4 x3 x2", "01 0 5 10")
    vectors, _ = read_table(tmp_path, view(**columns))
    np.testing.assert_array_equal(vectors["01"], [1, 0, -1])
    assert view(**columns).labels == ("x2", "x3", "x4")


def test_a_table_may_lie_in_a_folder_of_the_data_set(tmp_path: Path) -> None:
    (tmp_path / "phenotype").mkdir()
    write(tmp_path / "phenotype", "participant_id age", "01 50", name="test.tsv")
    vectors, _ = read_table(tmp_path, view("phenotype/test.tsv"))
    assert vectors["01"].tolist() == [0]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        *((v, "has no value") for v in ("", "n/a", "nan")),
        *((v, "has no number") for v in ("old", "5O", "1,2,3")),
        *((v, "has a number with a decimal comma") for v in ("24,6", "-1,5")),
    ],
)
def test_who_lacks_a_value_is_told_by_name_of_the_column(
    tmp_path: Path, value: str, why: str
) -> None:
    write(tmp_path, "participant_id age", f"01 {value}", "02 50")
    vectors, lacking = read_table(tmp_path, view())
    assert list(vectors) == ["02"]
    assert f"column age {why}" in lacking["01"].detail
    assert lacking["01"].reason == "no-view"
    said = lacking["01"].detail.removeprefix(str(tmp_path))
    assert value in ("", "n/a", "nan") or value not in said


def test_whose_level_the_study_has_not_is_left_out_by_its_choice(tmp_path: Path) -> None:
    write(tmp_path, "participant_id sex age", "01 X 50", "02 F 50", "03 X n/a")
    _, lacking = read_table(tmp_path, view(age=AGE, sex=SEX))
    reasons = {label: each.reason for label, each in lacking.items()}
    assert reasons == {"01": "does-not-fit", "03": "no-view"}


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_a_number_lies_between_minus_one_and_one_whoever_it_is(
    value: float, low: float, width: float
) -> None:
    (entry,) = encode_cell(repr(value), Column(low=low, high=low + width)) or ()
    assert -1 <= entry <= 1
    if low <= value <= low + width:
        back = low + (entry + 1) / 2 * width
        assert back == pytest.approx(value, abs=1e-9 * (abs(low) + width))


@pytest.mark.parametrize(("value", "entries"), [("a", (1, 0, 0)), ("c", (0, 0, 1)), ("d", None)])
def test_more_than_two_levels_have_an_entry_each(value: str, entries) -> None:
    assert encode_cell(value, Column.model_validate(SITE)) == entries


WRONG = {
    "no participant_id": ("age", "50"),
    "no column": ("participant_id sex", "01 F"),
    "a column twice": ("participant_id age age", "01 5 6"),
    "nothing": ("",),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_table_that_is_wrong_is_an_error_in_one_sentence(tmp_path: Path, case: str) -> None:
    write(tmp_path, *WRONG[case])
    with pytest.raises(DataError, match=r"participants\.tsv") as caught:
        read_table(tmp_path, view())
    assert str(caught.value).endswith(".")
    assert "50" not in str(caught.value)


@pytest.mark.parametrize("cell", ['"50', '"50""', '50,"x', '"50"x'])
@pytest.mark.parametrize("at", range(3))
def test_a_quote_that_is_not_closed_leaves_out_its_own_participant(
    tmp_path: Path, cell: str, at: int
) -> None:
    rows = ["sub-01,20,1", "sub-02,50,2", "sub-03,80,3"]
    whole = {"01": [-1.0], "02": [0.0], "03": [1.0]}
    rows[at] = f"sub-0{at + 1},{cell},7"
    (tmp_path / "participants.csv").write_text("\n".join(("participant_id,age,iq", *rows)) + "\n")
    vectors, lacking = read_table(tmp_path, view("participants.csv"))
    del whole[f"0{at + 1}"]
    assert {label: own.tolist() for label, own in vectors.items()} == whole
    assert {label: own.reason for label, own in lacking.items()} == {f"0{at + 1}": "unusable"}
    with pytest.raises(TableError) as caught:
        list(person_rows(tmp_path / "participants.csv", ["age"]))
    assert (caught.value.kind, caught.value.line) == ("quotes", at + 2)


def test_two_quotes_that_are_not_closed_swallow_no_row(tmp_path: Path) -> None:
    table = tmp_path / "participants.csv"
    rows = ("sub-01,80,a", 'sub-02,20,"b', "sub-03,20,c", 'sub-04,20,d"', "sub-05,80,e")
    for kept in (rows, (*rows[:2], *rows[3:])):
        table.write_text("\n".join(("participant_id,age,note", *kept)) + "\n")
        vectors, lacking = read_table(tmp_path, view("participants.csv"))
        labels = {row[4:6] for row in kept}
        assert "02" in lacking
        assert {*vectors, *lacking} == labels
        assert {"01", "05"} <= set(vectors)


@settings(max_examples=200, deadline=None)
@given(
    cell=st.text(st.sampled_from('",\t a1\n\r'), max_size=8),
    at=st.integers(0, 2),
    separator=st.sampled_from("\t,"),
)
def test_no_cell_changes_the_values_of_another_row(cell: str, at: int, separator: str) -> None:
    """A note of one participant, whatever characters it has."""
    rows = [["sub-01", "a", "80"], ["sub-02", "b", "20"], ["sub-03", "c", "50"]]
    rows[at][1] = cell
    lines = [separator.join(row) + "\n" for row in (["participant_id", "note", "age"], *rows)]
    table = DelimitedTable(Path("participants.tsv"), io.StringIO("".join(lines), newline=""))
    read = [list(row.cells) for row in table.every_row() if row.trouble is None]
    assert [row for n, row in enumerate(rows) if n != at and row not in read] == []


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_sign_in_a_cell_makes_no_second_person(tmp_path: Path, sign: str) -> None:
    table = tmp_path / "participants.tsv"
    line = f"sub-01\t{sign}sub-09\t80"
    table.write_bytes(f"participant_id\tnote\tage\r\n{line}\nsub-02\tx\t20\r\n".encode())
    vectors, _ = read_table(tmp_path, view())
    assert {p: v.tolist() for p, v in vectors.items()} == {"01": [1], "02": [-1]}


def test_a_carriage_return_within_a_row_makes_no_second_participant(tmp_path: Path) -> None:
    table = tmp_path / "participants.tsv"
    table.write_bytes(b"participant_id\tnote\tage\r\nsub-01\t\rsub-09\t80\r\nsub-02\t\t20")
    vectors, lacking = read_table(tmp_path, view())
    assert set(vectors) == {"02"}
    assert {label: each.reason for label, each in lacking.items()} == {
        "01": "unusable",
        "09": "unusable",
    }


def test_a_cell_of_any_length_is_its_own_persons(tmp_path: Path) -> None:
    write(tmp_path, "participant_id age", f"sub-01 {'5' * 200_000}", "sub-02 20")
    vectors, lacking = read_table(tmp_path, view())
    assert {p: v.tolist() for p, v in vectors.items()} == {"02": [-1]}
    assert set(lacking) == {"01"}  # a number that is not finite


def test_quoted_cells_are_read_without_their_quotes(tmp_path: Path) -> None:
    table = tmp_path / "participants.csv"
    table.write_text('"participant_id", "age"\n"sub-01", "80"\n\n"sub-02","20"\n')
    vectors, _ = read_table(tmp_path, view("participants.csv"))
    assert {p: v.tolist() for p, v in vectors.items()} == {"01": [1], "02": [-1]}


def test_two_sessions_of_one_are_no_two_persons(tmp_path: Path) -> None:
    """As FreeSurfer names them: one person would be counted twice, under names never charged."""
    write(tmp_path, "participant_id age", "sub-01_ses-1 80", "sub-02_ses-1.long.sub-02 20")
    vectors, _ = read_table(tmp_path, view())
    assert {p: v.tolist() for p, v in vectors.items()} == {"01": [1], "02": [-1]}
    write(tmp_path, "participant_id age", "sub-01_ses-1 80", "sub-01_ses-2 20")
    vectors, lacking = read_table(tmp_path, view())
    assert (vectors, lacking["01"].reason) == ({}, "unusable")


def test_a_pipe_in_the_place_of_a_table_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "participants.tsv")
    with pytest.raises(DataError, match="is not a regular file"):
        read_table(tmp_path, view(age={"low": 0, "high": 100}))


def test_what_is_no_table_is_an_error(tmp_path: Path) -> None:
    def kind() -> str:
        with pytest.raises(TableError) as caught:
            read_table(tmp_path, view())
        return str(caught.value.kind)

    table = tmp_path / "participants.tsv"
    assert kind() == "absent"
    for coding in ("utf-16", "utf-16-le", "utf-32"):
        table.write_text("participant_id\tage\n01\t3\n", coding)
        assert kind() == "encoding"
    table.write_text("participant_id;age\n01;3\n")
    assert kind() == "separator"
    table.write_text("")
    assert kind() == "column"
    table.unlink()
    table.symlink_to("/proc/self/mem")
    with pytest.raises(DataError):
        read_table(tmp_path, view())


def test_a_row_whose_label_has_bytes_that_are_not_utf_8_is_named_by_its_line(
    tmp_path: Path,
) -> None:
    table = tmp_path / "participants.tsv"
    table.write_bytes(b"participant_id\tage\tname\n02\t20\ty\n0\xff\t50\tx\n")
    vectors, lacking = read_table(tmp_path, view())
    assert set(vectors) == {"02"}
    (found,) = lacking.values()
    assert found.reason == "unusable"
    assert "line 3, column 'participant_id' has other bytes" in found.detail


def test_a_row_of_nobody_is_named_by_its_line(tmp_path: Path) -> None:
    write(tmp_path, "participant_id age", "01 50", " 60", " n/a")
    vectors, lacking = read_table(tmp_path, view())
    assert set(vectors) == {"01"}
    ((name, found),) = lacking.items()
    assert is_nobodys(name)
    assert "line 3" in found.detail


def test_a_cell_with_bytes_that_are_not_utf_8_leaves_out_its_participant(tmp_path: Path) -> None:
    table = tmp_path / "participants.tsv"
    table.write_bytes(b"participant_id\tage\tname\n02\t20\ty\n01\t5\xfc\tx\n")
    vectors, lacking = read_table(tmp_path, view())
    assert set(vectors) == {"02"}
    assert "line 3, column 'age' has other bytes" in lacking["01"].detail


def test_what_a_study_does_not_use_may_hold_any_bytes(tmp_path: Path) -> None:
    table = tmp_path / "participants.tsv"
    table.write_bytes(b"participant_id\tage\tn\xe4me\n01\t80\tM\xfcller\n02\t20\t\xff\n\t\tx\n")
    vectors, _ = read_table(tmp_path, view())
    assert {p: v.tolist() for p, v in vectors.items()} == {"01": [1], "02": [-1]}
    assert given_in(table, Spellings(["01", "02", "03"])) == {"age": {"01": "80", "02": "20"}}
    found = person_rows(table, ["age"], among=Spellings(["02"]))
    assert [label for label, _ in found] == ["02"]


def test_a_line_that_is_there_twice_counts_once_if_it_says_the_same(tmp_path: Path) -> None:
    write(tmp_path, "participant_id age note", "01 80 a", "sub-01 80 b", "02 20 c")
    vectors, _ = read_table(tmp_path, view())
    assert {p: v.tolist() for p, v in vectors.items()} == {"01": [1], "02": [-1]}
    write(tmp_path, "participant_id age note", "01 80 a", "02 20 c", "sub-01 81 a")
    vectors, lacking = read_table(tmp_path, view())
    assert set(vectors) == {"02"}
    assert re.search("line 4: .* line 2 is .* other values of age", lacking["01"].detail)
    others = person_rows(tmp_path / "participants.tsv", ["age"], among=Spellings(["02"]))
    assert [label for label, _ in others] == ["02"]


@pytest.mark.parametrize("name", ["../secret.tsv", "/etc/passwd", "link.tsv"])
def test_a_study_can_not_point_at_the_sites_other_files(tmp_path: Path, name: str) -> None:
    data = tmp_path / "bids"
    data.mkdir()
    write(tmp_path, "participant_id age", "01 50", name="secret.tsv")
    (data / "link.tsv").symlink_to(tmp_path / "secret.tsv")
    with pytest.raises(DataError, match="not in the site's data set"):
        read_table(data, view(name))


def test_a_recording_s_table_that_is_too_large_is_refused_unread(tmp_path):
    path = tmp_path / "confounds.tsv"
    path.write_text("a\n1\n")
    os.truncate(path, MOST_BYTES_OF_RUN + 1)
    with pytest.raises(DataError, match=f"at most {MOST_BYTES_OF_RUN} bytes"):
        read_lines(path)


def test_a_recording_s_table_is_read_as_any_other(tmp_path):
    path = tmp_path / "events.tsv"
    path.write_text('onset\t name \n1\t"a\tb"\n\n2\tb"\n')
    assert read_lines(path) == [("onset", "name"), ["1", "a\tb"], ["2", 'b"']]


def test_who_lacks_no_more_than_a_view_allows_stays_with_gaps(tmp_path: Path) -> None:
    lines = ("participant_id a b ward", "01 50 n/a a", "02 n/a n/a b", "03 50 20 n/a")
    write(tmp_path, *lines)
    columns = {"a": AGE, "b": AGE, "ward": SITE}
    gappy = view(**columns).model_copy(update={"gaps": 0.34})
    vectors, lacking = read_table(tmp_path, gappy)
    np.testing.assert_array_equal(vectors["01"], [0, np.nan, 1, 0, 0])
    np.testing.assert_array_equal(vectors["03"], [0, -1, np.nan, np.nan, np.nan])
    assert set(lacking) == {"02"}
    assert set(read_table(tmp_path, view(**columns))[1]) == {"01", "02", "03"}
