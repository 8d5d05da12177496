"""Events and channels tables of a recording."""

from pathlib import Path

import pytest

from consortium.errors import DataError
from site_agent.eeg.tables import read_channels, read_events


def events(tmp_path: Path, text: str):
    path = tmp_path / "sub-01_events.tsv"
    path.write_text(text)
    return read_events(path)


def test_lines_without_onset_are_counted(tmp_path: Path) -> None:
    table = events(tmp_path, "onset\tduration\ttrial_type\nn/a\t0\ta\n-1\t0\tb\n2\tn/a\tc\n")
    assert table.skipped == 2
    assert [(x.onset, x.duration, x.name) for x in table.markers] == [(2.0, 0.0, "c")]


def test_any_column_may_state_a_bad_span_or_a_break(tmp_path: Path) -> None:
    table = events(
        tmp_path,
        "onset\tduration\ttrial_type\tvalue\n1\t0\tn/a\tboundary\n2\t1\tblink\tBAD\n3\t0\ta\t7\n",
    )
    assert [x.name for x in table.markers] == ["boundary", "BAD", "a"]


def test_cells_and_headers_are_stripped(tmp_path: Path) -> None:
    table = events(tmp_path, "Onset \t Trial_type\n 1.5 \t a b \n")
    assert [(x.onset, x.name) for x in table.markers] == [(1.5, "a b")]


@pytest.mark.parametrize("onset", ["", "soon", "inf", "nan", "1,5"])
def test_an_onset_that_is_no_number_is_an_error_with_its_line(tmp_path: Path, onset: str) -> None:
    with pytest.raises(DataError, match="line 2: onset must be a number of seconds or n/a"):
        events(tmp_path, f"onset\ttrial_type\n{onset}\ta\n")


def test_channels_are_found_in_any_way_of_writing(tmp_path: Path) -> None:
    path = tmp_path / "sub-01_channels.tsv"
    path.write_text("name\tunits\tstatus\nCZ\tµV\tBad\nPz\tV\tgood\nPz\tV\tbad\nO1\tmV\tn/a\n")
    table = read_channels(path)
    assert table.bad(["EEG Cz-REF", "Pz", "O1", "O2"]) == {"EEG Cz-REF", "Pz"}
    assert [table.unit(name) for name in ("Cz", "o1", "O2")] == ["µV", "mV", None]
    assert read_channels(None).bad(["Cz"]) == frozenset()


def test_a_channels_table_without_names_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "sub-01_channels.tsv"
    path.write_text("channel\tstatus\nCz\tbad\n")
    with pytest.raises(DataError, match="must have the column name"):
        read_channels(path)
