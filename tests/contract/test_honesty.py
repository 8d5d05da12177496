"""No analysis tells tales: a few repetitions of each kind of study, held against the truth."""

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.honesty.cells import DATA, FEW, Cell, Outcome
from benchmarks.honesty.table import Row, analyses, outcomes
from consortium.algorithms import REGISTRY

REPETITIONS = 3
"""The whole table is `python -m benchmarks.honesty --cells all`."""
PROMISED, FALSE, ODDS = 0.93, 0.06, 1e-4


def short_cell(data):
    return Cell(data, 4.0, 4 * FEW if data == "too few" else 200)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_analysis_has_a_file_that_holds_it_against_the_truth(name):
    assert name in analyses(), (
        f"Nobody has measured whether '{name}' tells the truth: write "
        f"benchmarks/honesty/{name}.py with a function repetition(cell, rng)."
    )


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", analyses())
def test_what_is_told_is_true(name, data):
    cell = short_cell(data)
    row = Row(name, cell, outcomes(name, cell, range(REPETITIONS)))
    false = sum(each.false for each in row.outcomes)
    assert false <= binom.ppf(1 - ODDS, REPETITIONS, FALSE), f"{name} announced what is not there"
    # Intervals of one repetition may be wrong together: as many trials count as there are of these.
    held = [np.mean(each.covered) for each in row.outcomes if each.covered]
    if held:
        trials = len(held)
        assert sum(held) >= binom.ppf(ODDS, trials, PROMISED), f"{name} misses the truth"


def test_the_row_counts_what_went_wrong():
    good, bad = Outcome((True, True), False, 1, 1, 1), Outcome((False, True), True, 0, 1, 1)
    row = Row("average", short_cell("sites"), (good, bad))
    assert (row.coverage, row.false, row.power, row.power_pooled) == (0.75, 0.5, 0.5, 1.0)
