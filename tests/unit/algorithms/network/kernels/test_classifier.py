"""Gradients against finite differences, and clipping against persons one by one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms.network.kernels import classifier
from consortium.algorithms.network.kernels.classifier import (
    initial_parameters,
    layers,
    parameter_count,
    predict,
    sum_clipped_gradients,
)
from consortium.kernels.tiles import TILE

SHAPES = [(3, 1), (4, 5, 1), (4, 5, 3), (3, 6, 4, 2)]


def problem(sizes, count=7, seed=0):
    generator = np.random.default_rng(seed)
    inputs = generator.standard_normal((sizes[0], count))
    classes = generator.integers(max(sizes[-1], 2), size=count)
    labels = np.eye(sizes[-1])[:, classes] if sizes[-1] > 1 else classes[None].astype(float)
    parameters = initial_parameters(sizes, seed)
    parameters += 0.1 * generator.standard_normal(parameters.shape)
    return parameters, inputs, labels


def loss(parameters, sizes, inputs, labels):
    """Cross-entropy summed over persons."""
    found = predict(parameters, sizes, inputs)
    if sizes[-1] == 1:
        return -np.sum(labels * np.log(found) + (1 - labels) * np.log(1 - found))
    return -np.sum(labels * np.log(found))


@pytest.mark.parametrize("sizes", SHAPES)
def test_gradients_are_those_of_finite_differences(sizes):
    parameters, inputs, labels = problem(sizes)
    found = sum_clipped_gradients(parameters, sizes, inputs, labels, 1e9)
    for index in range(len(parameters)):
        step = np.zeros_like(parameters)
        step[index] = 1e-6
        up, down = (loss(parameters + s * step, sizes, inputs, labels) for s in (1, -1))
        assert found[index] == pytest.approx((up - down) / 2e-6, abs=1e-5)


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("bound", [0.05, 1.0])
def test_the_sum_is_that_of_persons_clipped_one_by_one(sizes, bound):
    parameters, inputs, labels = problem(sizes, seed=1)
    expected = np.zeros_like(parameters)
    for n in range(inputs.shape[1]):
        own = inputs[:, n : n + 1], labels[:, n : n + 1]
        gradient = sum_clipped_gradients(parameters, sizes, *own, 1e9)
        expected += gradient * min(1.0, bound / np.linalg.norm(gradient))
    found = sum_clipped_gradients(parameters, sizes, inputs, labels, bound)
    assert found == pytest.approx(expected, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=5))
def test_layers_are_the_whole_vector(sizes):
    parameters = np.arange(float(parameter_count(sizes)))
    matrices = layers(parameters, sizes)
    assert [m.shape for m in matrices] == [(after, before + 1) for before, after in pairwise(sizes)]
    assert np.array_equal(np.concatenate([m.ravel() for m in matrices]), parameters)


def test_more_persons_than_a_chunk():
    parameters, inputs, labels = problem((4, 5, 1), count=5000)
    whole = sum_clipped_gradients(parameters, (4, 5, 1), inputs, labels, 0.3)
    parts = [
        sum_clipped_gradients(parameters, (4, 5, 1), inputs[:, p], labels[:, p], 0.3)
        for p in (slice(0, 1234), slice(1234, None))
    ]
    assert whole == pytest.approx(sum(parts), abs=1e-9)


def test_an_overflow_counts_as_nobody():
    parameters, inputs, labels = problem((4, 5, 1))
    alone = sum_clipped_gradients(10 * parameters, (4, 5, 1), inputs[:, 1:], labels[:, 1:], 1.0)
    for value in (1e308, np.inf, np.nan):
        inputs[:, 0] = value * np.array([1, -1, 1, -1])
        found = sum_clipped_gradients(parameters * 10, (4, 5, 1), inputs, labels, 1.0)
        assert found == pytest.approx(alone)


def test_first_weights_are_public_and_of_the_right_size():
    first = layers(initial_parameters((400, 300, 2), 5), (400, 300, 2))[0]
    assert np.array_equal(first[:, 0], np.zeros(300))
    assert first[:, 1:].std() == pytest.approx(np.sqrt(2 / 400), rel=0.02)
    same = initial_parameters((400, 300, 2), 5)
    assert np.array_equal(same, initial_parameters((400, 300, 2), 5))
    assert not np.array_equal(same, initial_parameters((400, 300, 2), 6))


def rounding_made_large(hidden, generator):
    """Weights under which only the rounding of a cancelling sum is left, times 1e22.

    The first layer's weights are zero, so that all persons' hidden values are alike; the second
    layer's cancel on them.
    """
    first = np.hstack([generator.uniform(0.5, 1.5, (hidden[0], 1)), np.zeros((hidden[0], 4))])
    weights = generator.standard_normal((hidden[1], hidden[0]))
    weights -= np.outer(weights @ first[:, 0], first[:, 0]) / (first[:, 0] @ first[:, 0])
    second = np.hstack([np.zeros((hidden[1], 1)), 1e22 * weights])
    last = np.hstack([np.zeros((1, 1)), generator.standard_normal((1, hidden[1]))])
    return np.concatenate([each.ravel() for each in (first, second, last)]), (4, *hidden, 1)


@pytest.mark.parametrize("hidden", [(16, 16), (400, 16)])
def test_a_person_who_changes_sides_changes_nobody_else(hidden):
    generator = np.random.default_rng(0)
    parameters, sizes = rounding_made_large(hidden, generator)
    inputs, labels = generator.standard_normal((4, 200)), generator.integers(0, 2, (1, 200)) * 1.0
    counted = generator.random(200) < 0.8
    counted[-1] = True
    fewer = counted.copy()
    fewer[-1] = False
    one, other = (
        sum_clipped_gradients(parameters, sizes, inputs, labels, 1.0, who)
        for who in (counted, fewer)
    )
    assert np.linalg.norm(one - other) <= 1 + 1e-9


def test_who_does_not_count_goes_through_every_product_all_the_same(monkeypatch):
    widths, real = [], classifier._forward

    def noted(matrices, inputs):
        widths.append(inputs.shape[1])
        return real(matrices, inputs)

    monkeypatch.setattr(classifier, "_forward", noted)
    generator = np.random.default_rng(1)
    parameters = initial_parameters((4, 5, 1), 0)
    inputs, labels = generator.standard_normal((4, 50)), np.ones((1, 50))
    counted = generator.random(50) < 0.5
    found = sum_clipped_gradients(parameters, (4, 5, 1), inputs, labels, 0.3, counted)
    assert widths == [TILE]
    own = sum_clipped_gradients(parameters, (4, 5, 1), inputs[:, counted], labels[:, counted], 0.3)
    np.testing.assert_allclose(found, own, atol=1e-12)
