"""Between template and release: never worse than the better of the two, and honest about it."""

import numpy as np
import pytest

from consortium.algorithms.template_networks.kernels.template_shrinkage import Agreement, shrink

STRENGTH, NETWORKS, RUNS = 0.5, 6, 200
RIGHT, NEARLY, HALF, WRONG = 1.0, 0.97, np.sqrt(0.5), 0.0


def world(size, agreement):
    """Templates, and maps that agree with them so far."""
    generator = np.random.default_rng(7)
    templates = np.linalg.qr(generator.standard_normal((size, NETWORKS)))[0]
    templates = templates + 0.1 * generator.standard_normal(templates.shape) / np.sqrt(size)
    templates /= np.linalg.norm(templates, axis=0)
    span = np.linalg.qr(templates)[0]
    other = generator.standard_normal(templates.shape)
    other -= span @ (span.T @ other)
    other /= np.linalg.norm(other, axis=0)
    return templates, STRENGTH * (agreement * templates + np.sqrt(1 - agreement**2) * other)


def releases(truth, deviation, runs=RUNS):
    generator = np.random.default_rng(0)
    for _ in range(runs):
        yield truth + deviation * generator.standard_normal(truth.shape)


def estimate(found, templates):
    return found.strengths * templates + found.moved


@pytest.mark.parametrize("agreement", [RIGHT, NEARLY, HALF, WRONG])
@pytest.mark.parametrize("deviation", [0.005, 0.04])
@pytest.mark.parametrize("size", [60, 250])
def test_it_is_never_worse_than_the_better_of_template_and_release(size, deviation, agreement):
    templates, truth = world(size, agreement)
    errors = np.zeros(3)
    for released in releases(truth, deviation, 1000):
        strengths = np.sum(templates * released, axis=0)  # the template, as strong as released
        shrunk = estimate(shrink(released, templates, deviation), templates)
        guesses = strengths * templates, released, shrunk
        errors += [np.sum((guess - truth) ** 2) for guess in guesses]
    template, release, shrunk = errors
    assert shrunk <= 1.02 * min(template, release)


def test_it_is_much_better_than_both_where_both_are_half_right():
    templates, truth = world(250, HALF)
    deviation = 0.02
    released = next(releases(truth, deviation))
    found = estimate(shrink(released, templates, deviation), templates)
    best = min(np.sum((guess - truth) ** 2) for guess in (STRENGTH * HALF * templates, released))
    assert np.sum((found - truth) ** 2) < 0.7 * best


@pytest.mark.parametrize("deviation", [0.005, 0.02, 0.1])
def test_where_the_template_is_right_it_is_said_to_be_all(deviation):
    templates, truth = world(250, RIGHT)
    told = [shrink(released, templates, deviation).kept for released in releases(truth, deviation)]
    assert np.mean(np.array(told) > 0) < 0.005


@pytest.mark.parametrize(("agreement", "deviation"), [(HALF, 0.01), (WRONG, 0.02), (NEARLY, 0.005)])
def test_expected_correlation_and_errors_are_what_is_true(agreement, deviation):
    templates, truth = world(250, agreement)
    expected, true, covered, squares, told = [], [], [], [], []
    for released in releases(truth, deviation):
        found = shrink(released, templates, deviation)
        maps = estimate(found, templates)
        cosines = np.sum(maps * truth, axis=0) / np.linalg.norm(maps, axis=0) / STRENGTH
        low, value, high = found.expected
        expected.append(value)
        true.append(cosines)
        covered.append((low <= cosines) & (cosines <= high))
        beside = (maps - truth) - found.span @ (found.span.T @ (maps - truth))
        squares.append(np.sum(beside**2, axis=0))
        told.append((len(truth) - NETWORKS) * found.errors**2)
    assert np.mean(expected) == pytest.approx(np.mean(true), abs=0.01)
    assert 0.93 <= np.mean(covered) <= 0.98
    assert np.sqrt(np.mean(told)) == pytest.approx(np.sqrt(np.mean(squares)), rel=0.1)


@pytest.mark.parametrize("deviation", [0.04, 0.045, 0.05])
def test_intervals_hold_where_a_deviation_only_just_stands_out(deviation):
    """There the strength of the template is as unsure as what is beside it."""
    templates, truth = world(60, HALF)
    covered, kept = [], []
    for released in releases(truth, deviation, 400):
        found = shrink(released, templates, deviation)
        maps = estimate(found, templates)
        cosines = np.sum(maps * truth, axis=0) / np.linalg.norm(maps, axis=0) / STRENGTH
        low, _, high = found.expected
        covered.append((low <= cosines) & (cosines <= high))
        kept.append(found.kept > 0)
    assert 0.93 <= np.mean(covered) <= 0.98
    assert 0.1 < np.mean(kept) < 0.97


@pytest.mark.parametrize("agreement", [NEARLY, HALF, WRONG])
@pytest.mark.parametrize("deviation", [0.002, 0.01, 0.02])
def test_the_forecast_is_what_comes_out(agreement, deviation):
    templates, truth = world(250, agreement)
    usual = Agreement(250 - NETWORKS, deviation, STRENGTH, agreement)
    cosines, kept = [], []
    for released in releases(truth, deviation):
        found = shrink(released, templates, deviation)
        maps = estimate(found, templates)
        cosines.append(np.sum(maps * truth, axis=0) / np.linalg.norm(maps, axis=0) / STRENGTH)
        kept.append(found.kept > 0)
    assert usual.expected == pytest.approx(np.mean(cosines), abs=0.03)
    assert usual.is_reported == (np.mean(kept) > 0.5)


def test_without_noise_the_release_is_believed():
    templates, truth = world(60, HALF)
    found = shrink(truth, templates, 0.0)
    assert estimate(found, templates) == pytest.approx(truth)
    assert found.expected == pytest.approx(np.ones((3, NETWORKS)))
    assert not found.errors.any()
