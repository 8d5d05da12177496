"""Coefficients for prediction: least squares without noise, and better than those with it."""

import numpy as np
import pytest

from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.noisy_least_squares import least_squares
from consortium.kernels.noisy_moment import noisy_moment
from consortium.kernels.stabilized_squares import stabilized_squares

SIZE, UNITS, PARTS = 5, 3000, np.array([0.5, 0.3, 0.2])
WEIGHTS = np.array([*[1.0] * SIZE, *[0.6] * len(PARTS), 0.8])


def moment(deviation, seed, parts=PARTS):
    """Coefficients, and the moment of persons of sites with levels of their own."""
    generator = np.random.default_rng(seed)
    truth = generator.uniform(-1, 1, SIZE)
    place = np.repeat(np.arange(3), (UNITS * PARTS).astype(int))
    level = generator.standard_normal((SIZE + 1, 3))
    x = generator.standard_normal((SIZE, UNITS)) + level[:-1, place]
    y = truth @ x + 0.1 * generator.standard_normal(UNITS) + level[-1, place]
    ones = np.eye(3)[place].T if len(parts) == 3 else np.ones((len(parts), UNITS))
    weights = np.r_[WEIGHTS[: SIZE + len(parts)], WEIGHTS[-1]]
    z = weights[:, None] * np.vstack([x, ones, y])
    noise = SymmetricNoise(len(z), deviation).draw(generator)
    return truth, noisy_moment(
        z @ z.T / UNITS + noise, weights, parts, deviation, UNITS, np.zeros((SIZE, 0))
    )


@pytest.mark.parametrize("parts", [PARTS, np.ones(1), np.ones(0)])
def test_without_noise_they_are_those_of_least_squares(parts):
    _, found = moment(0.0, 1, parts)
    expected = least_squares(found).coefficients[:SIZE]
    assert stabilized_squares(found) == pytest.approx(expected, abs=1e-9)


def test_with_noise_they_are_nearer_to_the_truth_than_least_squares_and_than_nothing():
    errors = {"stabilized": 0.0, "plain": 0.0, "nothing": 0.0}
    for seed in range(30):
        truth, found = moment(0.25, seed)
        plain = least_squares(found).coefficients[:SIZE]
        for name, each in (
            ("stabilized", stabilized_squares(found)),
            ("plain", plain),
            ("nothing", np.zeros(SIZE)),
        ):
            errors[name] += float(np.sum((each - truth) ** 2)) / 30
    assert errors["stabilized"] < 0.8 * min(errors["plain"], errors["nothing"])


def test_where_all_is_noise_they_are_nearly_nothing():
    truth, found = moment(1e3, 2)
    assert np.linalg.norm(stabilized_squares(found)) < np.linalg.norm(truth)
