"""Curves from noisy counts, compared with the population's survival."""

import numpy as np
import pytest

from consortium.algorithms.describe.kernels.life_table import estimate_survival

BINS, MEAN_TIME, CRITICAL = 10, 8.0, 1.959964


def counted(persons, generator):
    """Return events, losses and the number that is followed to the end, by year."""
    times = generator.exponential(MEAN_TIME, persons)
    ends = generator.uniform(0, 20, persons)
    seen = np.minimum(times, ends)
    inside = seen < BINS
    events = np.histogram(seen[inside & (times <= ends)], BINS, (0, BINS))[0]
    lost = np.histogram(seen[inside & (times > ends)], BINS, (0, BINS))[0]
    return events.astype(float), lost.astype(float), float((~inside).sum())


@pytest.mark.parametrize(("persons", "deviation"), [(1000, 0.0), (1000, 5.0), (4000, 20.0)])
def test_intervals_hold_as_often_as_they_say(persons, deviation):
    generator = np.random.default_rng(1)
    truth = np.exp(-np.arange(1, BINS + 1) / MEAN_TIME)
    held, reported = np.zeros(BINS), np.zeros(BINS)
    for _ in range(400):
        events, lost, beyond = counted(persons, generator)
        noise = deviation * generator.standard_normal(2 * BINS + 1)
        found = estimate_survival(
            events=events + noise[:BINS],
            lost=lost + noise[BINS:-1],
            beyond=beyond + noise[-1],
            deviation=deviation,
            critical=CRITICAL,
        )
        known = ~np.isnan(found.shares)
        reported += known
        held += known & (found.low <= truth) & (truth <= found.high)
    assert reported[:5].min() > 390
    often = reported > 100
    assert (held / np.maximum(reported, 1))[often].min() > 0.91


def test_a_curve_falls_and_is_withheld_where_few_are_at_risk():
    generator = np.random.default_rng(2)
    events, lost, beyond = counted(300, generator)
    noise = 15.0 * generator.standard_normal(2 * BINS)
    found = estimate_survival(
        events=events + noise[:BINS],
        lost=lost + noise[BINS:],
        beyond=beyond,
        deviation=15.0,
        critical=CRITICAL,
    )
    known = ~np.isnan(found.shares)
    assert 0 < known.sum() < BINS
    assert (np.diff(found.shares[known]) <= 0).all()
    assert np.isnan(found.low[~known]).all()


def test_derivatives_of_the_noise_are_those_of_differences():
    generator = np.random.default_rng(3)
    events, lost, beyond = counted(2000, generator)
    counts = np.concatenate([events, lost, [beyond]])

    def last_log(values):
        found = estimate_survival(
            events=values[:BINS],
            lost=values[BINS:-1],
            beyond=float(values[-1]),
            deviation=0.0,
            critical=CRITICAL,
        )
        return np.log(found.shares[-1])

    steps = np.eye(len(counts)) * 1e-3
    slopes = [(last_log(counts + step) - last_log(counts - step)) / 2e-3 for step in steps]
    exact, noisy = (
        estimate_survival(
            events=events, lost=lost, beyond=beyond, deviation=deviation, critical=1.0
        )
        for deviation in (0.0, 1.0)
    )
    squares = [np.log(each.high[-1] / each.shares[-1]) ** 2 for each in (exact, noisy)]
    assert squares[1] - squares[0] == pytest.approx(np.sum(np.square(slopes)), rel=1e-5)
