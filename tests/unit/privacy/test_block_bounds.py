"""Blocks in one release cost what releases of their own would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import PrivacyError, RangeError
from consortium.privacy.block_bounds import Block, BlocksBound
from consortium.privacy.gdp import compose
from consortium.privacy.mechanism import Sharing, plan_mechanism

BOUND = BlocksBound.of([Block("a", 3, 2.0, 4.0, 0.2), Block("b", 1, 5.0, 5.0, 0.6)])


def test_shares_are_made_to_add_up_and_the_whole_moves_by_one():
    assert [block.share for block in BOUND.blocks] == pytest.approx([0.25, 0.75])
    assert BOUND.spread == 1.0
    moves = [block.factor * block.spread for block in BOUND.blocks]
    assert np.linalg.norm(moves) == pytest.approx(1.0)
    assert BOUND.norm == pytest.approx(np.hypot(0.5 / 4 * 2, np.sqrt(0.75)))


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_splitting_undoes_joining(values):
    parts = {"a": np.array(values[:3]), "b": np.array(values[3:])}
    found = BOUND.split(BOUND.join(parts))
    assert all(found[name] == pytest.approx(parts[name]) for name in parts)


def test_every_block_gets_the_noise_of_a_release_with_its_share():
    sharing = Sharing("cape", colluding=1)
    joint = plan_mechanism(sharing, entries=4, bound=BOUND, target=1.0, units=(50, 50))
    noise = BOUND.deviations(joint.noise.aggregate())
    for block in BOUND.blocks:
        # The loss of the block alone, from the noise that it has within the joint release.
        assert block.spread / 100 / noise[block.name] == pytest.approx(
            np.sqrt(block.share) / (joint.noise.aggregate() * 100), rel=1e-9
        )
    losses = [block.spread / noise[block.name] for block in BOUND.blocks]
    assert compose(losses) == pytest.approx(1 / joint.noise.aggregate())


def test_a_block_of_another_size_or_name_is_refused():
    with pytest.raises(RangeError, match="'a' must have 3 numbers, got 2"):
        BOUND.join({"a": np.zeros(2), "b": np.zeros(1)})
    with pytest.raises(PrivacyError, match="no block 'c'"):
        BOUND.block("c")
