"""The first figures of a page: how many results are found, in words that a board reads."""

import pytest

from consortium.algorithms.base import Table
from consortium.algorithms.findings import Finding
from consortium.report.sections.verdict import rows_found

FOUND = Finding(1.0, 0.5, 1.5)
NOT_FOUND = Finding(0.1, -0.4, 0.6, "not found")
WITHHELD = Finding()


def of(*findings):
    """A table with one result a row, after its name."""
    rows = tuple((f"r{k}", each) for k, each in enumerate(findings))
    return Table("results", ("entry", "value"), rows)


def test_results_beyond_the_noise_are_counted():
    assert rows_found([of(FOUND, NOT_FOUND, WITHHELD)]) == (("Results found", "1 of 3"),)


def test_results_without_a_test_are_counted_if_they_are_reported():
    assert rows_found([of(FOUND, FOUND, WITHHELD)]) == (("Results reported", "2 of 3"),)


def test_a_column_of_decisions_is_counted():
    rows = (("a", "yes"), ("b", "no"), ("c", "n/a"))
    assert rows_found([Table("effects", ("entry", "found"), rows)]) == (
        ("Results found", "1 of 3"),
    )


@pytest.mark.parametrize(
    "table",
    [
        of(FOUND),
        Table("sizes", ("entry", "value"), (("a", 1.0), ("b", 2.0))),
        Table("voxels", ("entry", "found"), (("1", "yes"), ("2", "no")), voxels_of=("t1",)),
        of(*[FOUND] * 1_000),
    ],
)
def test_single_numbers_and_tables_of_a_part_are_not_counted(table):
    assert rows_found([table]) == ()
