"""Cells as page, TSV and JSON write them."""

import json

from consortium.algorithms.base import Table
from consortium.algorithms.findings import Finding
from consortium.report.cells import cell_json, cell_text, plain_table

SOUND = Finding(0.31, -0.12, 0.5)
WEAK = Finding(0.1, -0.1, 0.3, "not found")
UNREPORTED = Finding(123.0, 0.0, 456.0, "withheld")


def test_the_page_writes_a_finding_with_its_interval_and_says_what_is_not_found():
    assert cell_text(SOUND) == "0.31 (−0.12 to 0.5)"
    assert cell_text(WEAK) == "0.1 (−0.1 to 0.3), not found"
    assert cell_text(Finding(-2.0)) == "−2"
    assert [cell_text(cell) for cell in ("a-b", 3, -0.5)] == ["a-b", "3", "−0.5"]


def test_what_is_not_told_is_words_everywhere_and_never_a_number():
    table = plain_table(Table("", ("x", "p"), ((SOUND, Finding(0.01)), (UNREPORTED, UNREPORTED))))
    assert table.rows[1] == ("withheld",) * 5
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
