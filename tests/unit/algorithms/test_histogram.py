"""The private histogram: against NumPy, and how often its intervals hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release
from consortium.algorithms.histogram import bins_of, read_quantiles
from consortium.errors import StudyError
from consortium.simulation.simulation import Simulation
from consortium.views.column import Column
from site_agent.data.tsv import encode_cell
from tests.support.cases import drive, make_feature_sites, make_feature_study, shape_of, sites_of

HISTOGRAM = REGISTRY["histogram"]
VIEWS = (("x", 2), ("age", 1))
COUNTS = (90, 60, 30, 120)
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def people(seed=0):
    """Ages that gather around two values, between public limits of 0 and 90."""
    generator = np.random.default_rng(seed)
    table = generator.uniform(-1, 1, (3, sum(COUNTS)))
    centres = generator.choice([-0.4, 0.35], sum(COUNTS), p=[0.7, 0.3])
    table[2] = np.clip(centres + 0.15 * generator.standard_normal(sum(COUNTS)), -1, 1)
    return table


def finish(parameters, shape, release):
    run = HISTOGRAM(parameters, shape).run()
    next(run)
    with pytest.raises(StopIteration) as stop:
        run.send(release)
    return stop.value.value


def test_without_noise_it_is_numpys_histogram_and_quantiles():
    table = people()
    table[2, :4] = -1.0, 1.0, 0.0, 0.1  # ends of the range, and edges of bins
    parameters = HISTOGRAM.Parameters(view="age", limits=(0, 90))
    result = drive(HISTOGRAM, parameters, sites_of(table, VIEWS, COUNTS))[2]
    ages = 45 * (table[2] + 1)
    expected, edges = np.histogram(ages, 20, (0, 90))
    assert result.arrays["edges"] == pytest.approx(edges)
    assert [row[2] for row in result.tables["counts"].rows] == pytest.approx(expected)
    exact = np.quantile(ages, LEVELS, method="inverted_cdf")
    for (level, value, low, high), truth in zip(
        result.tables["quantiles"].rows, exact, strict=True
    ):
        assert low <= value <= high
        assert low <= truth <= high
        assert high - low == pytest.approx(4.5), level  # a bin
        assert abs(value - truth) <= 4.5


def entries_of(values, low, high):
    """Return the entries that a site stores for a column's values."""
    column = Column(low=low, high=high)
    return np.array([encode_cell(repr(value), column)[0] for value in values], dtype=np.float32)


@pytest.mark.parametrize(("low", "high", "bins"), [(0, 30, 30), (18, 90, 20), (18, 90, 12)])
def test_every_integer_is_in_numpys_bin(low, high, bins):
    values = np.arange(low, high + 1)
    sites = sites_of(entries_of(values.tolist(), low, high)[None], (("score", 1),), (len(values),))
    parameters = HISTOGRAM.Parameters(view="score", limits=(low, high), bins=bins)
    result = drive(HISTOGRAM, parameters, sites)[2]
    expected = np.histogram(values, bins, (low, high))[0]
    assert [row[2] for row in result.tables["counts"].rows] == pytest.approx(expected)


