"""The integer grid: rounding, the ring, and a width that holds what was planned."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import RangeError
from consortium.privacy.lattice import Lattice, plan_lattice
from consortium.privacy.noise import LARGEST_SIGMA

LATTICES = st.builds(
    Lattice, st.integers(-40, 3).map(lambda power: 2.0**power), st.sampled_from([32, 64])
)
NARROW = st.builds(
    Lattice,
    st.integers(-40, 3).map(lambda power: 2.0**power),
    st.integers(2, 64),
    st.integers(0, 40),
)
SETTINGS = st.fixed_dictionaries(
    {
        "entries": st.integers(1, 10**7),
        "bound": st.floats(1e-3, 1e3),
        "sensitivity": st.floats(1e-6, 1e3),
        "aggregate": st.floats(1e-3, 1e5),
        "largest": st.floats(1e-3, 1e12),
        "sites": st.integers(1, 1024),
        "least": st.just(0.0) | st.floats(1e-9, 1e3),
    }
)


@given(LATTICES, st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
def test_decoding_undoes_wrapping(lattice, integers):
    whole = np.array(integers, dtype=np.int64)
    assert np.array_equal(lattice.decode(lattice.wrap(whole)), whole * lattice.step)


@given(NARROW, st.data())
def test_decoding_undoes_wrapping_in_a_ring_of_any_width(lattice, data):
    half = 2 ** (lattice.bits - 1)
    integers = data.draw(st.lists(st.integers(-half, half - 1), max_size=20))
    whole = np.array(integers, dtype=np.int64)
    assert np.array_equal(lattice.decode(lattice.wrap(whole)), whole * lattice.grid)
    assert lattice.wrap(whole).max(initial=0) <= 2**lattice.bits - 1


@given(NARROW, st.lists(st.integers(-(2**62), 2**62 - 1), min_size=1, max_size=20))
def test_the_coarse_grid_is_within_half_a_cell(lattice, integers):
    for integer, cell in zip(integers, lattice.coarse(np.array(integers)).tolist(), strict=True):
        assert 2 * abs((cell << lattice.dropped) - integer) <= 1 << lattice.dropped


@given(LATTICES, st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20))
def test_encoding_is_within_half_a_step(lattice, values):
    whole = lattice.encode(np.array(values), 1.0)
    assert np.abs(whole * lattice.step - values).max() <= lattice.step / 2
    again = lattice.encode(whole * lattice.step, 1.0 + lattice.step)
    assert np.array_equal(again, whole)


@given(
    LATTICES | st.builds(Lattice, st.just(1.0), st.integers(4, 64)),
    st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=9),
)
def test_what_cancels_may_wrap(lattice, integers):
    # Masks and correlated noise are far larger than a 32-bit ring; their sum is not.
    integers = [*integers, 5 - sum(integers)]
    total = np.zeros(1, dtype=lattice.dtype)
    for integer in integers:
        signed = (integer + 2**63) % 2**64 - 2**63
        total += lattice.wrap(np.array([signed], dtype=np.int64))
    assert lattice.decode(total)[0] == 5 * lattice.step


@given(
    LATTICES,
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=30),
)
def test_rounding_adds_no_more_than_is_charged(lattice, pairs):
    one, other = np.array(pairs).T
    rounded = (lattice.encode(one, 1.0) - lattice.encode(other, 1.0)) * lattice.step
    allowed = np.linalg.norm(one - other) + lattice.rounding(len(pairs))
    assert np.linalg.norm(rounded) <= allowed * (1 + 1e-12)


def test_the_charge_for_rounding_is_nearly_reached():
    below, above = np.full(100, 0.4999), np.full(100, 0.5001)
    lattice = Lattice(1.0, 32)
    moved = np.linalg.norm(lattice.encode(below, 1.0) - lattice.encode(above, 1.0))
    assert moved == pytest.approx(lattice.rounding(100))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1.001, -1.001, 1e300])
def test_what_was_not_clipped_is_refused(wrong):
    with pytest.raises(RangeError, match="clipping bound"):
        Lattice(2.0**-10, 32).encode(np.array([0.0, wrong]), 1.0)


@given(SETTINGS)
def test_a_planned_ring_holds_the_sum_and_its_noise(setting):
    try:
        lattice = plan_lattice(**setting)
    except RangeError:
        return
    assert math.frexp(lattice.step)[0] == 0.5
    assert lattice.rounding(setting["entries"]) <= 1e-3 * setting["sensitivity"]
    # P(any of n entries beyond t standard deviations) <= 2 n exp(-t²/2) = 2^-40.
    tail = math.sqrt(2 * (math.log(2 * setting["entries"]) + 40 * math.log(2)))
    reach = setting["bound"] + tail * setting["aggregate"]
    assert reach / lattice.grid + setting["sites"] / 2 <= 2 ** (lattice.bits - 1)
    assert lattice.grid == lattice.step or 8 * lattice.grid <= setting["least"]
    assert 4 * setting["largest"] / lattice.step <= LARGEST_SIGMA


def test_few_numbers_travel_in_32_bits_and_many_in_64():
    common = {"bound": 1.0, "aggregate": 0.5, "largest": 50.0, "sites": 4}
    assert plan_lattice(entries=45, sensitivity=0.1, **common).bits == 32
    assert plan_lattice(entries=10**6, sensitivity=1e-4, **common).bits == 64


def test_what_noise_hides_does_not_travel():
    common = {"bound": 1.0, "aggregate": 0.5, "largest": 50.0, "sites": 4}
    many = {"entries": 10**6, "sensitivity": 1e-2, **common}
    assert plan_lattice(least=0.25, **many).bits == 16
    assert plan_lattice(least=0.25 / 1024, **many).bits == 19
    assert plan_lattice(**many).bits == 32


def test_a_sum_that_no_ring_holds_is_refused():
    with pytest.raises(RangeError, match="64-bit"):
        plan_lattice(entries=100, bound=1.0, sensitivity=1e-16, aggregate=1.0, largest=1.0, sites=4)
