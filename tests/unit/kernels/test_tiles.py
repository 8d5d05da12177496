"""Products of columns that depend on no other column."""

import numpy as np
import pytest

from consortium.kernels import tiles
from consortium.kernels.tiles import TILE, filled_up, product_of_columns, reduced_block


def cancelling(generator, rows, features):
    powers = 2.0 ** generator.choice([-70, -40, 0, 40, 70], features)
    return generator.standard_normal((rows, features)) * powers


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("features", [1, 5, 20, 257, 2000])
@pytest.mark.parametrize("rows", [1, 2, 13, 40])
def test_no_column_depends_on_a_column_that_is_removed(features, rows, alone, monkeypatch):
    if alone:
        monkeypatch.setattr(tiles, "equal_in_every_place", lambda *_: False)
    generator = np.random.default_rng(0)
    left = cancelling(generator, rows, features)
    for count in (1, 2, 3, 4, 51, 65, 130):
        columns = generator.standard_normal((features, count)).astype(np.float32)
        whole = product_of_columns(left, columns)
        for place in {0, count // 2, count - 1}:
            rest = product_of_columns(left, np.delete(columns, place, axis=1))
            np.testing.assert_array_equal(rest, np.delete(whole, place, axis=1))


def test_products_are_those_of_matrices_and_overflow_touches_no_other_column():
    generator = np.random.default_rng(1)
    left, columns = generator.standard_normal((7, 30)), generator.standard_normal((30, 100))
    np.testing.assert_allclose(product_of_columns(left, columns), left @ columns, atol=1e-12)
    expected = product_of_columns(left, columns)
    columns[:, 70] = np.inf
    found = product_of_columns(left, columns)
    assert not np.isfinite(found[:, 70]).any()
    np.testing.assert_array_equal(np.delete(found, 70, axis=1), np.delete(expected, 70, axis=1))


def test_this_machine_multiplies_in_tiles():
    assert all(tiles.equal_in_every_place(rows, 300) for rows in (1, 3, 20))


def test_a_library_that_prefers_a_place_is_found(monkeypatch):
    def uneven(left, tile):
        found = left @ tile
        found[:, TILE // 2 :] = left[:, ::-1] @ tile[::-1, TILE // 2 :]
        return found

    monkeypatch.setattr(tiles, "_of_tile", uneven)
    assert not tiles.equal_in_every_place.__wrapped__(5, 100)


def test_columns_are_filled_up_with_zeros():
    filled = filled_up(np.ones((2, TILE + 1), dtype=np.float32))
    assert filled.shape == (2, 2 * TILE)
    assert filled.dtype == np.float32
    assert filled.sum() == 2 * (TILE + 1)


@pytest.mark.parametrize("unit", ["subject", "timepoint"])
def test_a_reduced_block_has_the_type_of_the_block(unit):
    generator = np.random.default_rng(2)
    basis, block = generator.standard_normal((30, 4)), generator.standard_normal((30, 9))
    found = reduced_block(basis, block.astype(np.float32), unit)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, basis.T @ block, rtol=1e-4, atol=1e-4)