@given(
    low=st.integers(-500, 500),
    width=st.integers(1, 1_000),
    bins=st.integers(2, 1_000),
    unit=st.sampled_from([1, 2, 4, 10, 100, 1_000]),
)
def test_every_integer_and_decimal_is_in_its_bin_at_every_scale(low, width, bins, unit):
    """The reference computes floor(k bins / width) in integers for k units above ``low``."""
    edges = np.linspace(low / unit, (low + width) / unit, bins + 1)
    values = [(low + step) / unit for step in range(width + 1)]
    expected = [min(step * bins // width, bins - 1) for step in range(width + 1)]
    stored = entries_of(values, low / unit, (low + width) / unit).astype(np.float64)
    assert bins_of(stored, edges).tolist() == expected


def test_a_private_study_finds_both_ages():
    table = np.tile(people(), 10)
    counts = tuple(10 * count for count in COUNTS)
    analysis = {"view": "age", "limits": [0, 90], "bins": 18}
    study = make_feature_study("histogram", VIEWS, analysis, epsilon=1.0)
    result = Simulation(study, sites_of(table, VIEWS, counts), 1).run()
    shares = result.arrays["shares"]
    exact = np.histogram(45 * (table[2] + 1), 18, (0, 90))[0]
    assert {int(np.argmax(shares[:9])), 9 + int(np.argmax(shares[9:]))} == {
        int(np.argmax(exact[:9])),
        9 + int(np.argmax(exact[9:])),
    }
    noise = result.numbers["count_noise"]
    assert np.abs(3000 * shares - exact).max() < 4 * noise < 150
    assert 3000 < result.numbers["persons"] + 40 < 3080


def test_intervals_hold_as_often_as_they_say():
    table, bins, deviation, runs = people(), 20, 0.02, 2_000
    shape = shape_of(sites_of(table, VIEWS, COUNTS))
    parameters = HISTOGRAM.Parameters(view="age", bins=bins, confidence=0.9)
    truth = np.histogram(table[2], bins, (-1, 1))[0] / table.shape[1]
    quantiles = np.quantile(table[2], LEVELS, method="inverted_cdf")
    generator = np.random.default_rng(5)
    counted, held, widths = np.zeros(bins), np.zeros(len(LEVELS)), np.zeros(len(LEVELS))
    for _ in range(runs):
        noisy = truth + deviation * generator.standard_normal(bins)
        arrays = finish(parameters, shape, Release(noisy, deviation, (0, 1, 2, 3))).arrays
        counted += (arrays["low"] <= truth + 1e-12) & (truth <= arrays["high"] + 1e-12)
        _, low, high = arrays["quantiles"].T
        held += (low <= quantiles) & (quantiles <= high)
        widths += (high - low) / runs
    chance = 4 * np.sqrt(0.9 * 0.1 / runs)
    full = truth > 2 * deviation  # of an emptier bin zero, the least count, is in the interval
    assert full.sum() > 5
    assert np.abs(counted / runs - 0.9)[full].max() < chance
    assert (counted / runs).min() > 0.9 - chance
    assert (held / runs).min() > 0.9 - chance
    assert widths.max() < 1.0, "an interval of half the range says nothing"


@pytest.mark.parametrize("share", [0.3, 0.5 - 1e-9, 0.5, 0.5 + 1e-9])
def test_a_quantile_at_the_edge_of_a_bin_is_held_as_often(share):
    # The hardest case: the distribution's step at the quantile is in doubt on one side alone.
    generator, runs, held = np.random.default_rng(7), 4_000, 0
    truth = np.array([share, 0.0, 1.0 - share, 0.0])
    true_bin = 0 if share >= 0.5 else 2
    edges = np.arange(5.0)
    for _ in range(runs):
        noise = 0.05 * generator.standard_normal(4)
        shares = truth + noise - noise.mean()
        ((_, low, high),) = read_quantiles(shares, np.array([0.5]), edges, 1.6449 * 0.05)
        held += low <= true_bin and true_bin + 1 <= high
    assert held / runs > 0.9 - 4 * np.sqrt(0.09 / runs)


def test_sites_that_dropped_out_are_not_counted():
    shape = shape_of(sites_of(people(), VIEWS, COUNTS))
    parameters = HISTOGRAM.Parameters(view="age", bins=2)
    result = finish(parameters, shape, Release(np.array([0.25, 0.75]), 0.0, (0, 3)))
    assert [row[2] for row in result.tables["counts"].rows] == [52.5, 157.5]


def test_one_person_in_another_bin_moves_the_statistic_by_all_of_its_sensitivity():
    one = np.zeros((1, 4))
    other = np.array([[0.9, 0.0, 0.0, 0.0]])
    sites = [sites_of(table, (("x", 1),), (4,))[0] for table in (one, other)]
    plan, query = HISTOGRAM(HISTOGRAM.Parameters(view="x", bins=4), shape_of(sites)), Query("", "")
    (release,) = plan.planned()
    bound, local = release.bound, HISTOGRAM.statistics[release.statistic]
    before, after = (local(plan, site, query, bound) for site in sites)
    assert np.linalg.norm(after - before) == pytest.approx(bound.sensitivity(4))


def test_what_does_not_fit_is_refused():
    shape = shape_of(make_feature_sites(VIEWS))
    for analysis, message in (
        ({"view": "height"}, "no view has the name 'height'"),
        ({"view": "x", "entry": 3}, "has 2 entries, and 3 is asked for"),
    ):
        with pytest.raises(StudyError, match=message):
            HISTOGRAM(HISTOGRAM.Parameters(**analysis), shape).planned()
    for wrong in ({"limits": (1, 1)}, {"quantiles": (1.0,)}, {"bins": 1}):
        with pytest.raises(ValidationError):
            HISTOGRAM.Parameters(view="x", **wrong)


@pytest.mark.parametrize(("deviation", "words"), [(0.01, "counted to within"), (2.0, "Nothing")])
def test_the_headline_says_how_near_the_counts_are(deviation, words):
    parameters = HISTOGRAM.Parameters(view="age", bins=4)
    shape = shape_of(make_feature_sites(VIEWS, persons=(50, 50)))
    shares = np.array([0.1, 0.4, 0.4, 0.1])
    result = finish(parameters, shape, Release(shares, deviation))
    assert words in result.captions.headline
    half = 1.959964 * deviation * np.sqrt(3 / 4) * 100
    assert f"{half:.3g} of 100 participants" in result.captions.headline
