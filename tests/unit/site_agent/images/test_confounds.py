"""Confounds tables: columns by name and prefix, fMRIPrep's first line, and what is missing."""

from pathlib import Path

import numpy as np
import pytest

from consortium.errors import DataError
from site_agent.images.confounds import read_confounds

TABLE = """trans_x\ttrans_x_derivative1\ttrans_y\tcsf
0.5\tn/a\t1\t900
0.25\t-0.25\t2\t901.5
-1e-3\t0.125\t3\t899
"""


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "table.tsv"
    path.write_text(TABLE)
    return path


def test_columns_by_name_and_prefix(table):
    matrix = read_confounds(table, ["csf", "trans_*", "trans_y"], 3)
    expected = [[900, 0.5, 0, 1], [901.5, 0.25, -0.25, 2], [899, -1e-3, 0.125, 3]]
    np.testing.assert_array_equal(matrix, expected)


def test_windows_line_ends_and_marks_are_read(table):
    table.write_bytes(b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_confounds(table, ["trans_x"], 3)[:, 0], [0.5, 0.25, -1e-3])


@pytest.mark.parametrize(
    ("patterns", "volumes", "words"),
    [
        (["rot_x"], 3, "no column 'rot_x'"),
        (["rot_*"], 3, r"no column 'rot_\*'"),
        (["csf"], 4, "3 lines for 4 volumes"),
        (["csf"], 2, "3 lines for 2 volumes"),
    ],
)
def test_what_is_missing_is_named(table, patterns, volumes, words):
    with pytest.raises(DataError, match=f"table.tsv.*{words}"):
        read_confounds(table, patterns, volumes)


def test_who_has_no_outlier_volume_has_no_column_for_one(table):
    patterns = ["csf", "motion_outlier*", "non_steady_state_outlier*"]
    np.testing.assert_array_equal(
        read_confounds(table, patterns, 3), read_confounds(table, ["csf"], 3)
    )
    assert read_confounds(table, ["motion_outlier*"], 3).shape == (3, 0)


@pytest.mark.parametrize("text", ["n/a", "nan", "inf", "", "two"])
def test_no_number_after_the_first_line_is_named(table, text):
    table.write_text(TABLE.replace("901.5", text))
    with pytest.raises(DataError, match=r"table\.tsv.*'csf' for volume 2"):
        read_confounds(table, ["csf"], 3)


def test_an_infinite_first_value_is_no_missing_one(table):
    table.write_text(TABLE.replace("n/a", "inf"))
    with pytest.raises(DataError, match="volume 1"):
        read_confounds(table, ["trans_x_derivative1"], 3)


def test_short_lines_lack_a_number(table):
    table.write_text(TABLE.replace("\t899", ""))
    with pytest.raises(DataError, match="volume 3"):
        read_confounds(table, ["csf"], 3)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00csf"])
def test_foreign_files_are_named(table, content):
    table.write_bytes(content)
    with pytest.raises(DataError, match=r"table\.tsv"):
        read_confounds(table, ["csf"], 3)
    table.unlink()
    with pytest.raises(DataError, match=r"table\.tsv"):
        read_confounds(table, ["csf"], 3)
