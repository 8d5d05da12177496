"""Who is one unit of privacy, as a study says it."""

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.algorithms.units import Units


def test_a_units_mean_varies_less_the_more_rows_are_usual():
    assert Units(family="family_id", correlation=0.5).deviation == 1.0
    usual = Units(family="family_id", correlation=0.5, usual_rows=3)
    generator = np.random.default_rng(0)
    shared, own = generator.standard_normal((1, 200_000)), generator.standard_normal((3, 200_000))
    rows = np.sqrt(0.5) * (shared + own)
    assert usual.deviation == pytest.approx(rows.mean(axis=0).std(), rel=0.01)


def test_the_largest_weight_is_that_of_rows_that_differ_in_one_column():
    """Over that of one row: of rows 1, -1, ... whose mean is 0, under the inverse of their R."""
    units = Units(sessions=True, most_rows=4, correlation=0.6)
    likeness = 0.6 + 0.4 * np.eye(4)
    signs, ones = np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4)
    inverse = np.linalg.inv(likeness)
    assert units.largest == pytest.approx(signs @ inverse @ signs / (ones @ inverse @ ones))


SIZES = ((1, 2, 3, 4, 5), (1, 1, 1, 2, 2, 3, 5), (2,), (1, 3))


@pytest.mark.parametrize("sizes", SIZES)
def test_sizes_of_units_have_their_harmonic_mean_and_lean_to_nothing_else(sizes):
    usual = 1 / float(np.mean(1 / np.array(sizes)))
    parts = Units(family="f", usual_rows=usual, most_rows=5).sizes
    assert parts.sum() == pytest.approx(1)
    assert parts @ (1 / np.arange(1, 6)) == pytest.approx(1 / usual)
    ratios = parts[1:] / parts[:-1]  # of entropy: exp(tilt/k), all to one side
    assert (ratios >= 1 - 1e-9).all() or (ratios <= 1 + 1e-9).all()
    assert Units(family="f", most_rows=3).sizes == pytest.approx([1, 0, 0])
    assert Units(family="f", usual_rows=9, most_rows=3).sizes == pytest.approx([0, 0, 1])
    assert Units(family="f", usual_rows=20, most_rows=20).sizes[-1] == pytest.approx(1)


def drawn_squares(sizes, rho, most, draw):
    """<t, t> and the variance of <t, u> over a mean's, of drawn units; and how many differ."""
    generator = np.random.default_rng(0)
    count, found = generator.choice(sizes, 20_000), []
    for rows in np.unique(count):
        t = draw(generator, np.count_nonzero(count == rows), rows)
        mean, apart = t.mean(axis=1), np.square(t - t.mean(axis=1, keepdims=True)).sum(axis=1)
        weight = (1 + (rows - 1) * rho) / (rows * (1 - rho))
        room = np.maximum(most - mean**2, 0.0) / np.maximum(apart, 1e-12)
        weight = np.maximum(np.minimum(weight, room), 1 / rows)
        chance = mean**2 * (rho + (1 - rho) / rows) + weight**2 * apart * (1 - rho)
        found.append(np.stack([mean**2 + weight * apart, chance, apart > 1e-12], axis=1))
    usual = 1 / float(np.mean(1 / count))
    square, chance, differ = np.mean(np.concatenate(found), axis=0)
    return usual, square, chance / (rho + (1 - rho) / usual), differ


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("part", "rho"), [(0.45, 0.3), (0.15, 0.6), (0.3, 0.8)])
def test_expected_squares_of_groups_are_those_of_drawn_units(sizes, part, rho):
    for most in (10.0, max(part, 1 - part) ** 2):
        usual, square, chance, differ = drawn_squares(
            sizes, rho, most, lambda g, *shape: (g.random(shape) < part) - part
        )
        units = Units(
            family="f", correlation=rho, usual_rows=usual, most_rows=max(sizes), differ=differ
        )
        found, varied = units.expected_squares(np.array([part * (1 - part)]), most)
        assert found == pytest.approx(square, rel=0.1)
        assert varied == pytest.approx(chance, rel=0.12)


@pytest.mark.parametrize("within", [0.1, 0.5])
def test_expected_squares_of_a_slope_are_those_of_drawn_units(within):
    def draw(generator, units, rows):
        own = np.sqrt(1 - within) * generator.standard_normal((units, 1))
        return own + np.sqrt(within) * generator.standard_normal((units, rows))

    usual, square, chance, _ = drawn_squares((1, 2, 3, 4, 5), 0.6, np.inf, draw)
    units = Units(sessions=True, correlation=0.6, usual_rows=usual, most_rows=5, differ=within)
    found, varied = units.expected_squares(np.ones(1), np.inf, slope=True)
    assert found == pytest.approx(square, rel=0.03)
    assert varied == pytest.approx(chance, rel=0.05)


def test_units_are_of_families_or_sessions_and_named_so():
    with pytest.raises(ValidationError, match="give 'family'"):
        Units()
    assert Units(family="f").named == "families"
    assert "all their sessions" in Units(sessions=True).explained
    assert "at most 6" in Units(family="f", sessions=True, most_rows=6).explained
