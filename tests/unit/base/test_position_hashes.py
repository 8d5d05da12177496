"""Numbers of positions are the same however many there are, and all differ."""

import numpy as np

from consortium.base.position_hashes import hashes_of_positions


def test_a_position_has_the_same_number_however_many_there_are():
    assert np.array_equal(hashes_of_positions(7), hashes_of_positions(1000)[:7])
    assert len(hashes_of_positions(0)) == 0


def test_numbers_differ_and_are_in_no_order():
    hashes = hashes_of_positions(1000)
    assert len(set(hashes.tolist())) == 1000
    assert np.abs(np.corrcoef(np.argsort(np.argsort(hashes)), np.arange(1000))[0, 1]) < 0.1
