"""Packed integers: against plain Python integers, there and back, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ProtocolError
from consortium.secagg.packing import (
    pack,
    pack_into,
    packed_bytes,
    reduce_modulo,
    ring_type,
    unpack,
)

BITS = st.integers(1, 64)


def vector(bits: int, entries: int, seed: int = 0) -> np.ndarray:
    whole = np.random.default_rng(seed).integers(0, 2**64, entries, dtype=np.uint64)
    return reduce_modulo(whole.astype(ring_type(bits)), bits)


@given(BITS, st.integers(0, 200))
def test_packed_numbers_are_one_little_endian_integer(bits, entries):
    numbers = vector(bits, entries)
    whole = sum(int(number) << (j * bits) for j, number in enumerate(numbers))
    expected = whole.to_bytes(packed_bytes(entries, bits), "little")
    assert pack(numbers, bits).tobytes() == expected


@pytest.mark.parametrize("bits", [1, 11, 12, 31, 32, 33, 63, 64])
@pytest.mark.parametrize("entries", [0, 1, 63, 64, 65_535, 65_536, 70_001])
def test_unpacking_undoes_packing(bits, entries):
    numbers = vector(bits, entries)
    found = unpack(pack(numbers, bits).tobytes(), bits, entries, "It")
    assert np.array_equal(found, numbers)
    assert found.dtype == ring_type(bits)


@given(BITS, st.sampled_from([0, 1, 63, 200, 65_537, 140_000]))
def test_a_vector_is_packed_in_its_own_memory(bits, entries):
    numbers = vector(bits, entries)
    room = numbers.copy()
    end = pack_into(room.view(np.uint8), room, bits)
    assert room.view(np.uint8)[:end].tobytes() == pack(numbers, bits).tobytes()


@given(st.integers(1, 31), st.integers(0, 200))
def test_higher_bits_do_not_travel(bits, entries):
    numbers = vector(32, entries)
    assert pack(numbers, bits).tobytes() == pack(reduce_modulo(numbers, bits), bits).tobytes()


@pytest.mark.parametrize("wrong", [b"", bytes(1), bytes(3)])
def test_another_length_is_refused(wrong):
    with pytest.raises(ProtocolError, match="not 1 entries of 11 bits"):
        unpack(wrong, 11, 1, "It")


@pytest.mark.parametrize("last", [0b1000, 0b1000_0000])
def test_a_free_bit_that_is_not_zero_is_refused(last):
    assert unpack(bytes([255, 0b111]), 11, 1, "It")[0] == 2**11 - 1
    with pytest.raises(ProtocolError, match="last byte"):
        unpack(bytes([0, last]), 11, 1, "It")
