"""The published protocol that `summarize` is compared with: its auction, hash and accounting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.replication.summarize import distance, made
from benchmarks.replication.summarize_published import (
    Mwem,
    ask_probability,
    loss_tail,
    printed_epsilon,
    printed_probability,
    protocol,
)


@given(st.integers(1, 50), st.floats(0.01, 3.0), st.floats(0.0, 60.0))
def test_the_corrected_auction_keeps_its_level_on_both_answers(rank, level, first):
    one, next_one = (ask_probability(r, level, first) for r in (rank, rank + 1))
    assert one / next_one <= math.exp(level) * (1 + 1e-9)
    # Of 'not asked' by the odds, which don't lose digits near one.
    left, right = (1 / (1 + math.exp(-level * (r - first))) for r in (rank, rank + 1))
    assert right / left <= math.exp(level) * (1 + 1e-9)


def test_the_printed_auction_tells_the_second_for_sure_that_it_is_not_the_best():
    best, second = (1 - printed_probability(rank, 0.1) for rank in (1, 2))
    assert best == 0
    assert second > 0  # a ratio without bound


def test_first_sets_how_surely_the_best_is_asked():
    assert ask_probability(1, 0.5, 1 + math.log(9) / 0.5) == pytest.approx(0.9)


def test_the_accounting_agrees_with_a_library():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    common = pytest.importorskip("dp_accounting.pld.common")
    law = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.1, 0.0))
    expected = law.self_compose(50).get_delta_for_epsilon(2.0)
    assert loss_tail(2.0, [(50, 0.1)]) == pytest.approx(expected, rel=0.01)
    both = law.self_compose(20).compose(
        pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.2, 0.0)).self_compose(10)
    )
    expected = both.get_delta_for_epsilon(2.0)
    assert loss_tail(2.0, [(10, 0.2), (20, 0.1)]) == pytest.approx(expected, rel=0.01)


def test_the_printed_hash_costs_more_than_it_says():
    assert printed_epsilon() > 3 * 1.4


def test_the_hash_comes_near_the_mean_without_noise():
    generator = np.random.default_rng(0)
    features = generator.uniform(-0.5, 1, (50, 4)) / np.sqrt(2)
    mwem = Mwem(4, 1e6, generator)
    mwem.release(features, 400)
    found = mwem.release(features, 100)
    assert found == pytest.approx(features.mean(axis=0), abs=0.01 / np.sqrt(2))


def test_the_greedy_choice_is_of_the_consumers_kind_with_the_corrected_sign_only():
    at = made(np.random.default_rng(1))
    generator, goal = np.random.default_rng(2), at.goal.mean(axis=0)

    def best(rank):
        return float(rank == 1)

    found, asked = protocol(at, goal, lambda s: s.mean(axis=0), best, 40, generator)
    wrong, _ = protocol(at, -goal, lambda s: -s.mean(axis=0), best, 40, generator)
    assert asked == len(found)
    assert distance(found, at.consumer) < distance(at.persons[1], at.consumer)
    assert distance(wrong, at.consumer) > distance(at.persons[1], at.consumer)
