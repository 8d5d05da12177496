"""ICA's statistics: against one volume at a time, against scikit-learn, and under attack."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms.ica.kernels import infomax
from consortium.simulation.signals import garch_courses

SEEDS = st.integers(0, 2**32 - 1)


def problem(seed, size=4, volumes=50, dtype=np.float64):
    generator = np.random.default_rng(seed)
    unmixing = generator.standard_normal((size, size))
    return unmixing, generator.standard_normal((size, volumes)).astype(dtype)


def clipped(matrix, bound):
    return matrix * min(1.0, bound / max(np.linalg.norm(matrix), 1e-300))


def rotation_one_by_one(unmixing, data, bound):
    total = 0
    for x in data.T.astype(np.float64):
        z = unmixing @ x
        c = infomax.antisymmetric_part(np.outer(np.tanh(z), z))
        total = total + clipped(c, bound)
    return total


def infomax_one_by_one(unmixing, bias, data, bound):
    total = 0
    for x in data.T.astype(np.float64):
        z = unmixing @ x + bias
        total = total + clipped(np.outer(-np.tanh(z / 2), np.append(z, 1.0)), bound)
    return total


@given(SEEDS, st.integers(2, 6), st.floats(0.1, 20), st.sampled_from([np.float32, np.float64]))
def test_rotation_is_the_sum_over_clipped_volumes(seed, size, bound, dtype):
    unmixing, data = problem(seed, size, dtype=dtype)
    expected = rotation_one_by_one(unmixing, data, bound)
    actual = infomax.rotation_by_volume(unmixing, data, bound)
    assert actual == pytest.approx(expected, rel=1e-4, abs=1e-4 * bound)


@given(SEEDS, st.integers(2, 6), st.floats(0.1, 20), st.sampled_from([np.float32, np.float64]))
def test_infomax_is_the_sum_over_clipped_volumes(seed, size, bound, dtype):
    unmixing, data = problem(seed, size, dtype=dtype)
    bias = np.random.default_rng(seed + 1).standard_normal(size)
    expected = infomax_one_by_one(unmixing, bias, data, bound)
    actual = infomax.infomax_by_volume(unmixing, bias, data, bound)
    assert actual == pytest.approx(expected, rel=1e-4, abs=1e-4 * bound)
    mean = infomax.infomax_mean(unmixing, bias, data.astype(np.float64))
    assert mean == pytest.approx(infomax_one_by_one(unmixing, bias, data, 1e9) / data.shape[1])


def test_more_volumes_than_one_chunk():
    unmixing, data = problem(5, 3, volumes=9000)
    halves = [infomax.rotation_by_volume(unmixing, part, 0.5) for part in np.split(data, [4000], 1)]
    assert infomax.rotation_by_volume(unmixing, data, 0.5) == pytest.approx(sum(halves))


@settings(max_examples=300)
@given(SEEDS, st.integers(2, 5), st.integers(-10, 18), st.integers(-10, 10), st.booleans())
def test_no_unmixing_gets_a_volume_past_the_bound(seed, size, huge, other, single):
    # Rows that are huge and nearly parallel: by Lagrange's identity their c would round to zero.
    generator = np.random.default_rng(seed)
    row = generator.standard_normal(size)
    unmixing = 10.0**huge * np.tile(row, (size, 1))
    unmixing += 10.0**other * generator.standard_normal((size, size))
    dtype = np.float32 if single else np.float64
    data = (10.0 ** generator.integers(-3, 4) * generator.standard_normal((size, 1))).astype(dtype)
    rotation = infomax.rotation_by_volume(unmixing, data, 1.0)
    gradient = infomax.infomax_by_volume(unmixing, np.zeros(size), data, 1.0)
    assert np.linalg.norm(rotation) <= 1 + 1e-9
    assert np.linalg.norm(gradient) <= 1 + 1e-9


def test_lagranges_identity_would_have_leaked():
    unmixing = np.array([[1e6, 0.0], [1e6, 1.0]])
    data = np.array([[1.0], [100.0]], dtype=np.float32)
    z = (unmixing.astype(np.float32) @ data).ravel()
    y = np.tanh(z)
    by_lagrange = (y @ y) * (z @ z) - (y @ z) ** 2
    assert by_lagrange <= 0 < abs(y[0] * z[1] - y[1] * z[0])  # nothing to clip, it says
    assert np.abs(infomax.rotation_by_volume(unmixing, data, 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("huge", [1e30, 3e38])
def test_a_volume_that_overflows_counts_as_nothing_and_hurts_no_other(huge):
    data = np.array([[1.0, huge, 0.5], [2.0, huge, -0.5]], dtype=np.float32)
    unmixing = np.array([[10.0, 9.0], [3.0, 10.0]])
    others = data[:, [0, 2]]
    with np.errstate(over="ignore", invalid="ignore"):
        rotation = infomax.rotation_by_volume(unmixing, data, 1.0)
        gradient = infomax.infomax_by_volume(unmixing, np.zeros(2), data, 1.0)
    moved = np.linalg.norm(rotation - infomax.rotation_by_volume(unmixing, others, 1.0))
    assert moved <= 1 + 1e-9
    moved = np.linalg.norm(gradient - infomax.infomax_by_volume(unmixing, np.zeros(2), others, 1.0))
    assert moved <= 1 + 1e-9


@given(SEEDS, st.integers(2, 6))
def test_coordinates_of_a_rotation(seed, size):
    matrix = np.random.default_rng(seed).standard_normal((size, size))
    whole = infomax.skew_matrix(infomax.antisymmetric_part(matrix), size)
    assert whole == pytest.approx(matrix - matrix.T)
    assert len(infomax.antisymmetric_part(matrix)) == size * (size - 1) // 2


@pytest.mark.parametrize("score", ["tanh", "volatility"])
@pytest.mark.parametrize("lengths", [[40], [30, 30, 30], [20, 7, 7, 33, 20], [3000, 3000, 10]])
def test_subjects_are_taken_one_by_one(score, lengths):
    unmixing, data = problem(7, 3, volumes=sum(lengths))
    moments = np.concatenate(list(infomax.subject_moments(unmixing, data, lengths, score)))
    steps = np.concatenate(list(infomax.subject_steps(unmixing, data, lengths, score)))
    assert len(moments) == len(steps) == len(lengths)
    for part, moment, step in zip(
        np.split(data, np.cumsum(lengths)[:-1], axis=1), moments, steps, strict=True
    ):
        z = unmixing @ part
        psi = infomax.SCORES[score](z)
        slope = 1 - psi**2 if score == "tanh" else psi / z
        assert moment == pytest.approx(psi @ z.T / part.shape[1])
        assert step == pytest.approx(psi @ z.T / part.shape[1] - np.diag(slope.mean(axis=1)))


def test_another_subject_changes_nothing_of_mine():
    lengths = [20, 20, 20]
    unmixing, data = problem(8, 3, volumes=60)
    other = data.copy()
    other[:, 20:40] = 1e6
    for score in ("tanh", "volatility"):
        before = np.concatenate(list(infomax.subject_moments(unmixing, data, lengths, score)))
        after = np.concatenate(list(infomax.subject_moments(unmixing, other, lengths, score)))
        assert np.array_equal(before[[0, 2]], after[[0, 2]])
        assert not np.allclose(before[1], after[1])


def test_volatility_score_divides_by_the_local_variance():
    z = np.random.default_rng(2).standard_normal((2, 40))
    padded = np.pad(z**2, ((0, 0), (7, 7)), mode="edge")
    local = np.stack([padded[:, t : t + 15].mean(axis=1) for t in range(40)], axis=1)
    assert infomax.volatility_score(z) == pytest.approx(z / (0.3 + local))


def test_the_step_is_fastica_s():
    fastica = pytest.importorskip("sklearn.decomposition._fastica")
    _, data = problem(9, 4, volumes=300)
    unmixing = np.linalg.qr(np.random.default_rng(9).standard_normal((4, 4)))[0]
    (moments,) = infomax.subject_steps(unmixing, data, [300], "tanh")
    g, slopes = fastica._logcosh(unmixing @ data, {})
    expected = g @ data.T / 300 - slopes[:, None] * unmixing
    assert moments[0] @ unmixing == pytest.approx(expected)


@pytest.mark.parametrize("score", ["tanh", "volatility"])
def test_curvature_is_that_of_a_garch_course(score):
    z = garch_courses(np.random.default_rng(4), 200, 2000).astype(np.float64)
    z /= z.std(axis=1, keepdims=True)
    psi = infomax.SCORES[score](z)
    slope = 1 - psi**2 if score == "tanh" else psi / z
    assert np.mean(slope - psi * z) == pytest.approx(infomax.CURVATURE[score], rel=0.35)
