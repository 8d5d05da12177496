"""The bound on a private mean's noise, against mechanisms whose every part can be integrated."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm

from benchmarks.noise_bound import (
    Spectrum,
    chi_square,
    even,
    least_error,
    least_noise,
    spectrum_of,
    spectrum_of_gram,
)

Floats = NDArray[np.float64]
GRID = np.linspace(-40.0, 40.0, 40_001)
STEP = float(GRID[1] - GRID[0])


def density(mean: float, deviation: float) -> Floats:
    return np.asarray(norm.pdf(GRID, mean, deviation))


@pytest.mark.parametrize("mu", [0.2, 0.9, 1.5])
def test_chi_square_is_that_of_two_gaussians(mu: float) -> None:
    one, other = density(mu, 1.0), density(0.0, 1.0)
    kept = other > 1e-280
    integral = np.sum(np.square(one[kept]) / other[kept]) * STEP - 1.0
    assert integral == pytest.approx(chi_square(mu), rel=1e-6)


@pytest.mark.parametrize("mu", [0.3, 0.9, 1.5])
@pytest.mark.parametrize("persons", [1, 2, 5])
def test_the_first_derivation_holds_step_by_step(persons: int, mu: float) -> None:
    """Persons are −1 or 1 by a fair coin, Σ = 1; the mean has Gaussian noise of μ-GDP."""
    deviation = 2.0 / persons / mu
    # Of a person's x and Y less the others' part of the mean, whose law is the same for any others.
    both = {x: density(x / persons, deviation) for x in (-1, 1)}
    under_p = sum(0.5 * x * np.sum(GRID * both[x]) for x in (-1, 1)) * STEP
    mixed = 0.5 * (both[-1] + both[1])
    under_q = np.sum(np.square(GRID) * mixed) * STEP  # x and Y' apart: E x² = 1
    assert under_p == pytest.approx(1.0 / persons, rel=1e-6)
    assert under_q == pytest.approx(deviation**2 + 1.0 / persons**2, rel=1e-6)
    assert under_p**2 <= chi_square(mu) * under_q
    noise = least_noise(Spectrum(1.0, 1.0), persons, mu)
    assert noise <= deviation**2
    whole = deviation**2 + 1.0 / persons
    assert least_error(Spectrum(1.0, 1.0), persons, mu) <= whole


@pytest.mark.parametrize("mus", [(0.3, 0.3), (0.2, 0.9), (0.9, 1.2)])
@pytest.mark.parametrize("persons", [2, 6])
def test_the_second_derivation_agrees(mus: tuple[float, float], persons: int) -> None:
    """By information: tr(Σ I) ≤ n²(e^{μ²} − 1), and what is unbiased has covariance I⁻¹ or more.

    Two numbers of a person are ±σ by fair coins; their means have noise of their own, so that
    the information of the release about both means is diagonal, and an integral each.
    """
    sizes, information = np.array([1.0, 0.5]), []
    for size, mu in zip(sizes, mus, strict=True):
        deviation = 2.0 * size / persons / mu
        heads = np.arange(persons + 1)
        chance = np.array([math.comb(persons, k) for k in heads]) / 2.0**persons
        means = size * (2.0 * heads - persons) / persons
        parts = chance[:, None] * np.array([density(mean, deviation) for mean in means])
        released = parts.sum(axis=0)
        score = persons * means / size**2  # of all persons, at θ = 0
        slope = (score[:, None] * parts).sum(axis=0)
        kept = released > 1e-280
        information.append(np.sum(np.square(slope[kept]) / released[kept]) * STEP)
        assert 1.0 / information[-1] <= size**2 / persons + deviation**2 + 1e-9
    mu = math.hypot(*mus)
    assert np.square(sizes) @ information <= persons**2 * chi_square(mu)
    spectrum = spectrum_of(np.square(sizes))
    assert sum(1.0 / each for each in information) >= least_error(spectrum, persons, mu)


def test_no_information_of_the_same_size_gives_less() -> None:
    """min tr I⁻¹ over tr(Σ I) = c is (tr Σ^½)²/c, in any basis."""
    generator = np.random.default_rng(0)
    root = generator.standard_normal((4, 4))
    covariance = root @ root.T
    budget = 7.0

    def error(flat: Floats) -> float:
        factor = flat.reshape(4, 4)
        information = factor @ factor.T + 1e-9 * np.eye(4)
        scale = budget / float(np.sum(covariance * information))
        return float(np.trace(np.linalg.inv(scale * information)))

    found = min(minimize(error, generator.standard_normal(16)).fun for _ in range(5))
    told = spectrum_of(np.linalg.eigvalsh(covariance)).root ** 2 / budget
    assert found == pytest.approx(told, rel=1e-3)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
def test_noise_shaped_by_the_root_comes_within_a_small_factor(mu: float) -> None:
    """Persons in a box of ±σ: noise of variance ∝ σ has twice the bound's deviation, at small μ."""
    sizes, persons = np.array([3.0, 1.0, 0.2, 0.05]), 10_000
    variances = 4.0 * sizes * sizes.sum() / (persons * mu) ** 2
    assert np.sum(np.square(2.0 * sizes / persons) / variances) == pytest.approx(mu**2)
    spectrum = spectrum_of(np.square(sizes))
    ratio = math.sqrt(variances.sum() / least_error(spectrum, persons, mu))
    assert ratio == pytest.approx(2.0 * math.sqrt(chi_square(mu)) / mu, rel=1e-9)
    round_noise = 4.0 * float(np.sum(np.square(sizes))) * len(sizes) / (persons * mu) ** 2
    assert variances.sum() < round_noise


def test_spectra_of_samples() -> None:
    generator = np.random.default_rng(1)
    values = np.array([4.0, 1.0, 0.25])
    people = generator.standard_normal((1500, 3)) * np.sqrt(values) + 5.0
    told, known = spectrum_of_gram(people @ people.T), spectrum_of(values)
    assert told.trace == pytest.approx(known.trace, rel=0.05)
    assert told.root == pytest.approx(known.root, rel=0.05)
    few = spectrum_of_gram(people[:3] @ people[:3].T)
    assert few.root < known.root
    assert even(known, 3).root >= known.root
