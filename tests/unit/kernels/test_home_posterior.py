"""A hospital's posterior, against simulations in which the truth is known."""

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh

from consortium.kernels.home_posterior import (
    Posterior,
    ReleaseShare,
    combine_projectors,
    expected_errors,
    mean_of_projectors,
    without_own,
)
from consortium.kernels.noise_law import SymmetricNoise

SIZE, KEPT, SITES = 40, 4, 6
Floats = NDArray[np.float64]


def leading(matrix: Floats) -> Floats:
    return np.asarray(eigh(matrix, subset_by_index=(SIZE - KEPT, SIZE - 1))[1])


def captured(matrix: Floats, truth: Floats) -> float:
    return float(np.sum((leading(matrix).T @ leading(truth)) ** 2)) / KEPT


def persons(count: int, shift: Floats, generator: np.random.Generator) -> list[Floats]:
    """Leading directions of series with four networks in noise, moved by a hospital's shift."""
    networks = np.linspace(3.0, 1.6, KEPT) * np.eye(SIZE, KEPT) + shift
    series = networks @ generator.standard_normal((count, KEPT, 60))
    series += generator.standard_normal((count, SIZE, 60))
    return list(np.linalg.eigh(series @ series.transpose(0, 2, 1))[1][:, :, -KEPT:].copy())


def shifts(size: float, generator: np.random.Generator) -> Floats:
    return size * generator.standard_normal((SITES, SIZE, KEPT))


@cache
def hospital(count: int, shift: float, seed: int, number: int) -> list[Floats]:
    """Leading directions of a hospital's participants: hospitals of one seed are one town."""
    generator = np.random.default_rng((seed, number))
    return persons(count, shift * generator.standard_normal((SIZE, KEPT)), generator)


@cache
def truth() -> Floats:
    return mean_of_projectors(persons(3000, np.zeros((SIZE, KEPT)), np.random.default_rng(0)), SIZE)


def play(
    sizes: tuple[int, ...], deviation: float, shift: float, seed: int
) -> tuple[Posterior, Floats, ReleaseShare]:
    """The first hospital's posterior, and the release."""
    people = [hospital(n, shift, seed, number) for number, n in enumerate(sizes)]
    release = mean_of_projectors([p for site in people for p in site], SIZE)
    release += SymmetricNoise(SIZE, deviation).draw(np.random.default_rng(seed))
    taken = ReleaseShare(sizes[0], sum(sizes), len(sizes), deviation)
    return combine_projectors(people[0], release, taken), release, taken


def test_what_others_have_does_not_hang_on_the_own_participants() -> None:
    generator = np.random.default_rng(1)
    others = mean_of_projectors(persons(90, np.zeros((SIZE, KEPT)), generator), SIZE)
    noise = SymmetricNoise(SIZE, 0.02).draw(generator)
    told = []
    for seed in (2, 3):
        own = mean_of_projectors(
            persons(10, np.ones((SIZE, KEPT)), np.random.default_rng(seed)), SIZE
        )
        told.append(without_own(0.1 * own + 0.9 * others + noise, own, 0.1))
    assert told[0] == pytest.approx(told[1], abs=1e-14)
    assert told[0] == pytest.approx(others + noise / 0.9, abs=1e-14)


def test_the_noise_is_of_the_stated_size_and_uncorrelated_with_the_own_mean() -> None:
    generator, taken = np.random.default_rng(4), ReleaseShare(25, 100, 4, 0.05)
    others = mean_of_projectors(persons(75, np.zeros((SIZE, KEPT)), generator), SIZE)
    own = mean_of_projectors(persons(25, np.zeros((SIZE, KEPT)), generator), SIZE)
    above = np.triu_indices(SIZE, 1)
    drawn = [
        without_own(
            0.25 * own + 0.75 * others + SymmetricNoise(SIZE, 0.05).draw(generator), own, 0.25
        )
        for _ in range(200)
    ]
    left = np.array([(each - others)[above] for each in drawn])
    assert left.var() == pytest.approx(taken.noise, rel=0.02)
    cosines = left @ own[above] / np.linalg.norm(own[above]) / math.sqrt(taken.noise)
    assert abs(cosines.mean()) < 4 / math.sqrt(200)


