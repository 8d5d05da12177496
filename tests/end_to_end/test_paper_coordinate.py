"""The published mechanism that `coordinate` is compared with, corrected and as printed."""

import numpy as np
import pytest

from benchmarks.replication.coordinate import (
    channel,
    mean_mechanism,
    published_levels,
    tight_levels,
)
from consortium.privacy.bayesian import bayesian_level


@pytest.mark.parametrize(("printed", "factor"), [(False, 1.0), (True, 2.0)])
@pytest.mark.parametrize("size", [1, 3, 10])
def test_the_corrected_channel_is_unbiased_and_the_printed_one_twice_too_large(
    size, printed, factor
):
    generator = np.random.default_rng(0)
    person = generator.uniform(-1, 1, size)
    many = np.tile(person, (200_000, 1))
    found = channel(many, 2.0, generator, printed=printed)
    error = found.std(axis=0) / np.sqrt(len(many))
    assert np.abs(found.mean(axis=0) - factor * person).max() < 4.5 * error.max()


def test_the_channel_keeps_its_level():
    # For one entry the output is ±B: its odds are at most e^α apart, and reach that.
    generator, count = np.random.default_rng(1), 400_000
    odds = [(channel(np.full((count, 1), x), 1.0, generator) > 0).mean() for x in (1.0, -1.0, 0.3)]
    assert odds[0] / odds[1] == pytest.approx(np.e, rel=0.02)
    assert odds[1] < odds[2] < odds[0]


def test_equal_neighbours_are_skipped():
    generator = np.random.default_rng(2)
    x = generator.uniform(-1, 1, (20_000, 4))
    found = mean_mechanism(x, np.array([3.0, 3.0, 3.0, 6.0]), generator)
    assert found == pytest.approx(x.mean(axis=0), abs=0.2)


@pytest.mark.parametrize("q", [0.0, 0.003, 0.05, 0.5])
def test_the_levels_keep_the_promise_of_the_experiment(q):
    for levels in (published_levels(q), tight_levels(q)):
        assert bayesian_level(levels[0], levels[-1], q) <= 0.2 + 1e-9
        assert levels[-1] <= 2.0
