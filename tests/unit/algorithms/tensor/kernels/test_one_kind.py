"""Limits of second moments of fewer components."""

import numpy as np

from consortium.algorithms.tensor.kernels.one_kind import (
    LEVEL,
    fewer_topics,
    independent_entries,
    limit_of,
    linked_eigenvalue,
)


def test_independent_entries_exceed_their_limit_as_often_as_it_says():
    variances, many = np.array([0.09, 0.02, 0.02, 0.01]), 300
    for units, deviation in ((1000.0, 0.0), (1000.0, 0.002), (1e9, 0.002)):
        moments = independent_entries(np.diag(variances), variances, units, deviation, 0)
        limit = limit_of(lambda drawn: linked_eigenvalue(drawn, 1), moments)
        beyond = sum(linked_eigenvalue(next(moments), 1) > limit for _ in range(many))
        assert beyond / many < LEVEL + 4 * np.sqrt(LEVEL / many)
        assert limit > 0


def test_linked_entries_exceed_the_limit():
    covariance = 0.02 * np.eye(4) + 0.01
    simulated = independent_entries(covariance, np.diag(covariance), 1000.0, 0.001, 0)
    wide = independent_entries(np.diag(np.diag(covariance)), np.diag(covariance), 1e3, 0.001, 0)
    limit = limit_of(lambda drawn: linked_eigenvalue(drawn, 1), wide)
    assert linked_eigenvalue(next(simulated), 1) > limit


def test_chance_of_words_of_one_topic_is_that_of_their_number():
    frequencies = np.array([0.4, 0.3, 0.2, 0.1])
    moment = np.outer(frequencies, frequencies)
    spreads = []
    for units in (500.0, 50_000.0):
        drawn = fewer_topics(moment, frequencies, 1, units, 0.0, 0)
        spreads.append(np.std([next(drawn)[0, 0] for _ in range(100)]))
    # Of three pairs of words of a participant: Var = (p² - p⁴ + 4 (p³ - p⁴) / 2) / (3 n).
    expected = np.sqrt((0.4**2 - 0.4**4 + 2 * (0.4**3 - 0.4**4)) / 1500)
    assert np.isclose(spreads[0], expected, rtol=0.25)
    assert np.isclose(spreads[0] / spreads[1], 10.0, rtol=0.35)
