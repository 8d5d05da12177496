"""No analysis tells tales: a few repetitions of each kind of study, held against the truth.

The whole table is `python -m benchmarks.honesty --cells all`. Seeds are fixed: what fails here has
changed, and by more than chance makes of a change.
"""

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.honesty.cells import DATA, FEW, Cell, Outcome
from benchmarks.honesty.table import Row, analyses, outcomes
from consortium.algorithms import REGISTRY

QUICK = ("coordinate", "describe", "glm", "regression", "tensor")
SLOW = ("admm", "group_ica", "ica")
PROMISED, FALSE, ODDS = 0.93, 0.06, 1e-3


def repetitions(name):
    return 8 if name in QUICK else 3


def cells(name):
    """One study of each kind; of what is slow, only that in which nothing is to be found."""
    kinds = DATA[:1] if name in SLOW else DATA
    return [Cell(data, 4.0, 4 * FEW if data == "too few" else 200) for data in kinds]


def objections(rows):
    """What of some cells, each alone and all together, is beyond chance."""
    every = [each for row in rows for each in row.outcomes]
    for told in (*(row.outcomes for row in rows), every):
        false = sum(each.false for each in told)
        if false > binom.ppf(1 - ODDS, len(told), FALSE):
            yield f"{false} of {len(told)} announced what is not there"
        # Intervals of one repetition may be wrong together: it counts as one trial.
        held = [np.mean(each.covered) for each in told if each.covered]
        if held and sum(held) < binom.ppf(ODDS, len(held), PROMISED):
            yield f"the intervals of {len(held)} studies hold {sum(held):.1f} truths"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_analysis_has_a_file_that_holds_it_against_the_truth(name):
    assert name in analyses(), (
        f"Nobody has measured whether '{name}' tells the truth: write "
        f"benchmarks/honesty/{name}.py with a function repetition(cell, rng)."
    )


@pytest.mark.parametrize("name", analyses())
def test_what_is_told_is_true(name):
    seeds = range(repetitions(name))
    rows = [Row(name, cell, outcomes(name, cell, seeds)) for cell in cells(name)]
    assert not list(objections(rows))


@pytest.mark.parametrize("name", analyses())
def test_so_few_repetitions_tell_an_analysis_that_makes_things_up(name):
    true, false = Outcome((True,), False, 0, 0, 0), Outcome((True,), True, 0, 0, 0)
    missing = Outcome((False,), False, 0, 0, 0)
    for tale in (false, missing):
        for bad in range(len(cells(name))):
            rows = [
                Row(name, cell, [tale if place == bad else true] * repetitions(name))
                for place, cell in enumerate(cells(name))
            ]
            assert list(objections(rows))
    assert not list(objections([Row(name, cell, [true] * 3) for cell in cells(name)]))


def test_the_row_counts_what_went_wrong():
    good, bad = Outcome((True, True), False, 1, 1, 1), Outcome((False, True), True, 0, 1, 1)
    row = Row("average", Cell("sites", 4.0, 200), (good, bad))
    assert (row.coverage, row.false, row.power, row.power_pooled) == (0.75, 0.5, 0.5, 1.0)


def test_a_row_tells_nothing_from_hardly_anything():
    no, yes = Outcome((), False, 0, 1, 1), Outcome((), True, 1, 1, 1)
    cell = Cell("sparse effect", 4.0, 200)
    studies, _, *shares = Row("glm", cell, [no] * 300).cells()[4:]
    assert (studies, shares) == ("300", ["0", "0", "1.00"])
    assert Row("glm", cell, [*[no] * 300, yes]).cells()[6:] == (".00", ".00", "1.00")
    assert Row("glm", Cell("no effect", 4.0, 200), [Outcome((), False, 0, 0, 0)]).cells()[7] == "–"
