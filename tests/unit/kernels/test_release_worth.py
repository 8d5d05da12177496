"""What a release is worth, against what comes out of drawing it."""

import math

import numpy as np
import pytest

from consortium.algorithms.worth import worth_sentence
from consortium.kernels.release_worth import BETWEEN, RATIO, variance_of_projectors, worth_of


def test_so_many_participants_are_as_unsure_as_the_noise() -> None:
    generator, noise = np.random.default_rng(0), 0.25
    worth = worth_of(2.0, noise, 100)
    means = math.sqrt(2.0) * generator.standard_normal((20_000, round(worth.persons))).mean(axis=1)
    assert means.var() == pytest.approx(noise, rel=0.05)


@pytest.mark.parametrize("persons", [50, 400])
def test_enough_participants_have_the_stated_error(persons: int) -> None:
    enough = worth_of(2.0, 0.25, persons).enough
    noise = 0.25 * (persons / enough) ** 2  # the same mechanism over more participants
    assert math.sqrt((2.0 / enough + noise) / (2.0 / enough)) == pytest.approx(RATIO)


def test_projectors_vary_in_leading_rows_by_as_much_as_is_stated() -> None:
    generator = np.random.default_rng(1)
    series = generator.standard_normal((4000, 20, 30))
    series[:, :3] *= np.array([3.0, 2.0, 1.5])[:, None]
    leading = [np.linalg.svd(each, full_matrices=False)[0][:, :3] for each in series]
    people = np.array([u @ u.T for u in leading])
    values, vectors = np.linalg.eigh(people.mean(axis=0))
    rows = (people - people.mean(axis=0)) @ vectors[:, -3:]
    found = np.mean(np.sum(rows**2, axis=(1, 2)))
    told = variance_of_projectors(values[-3:], 20) * 3 * 17 / BETWEEN
    assert told == pytest.approx(found, rel=1e-6)


def test_without_noise_nothing_is_said() -> None:
    assert worth_of(1.0, 0.0, 10).persons == math.inf
    assert worth_sentence(worth_of(1.0, 0.0, 10), "x") == ""
    assert worth_sentence(worth_of(0.0, 1.0, 10), "x") == ""
    said = worth_sentence(worth_of(2.0, 0.25, 400), "what was found")
    assert said.startswith("By what was found, ")
    assert "as much information as 8 more participants of its own would" in said
    assert "; with 29,000 participants in all" in said