@pytest.mark.parametrize("shift", [0.0, 0.35])
def test_spreads_are_those_of_persons_and_of_hospitals(shift: float) -> None:
    found = [play((15, *(30,) * 5), 0.02, shift, seed)[0].spreads for seed in range(30)]
    networks = leading(truth())
    rest = np.eye(SIZE) - networks @ networks.T
    entries = KEPT * (SIZE - KEPT)
    told = np.mean([each.between for each in found])
    if shift:
        moved = [mean_of_projectors(hospital(200, shift, seed, SITES), SIZE) for seed in range(40)]
        between = np.mean([np.sum((networks.T @ m @ rest) ** 2) for m in moved]) / entries
        between -= np.mean([each.within for each in found]) / 200
        assert told == pytest.approx(between, rel=0.5)
    else:
        people = persons(2000, np.zeros((SIZE, KEPT)), np.random.default_rng(6))
        each = [np.sum((networks.T @ u @ (u.T @ rest)) ** 2) for u in people]
        within = np.mean([each.within for each in found])
        assert within == pytest.approx(np.mean(each) / entries, rel=0.1)
        assert told < 0.15 * within / 15


@pytest.mark.parametrize("deviation", [0.01, 0.04, 0.1])
@pytest.mark.parametrize("size", [3, 12, 60])
@pytest.mark.parametrize("shift", [0.0, 0.35])
def test_it_is_never_worse_than_the_better_of_both(
    deviation: float, size: int, shift: float
) -> None:
    gains = []
    for seed in range(30):
        found, release, _ = play((size, *(30,) * 5), deviation, shift, seed)
        parts = (captured(each, truth()) for each in (found.own, release, found.matrix))
        own, shown, both = parts
        gains.append(both - max(own, shown))
    assert np.mean(gains) > -0.005
    assert min(gains) > -0.05


def test_weights_are_by_the_errors_that_come_out() -> None:
    networks = leading(truth())
    rest = np.eye(SIZE) - networks @ networks.T
    entries = KEPT * (SIZE - KEPT)
    off, told = np.zeros(3), np.zeros(2)
    for seed in range(60):
        found, release, taken = play((40, *(30,) * 5), 0.01, 0.0, seed)
        others = without_own(release, found.own, taken.part)
        each = (found.own, others, found.matrix)
        off += [np.sum((networks.T @ (m - truth()) @ rest) ** 2) / entries for m in each]
        own, many = expected_errors(found.spreads, taken, SIZE / KEPT)
        chance = (1.0 + 0.5 * math.sqrt(SIZE / KEPT / 40)) ** 2
        told += [own / chance, many]
        both = found.deviation**2 / 2 + found.spreads.overall / found.persons
        assert found.share == pytest.approx(many / (own + many))
        sure = expected_errors(found.spreads.reported, taken, SIZE / KEPT)
        assert both == pytest.approx(found.share**2 * sure[0] + (1 - found.share) ** 2 * sure[1])
        assert both > own * many / (own + many)  # hospitals as different as real ones count
    assert told / off[:2] == pytest.approx(np.ones(2), rel=0.15)
    assert off[2] < min(off[:2])


def test_own_patients_count_hospitals_differences_on_the_other_side() -> None:
    generator = np.random.default_rng(8)
    moved = shifts(0.5, generator)
    people = [persons(20, moved[s], generator) for s in range(SITES)]
    release = mean_of_projectors([p for site in people for p in site], SIZE)
    taken = ReleaseShare(20, 120, SITES, 0.01)
    everybody = combine_projectors(people[0], release, taken)
    patients = combine_projectors(people[0], release, taken, at_home=True)
    assert everybody.spreads.between > 0
    assert everybody.share < patients.share


def test_worth_is_the_participants_whose_chance_is_the_noise() -> None:
    found, _, taken = play((20, *(30,) * 5), 0.03, 0.0, 9)
    worth = found.spreads.worth(taken.everybody)
    assert worth.persons == pytest.approx(found.spreads.within / taken.noise)
    assert ReleaseShare(20, 170, 6, 0.06).noise == pytest.approx(4 * taken.noise)
