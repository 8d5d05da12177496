"""Tables as TSV files: where a voxel is, and what columns hold."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from consortium.algorithms.base import Result, Table
from consortium.algorithms.findings import Finding
from consortium.report.tables import cell_json, cell_text, plain_table, with_places, write_tables
from consortium.space.atlas import Regions
from consortium.space.study_space import Space
from tests.support.report_samples import box_grid, finished, sample_study

SOUND = Finding(0.31, -0.12, 0.5)
WEAK = Finding(0.1, -0.1, 0.3, "not found")
UNREPORTED = Finding(123.0, 0.0, 456.0, "withheld")
TABLE = Table(
    "Effects.",
    ("view", "entry", "t"),
    (("faces", "5", 3.0), ("regions", "insula", 2.5), ("faces", "712", -1.0)),
    voxels_of=("faces",),
    about={"t": "Effect over its error."},
)


def test_the_page_writes_a_finding_with_its_interval_and_says_what_is_not_found():
    assert cell_text(SOUND) == "0.31 (−0.12 to 0.5)"
    assert cell_text(WEAK) == "0.1 (−0.1 to 0.3), not found"
    assert cell_text(Finding(-2.0)) == "−2"
    assert [cell_text(cell) for cell in ("a-b", 3, -0.5)] == ["a-b", "3", "−0.5"]


def test_a_withheld_number_is_missing_and_its_state_says_so():
    table = plain_table(Table("", ("x", "p"), ((SOUND, Finding(0.01)), (UNREPORTED, UNREPORTED))))
    assert table.columns == ("x", "x low", "x high", "x state", "p", "p state")
    assert table.rows[0] == (0.31, -0.12, 0.5, "found", 0.01, "found")
    assert table.rows[1] == ("n/a", "n/a", "n/a", "withheld", "n/a", "withheld")
    assert cell_text(UNREPORTED) == cell_json(UNREPORTED) == "withheld"


def test_a_column_of_intervals_becomes_four_and_any_other_stays_one():
    table = plain_table(
        Table("c", ("name", "r", "p"), (("a", SOUND, Finding(0.02)), ("b", WEAK, 0.4)))
    )
    assert table.columns == ("name", "r", "r low", "r high", "r state", "p")
    assert table.rows == (
        ("a", 0.31, -0.12, 0.5, "found", 0.02),
        ("b", 0.1, -0.1, 0.3, "not found", 0.4),
    )


def test_json_of_a_finding_is_strict():
    assert cell_json(WEAK) == {"value": 0.1, "low": -0.1, "high": 0.3, "state": "not found"}
    assert cell_json(Finding(2.0)) == 2.0
    json.dumps([cell_json(x) for x in (SOUND, WEAK, UNREPORTED, "a", 1)], allow_nan=False)


def written(folder: Path, space: Space, table: Table = TABLE) -> tuple[list[list[str]], dict]:
    """Lines of a table, and its sidecar."""
    run = finished(sample_study(), space, Result({}, tables={"contrast-age": table}))
    (path,) = write_tables(folder, run)
    with path.open(encoding="utf-8", newline="") as text:
        lines = list(csv.reader(text, delimiter="\t"))
    return lines, json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def test_a_voxel_has_its_place_in_mm(tmp_path):
    grid = box_grid()
    lines, about = written(tmp_path, Space(grid))
    assert lines[0] == ["view", "entry", "x", "y", "z", "t"]
    for line, voxel in ((lines[1], 4), (lines[3], 711)):
        place = np.array([float(number) for number in line[2:5]])
        assert place == pytest.approx(grid.coordinates[voxel])
        index = np.linalg.solve(grid.affine, [*place, 1.0])[:3].round().astype(int)
        assert (np.argwhere(grid.mask)[voxel] == index).all()
    assert lines[2] == ["regions", "insula", "n/a", "n/a", "n/a", "2.5"]
    assert about["Description"] == "Effects."
    assert about["x"]["Units"] == "mm"
    assert "MNI152NLin2009cAsym" in about["x"]["Description"]
    assert about["t"] == {"Description": "Effect over its error."}


def test_what_is_no_voxel_has_no_place(tmp_path):
    grid = box_grid()
    columns = Table(TABLE.caption, TABLE.columns, TABLE.rows)
    lines, about = written(tmp_path / "columns", Space(grid), columns)
    assert lines[0] == ["view", "entry", "t"]
    assert about == {"Description": "Effects."}
    regions = Regions(csr_matrix(np.full((1, grid.features), 1 / grid.features)))
    lines, about = written(tmp_path / "regions", Space(grid, regions))
    assert lines[0] == ["view", "entry", "t"]
    assert "x" not in about


def test_every_voxel_of_a_whole_view_is_where_its_image_has_it():
    grid = box_grid()
    rows = tuple(("faces", str(voxel + 1), 0.0) for voxel in range(grid.features))
    placed = with_places(Table("", ("view", "entry", "t"), rows, voxels_of=("faces",)), Space(grid))
    assert np.array([row[2:5] for row in placed.rows]) == pytest.approx(grid.coordinates)
