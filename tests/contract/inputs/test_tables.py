"""Tables as other programs write them: pandas reads the same cells, or an error names the line."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.base.delimited import open_table
from consortium.errors import DataError, TableError
from consortium.space.atlas import read_names
from consortium.views.table import TableView
from site_agent.config import Alias
from site_agent.data.people import read_left_out
from site_agent.data.personal import pair_cells
from site_agent.data.tsv import given_in, person_rows, read_lines, read_table
from site_agent.data.wording import SiteTables, Wording
from site_agent.eeg.tables import read_channels, read_events
from site_agent.images.preprocess import read_confounds
from site_agent.labels import Spellings

MOST = 1 << 20
LIMITS = {"low": -1e6, "high": 1e6}


def view_of(name: str, *columns: str, **fields: object) -> TableView:
    limits = dict.fromkeys(columns, LIMITS)
    values = {"name": "t", "source": "table", "file": name, "columns": limits}
    return TableView.model_validate({**values, **fields})


def values_of(folder: Path, name: str, *columns: str) -> dict[str, list[float]]:
    """Numbers of the columns, by label; -1 to 1 is -1e6 to 1e6."""
    vectors, _ = read_table(folder, view_of(name, *columns))
    return {label: [round(x * 1e6, 6) for x in vector] for label, vector in vectors.items()}


# -- K1: the width of every row is compared with the header's ------------------------------------

TEXT = st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=8)
COMMENT = st.one_of(TEXT, st.sampled_from(['say "hi"', "a, b", "two\nlines", "tab\there", "é"]))


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    many = draw(st.integers(2, 6))
    ages = draw(st.lists(st.integers(0, 99), min_size=many, max_size=many))
    notes = draw(st.lists(COMMENT, min_size=many, max_size=many))
    labels = [f"sub-{k:02d}" for k in range(1, many + 1)]
    return pd.DataFrame({"participant_id": labels, "note": notes, "age": ages, "iq": ages[::-1]})


@given(
    frames(),
    st.sampled_from([",", "\t"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL]),
)
def test_what_pandas_writes_is_read_as_pandas_reads_it(
    tmp_path_factory: pytest.TempPathFactory,
    frame: pd.DataFrame,
    separator: str,
    named: bool,
    end: str,
    encoding: str,
    quoting: int,
) -> None:
    folder = tmp_path_factory.mktemp("t")
    text = frame.to_csv(sep=separator, index=named, lineterminator=end, quoting=quoting)
    (folder / "t.tsv").write_bytes(text.encode(encoding))
    wanted = pd.read_csv(io.StringIO(text), sep=separator, index_col=0 if named else None)
    found = values_of(folder, "t.tsv", "age", "iq")
    assert found == {
        row.participant_id.removeprefix("sub-"): [row.age, row.iq] for row in wanted.itertuples()
    }


LABEL_COLUMNS = ("participant_id", "SubjID", "lh.aparc.thickness", "Measure:volume")
"""First columns of BIDS, ENIGMA and FreeSurfer."""


@given(frames(), st.sampled_from(["\t", ","]), st.booleans(), st.sampled_from(LABEL_COLUMNS))
def test_row_names_as_r_writes_them_move_no_cell(
    tmp_path_factory: pytest.TempPathFactory,
    frame: pd.DataFrame,
    separator: str,
    quoted: bool,
    first: str,
) -> None:
    """`write.table(df, sep="\\t")`: the header has no cell for the row names."""
    folder = tmp_path_factory.mktemp("t")
    quote = '"{}"'.format if quoted else "{}".format
    head = separator.join(quote(x) for x in (first, "age", "iq"))
    rows = [
        separator.join((quote(k), quote(row.participant_id), str(row.age), str(row.iq)))
        for k, row in enumerate(frame.itertuples(), start=1)
    ]
    text = "\n".join((head, *rows)) + "\n"
    (folder / "t.tsv").write_text(text)
    wanted = pd.read_csv(io.StringIO(text), sep=separator)
    assert wanted["age"].tolist() == frame["age"].tolist()  # pandas reads row names
    found = values_of(folder, "t.tsv", "age", "iq")
    assert list(found.values()) == wanted[["age", "iq"]].to_numpy().tolist()


@pytest.mark.parametrize(
    "damaged", ["2\tsub-02\t30", "2\tsub-02", "sub-02\t30\t99", "2\tsub-02\t30\t99\tx", "2"]
)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("first", LABEL_COLUMNS)
def test_a_damaged_row_decides_about_no_other_participants_row_names(
    tmp_path: Path, damaged: str, place: int, first: str
) -> None:
    rows = ["1\tsub-01\t20\t90", "3\tsub-03\t40\t95"]
    rows.insert(place, damaged)
    (tmp_path / "t.tsv").write_text("\n".join((f"{first}\tage\tiq", *rows)))
    found = values_of(tmp_path, "t.tsv", "age", "iq")
    assert (found["01"], found["03"]) == ([20, 90], [40, 95])


@pytest.mark.parametrize("first", LABEL_COLUMNS)
def test_a_row_name_before_a_label_without_its_prefix_is_not_guessed(
    tmp_path: Path, first: str
) -> None:
    """The row could as well have a cell too many."""
    (tmp_path / "t.tsv").write_text(f"{first}\tage\n7\t01\t20\n02\t30\n")
    vectors, lacking = read_table(tmp_path, view_of("t.tsv", "age"))
    assert (set(vectors), {label: each.reason for label, each in lacking.items()}) == (
        {"02"},
        {"7": "unusable"},
    )


def test_a_byte_of_one_row_decides_about_no_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("participant_id\tage\nsub-01\t2\0\nsub-02\t30\n")
    assert values_of(tmp_path, "t.tsv", "age") == {"02": [30]}


def rows_of(path: Path) -> list[list[str]]:
    with open_table(path, MOST) as table:
        return [list(table.header), *(list(row.cells) for row in table.rows())]


@given(frames(), st.integers(0, 5), st.sampled_from([-2, -1, 1, 2]), st.sampled_from([",", "\t"]))
def test_a_row_of_another_width_is_named_by_its_line(
    tmp_path_factory: pytest.TempPathFactory,
    frame: pd.DataFrame,
    place: int,
    change: int,
    separator: str,
) -> None:
    folder = tmp_path_factory.mktemp("t")
    rows = [["participant_id", "age", "iq"]]
    rows += [[r.participant_id, str(r.age), str(r.iq)] for r in frame.itertuples()]
    broken = 1 + place % len(frame)
    rows[broken] = (rows[broken] * 2)[: 3 + change]
    path = folder / "t.tsv"
    path.write_text("\n".join(map(separator.join, rows)) + "\n")
    with pytest.raises(TableError) as caught:
        rows_of(path)
    assert (caught.value.kind, caught.value.line) == ("width", broken + 1)
    vectors, lacking = read_table(folder, view_of("t.tsv", "age"))
    assert {label: each.reason for label, each in lacking.items()} == {
        rows[broken][0].removeprefix("sub-"): "unusable"
    }
    assert len(vectors) == len(frame) - 1


def test_a_separator_behind_every_row_is_an_error_and_not_a_row_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("participant_id,age\nsub-01,3,\nsub-02,4,\n")
    with pytest.raises(TableError) as caught:
        rows_of(path)
    assert caught.value.kind == "width"


def test_cells_behind_the_last_named_column_are_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("participant_id,age,,\nsub-01,3,,\nsub-02,4\n,,,\n")
    assert rows_of(path) == [["participant_id", "age"], ["sub-01", "3"], ["sub-02", "4"]]


def test_a_quoted_line_break_makes_no_participant(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        'participant_id,note,age\nsub-01,"first\nsecond ""quoted"", line",20\nsub-02,x,80\n'
    )
    wanted = pd.read_csv(tmp_path / "t.csv")
    assert values_of(tmp_path, "t.csv", "age") == {"01": [20], "02": [80]}
    assert wanted["age"].tolist() == [20, 80]


@pytest.mark.parametrize("head", ["age ", " age", "\ufeffage", "age\u200b", "\xa0age"])
def test_white_space_in_the_header_is_no_part_of_a_name(tmp_path: Path, head: str) -> None:
    (tmp_path / "t.tsv").write_text(f"participant_id\t{head}\nsub-01\t20\n", encoding="utf-8")
    assert values_of(tmp_path, "t.tsv", "age") == {"01": [20]}
    alias = SiteTables({"years": Alias(column="age ")})  # as an older message advised
    vectors, _ = read_table(tmp_path, view_of("t.tsv", "years"), Wording(tables=alias))
    assert set(vectors) == {"01"}


# -- every reader of a table has the same rules --------------------------------------------------

HEADS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "participants": ("participant_id\tage", lambda p: list(person_rows(p, ["age"]))),
    "given": ("participant_id\tage", lambda p: given_in(p, Spellings(["01", "02"]))),
    "left-out": ("participant_id\treason", read_left_out),
    "events": ("onset\ttrial_type", read_events),
    "channels": ("name\tstatus", lambda p: dict(read_channels(p).statuses)),
    "confounds": ("csf\tmotion", lambda p: read_confounds(p, ["motion"], 2)),
    "atlas labels": ("index\tname", read_names),
    "recording": ("a\tb", read_lines),
}
"""Header and reader of each kind of table."""
ROWS = {
    "participants": ("sub-01\t2", "sub-02\t4"),
    "given": ("sub-01\t2", "sub-02\t4"),
    "confounds": ("1\t2", "3\t4"),
    "events": ("1\tgo", "2\tgo"),
    "atlas labels": ("1\ta", "2\tb"),
}
DEFAULT = ("01\t2", "02\t4")


@pytest.mark.parametrize("kind", HEADS)
def test_every_reader_of_a_table_has_these_rules(kind: str, tmp_path: Path) -> None:
    head, read = HEADS[kind]
    rows = ROWS.get(kind, DEFAULT)
    path = tmp_path / "t.tsv"

    def after(text: str) -> object:
        path.write_text(text)
        found = read(path)
        return found.tolist() if isinstance(found, np.ndarray) else found

    plain = after("\n".join((head, *rows)) + "\n")
    assert after("\ufeff" + "\r\n".join((head, *rows, ""))) == plain
    assert after("\n".join((head.replace("\t", " \t "), *rows, "", "\t"))) == plain
    named = [f"{k}\t{row}" for k, row in enumerate(rows, start=1)]
    if kind == "left-out":  # a further cell must not turn a reason into a label
        with pytest.raises(TableError):
            after("\n".join((head, *named)))
    else:
        assert after("\n".join((head, *named))) == plain
    quoted = ["\t".join(f'"{cell}"' for cell in row.split("\t")) for row in (head, *rows)]
    assert after("\n".join(quoted)) == plain
    for broken in (f"{rows[1]}\tx", rows[1].split("\t")[0], f'{rows[1]}"x"\t"'):
        with pytest.raises(DataError, match=r"t\.tsv, line 3"):
            after("\n".join((head, rows[0], broken, rows[0])))


@pytest.mark.parametrize("kind", HEADS)
def test_absent_unreadable_and_wrongly_encoded_are_three_errors(kind: str, tmp_path: Path) -> None:
    head, read = HEADS[kind]
    path = tmp_path / "t.tsv"

    def trouble() -> str:
        with pytest.raises(TableError) as caught:
            read(path)
        return caught.value.kind

    assert trouble() == "absent"
    (tmp_path / "t.csv").write_text("")
    (tmp_path / "sub-01_scans.tsv").write_text("")
    with pytest.raises(TableError, match=r"There is 't.csv'. Did you mean 't.csv'\?"):
        read(path)
    path.write_text("\n".join((head, *ROWS.get(kind, DEFAULT))), "utf-16")
    assert trouble() == "encoding"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    path.unlink()
    path.symlink_to(tmp_path / "loop")
    assert trouble() == "unreadable"


# -- a participant's own matrix ------------------------------------------------------------------


def test_a_matrix_that_r_wrote_has_its_own_cells() -> None:
    head, rows = '"a"\t"b"\t"c"', ('"a"\t1\t.1\t.2', '"b"\t.1\t1\t.3', '"c"\t.2\t.3\t1')
    found = pair_cells([head, *rows], ["a-b", "b-c", "a-c"], courses=False)
    assert found == {"a-b": ".1", "b-c": ".3", "a-c": ".2"}
    for broken in ([head, *rows[:2]], [head, *rows[:2], rows[2][:-2]], [head, *rows, rows[0]]):
        with pytest.raises(ValueError, match=r"row|names"):
            pair_cells(broken, ["a-b"], courses=False)


# -- K7: odd cells ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999", "1_000", "1,5", "１２"])
def test_a_cell_that_is_no_plain_finite_number_is_missing_and_named(
    cell: str, tmp_path: Path
) -> None:
    (tmp_path / "t.tsv").write_text(f"participant_id\tage\nsub-01\t{cell}\nsub-02\t4\n", "utf-8")
    vectors, lacking = read_table(tmp_path, view_of("t.tsv", "age"))
    assert set(vectors) == {"02"}
    assert "age" in lacking["01"].detail


def test_a_further_cell_in_every_row_makes_no_label_of_another_column(tmp_path: Path) -> None:
    text = "participant_id\tage\tiq\nsub-01\t20\t90\tx\nsub-02\t30\t99\ty\n"
    (tmp_path / "t.tsv").write_text(text)
    vectors, lacking = read_table(tmp_path, view_of("t.tsv", "age"))
    assert (vectors, set(lacking)) == ({}, {"01", "02"})


@pytest.mark.parametrize("line", ["sep=,", '"sep=;"'])
def test_a_line_for_a_spreadsheet_is_no_header(tmp_path: Path, line: str) -> None:
    (tmp_path / "t.csv").write_text(f"{line}\nparticipant_id,age\nsub-01,20\n")
    with pytest.raises(TableError) as caught:
        values_of(tmp_path, "t.csv", "age")
    assert (caught.value.kind, caught.value.line) == ("header", 1)


@pytest.mark.parametrize("other", ["sub-02", "2.0"])
def test_a_table_of_sessions_of_another_participant_leaves_out_its_own(
    tmp_path: Path, other: str
) -> None:
    for label, named in {"01": "1", "02": "02", "03": other}.items():
        folder = tmp_path / f"sub-{label}"
        folder.mkdir()
        rows = f"participant_id\tsession_id\tage\nsub-{named.removeprefix('sub-')}\tses-1\t20\n"
        (folder / f"sub-{label}_sessions.tsv").write_text(rows)
    view = view_of("sub-*/sub-*_sessions.tsv", "age")
    vectors, lacking = read_table(tmp_path, view, by_session=True)
    assert (set(vectors), set(lacking)) == ({"01_ses-1", "02_ses-1"}, {"03"})


def test_a_folder_whose_table_cannot_be_looked_for_leaves_out_its_participant_only(
    tmp_path: Path,
) -> None:
    """The file's name is too long for the file system, as a folder without rights would be."""
    (tmp_path / f"sub-{'a' * 251}").mkdir()
    (tmp_path / "sub-01").mkdir()
    (tmp_path / "sub-01" / "sub-01_sessions.tsv").write_text("session_id\tage\nses-1\t20\n")
    view = view_of("sub-*/sub-*_sessions.tsv", "age")
    vectors, _ = read_table(tmp_path, view, by_session=True)
    assert set(vectors) == {"01_ses-1"}
