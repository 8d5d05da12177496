"""Packing of integers modulo 2^bits: one after the other, without gaps.

Bit i of number j is bit (j·bits + i) of the whole, which is read little-endian. A second
implementation needs only ``int.from_bytes``. The last byte's free bits are zero.
"""

from collections.abc import Iterator
from typing import cast

import numpy as np
from numpy.typing import NDArray

from consortium.errors import ProtocolError
from consortium.secagg.keystream import RINGS, Ring, RingType

MOST_BITS = 64
GROUP = 64
"""So many numbers fill whole 64-bit words, whatever their bits."""
_CHUNK = 1 << 16
_BYTE = 8

Words = NDArray[np.uint64]


def ring_type(bits: int) -> RingType:
    """Return the narrowest type for computing modulo 2^bits: of 16, 32 or 64 bits."""
    return next(dtype for width, dtype in RINGS.items() if bits <= width)


def packed_bytes(entries: int, bits: int) -> int:
    """Return the size in bytes of packed numbers."""
    return -(-entries * bits // _BYTE)


def reduce_modulo(vector: Ring, bits: int) -> Ring:
    """Return numbers modulo 2^bits, of the same type; the vector itself if nothing changes."""
    if bits == _BYTE * vector.itemsize:
        return vector
    return cast("Ring", vector & vector.dtype.type((1 << bits) - 1))


def pack_into(room: NDArray[np.uint8], vector: Ring, bits: int) -> int:
    """Pack the lowest bits of numbers; returns the bytes that were written.

    Parameters
    ----------
    room : array of uint8
        At least `packed_bytes` long. May be the vector's own memory, because writing never
        overtakes reading.
    vector : array of `ring_type`
    bits : int
        1 to the type's own.
    """
    if bits == _BYTE * vector.itemsize:
        plain = np.ascontiguousarray(vector, ring_type(bits)).view(np.uint8)
        room[: plain.size] = plain
        return int(plain.size)
    end = 0
    for start in range(0, vector.size, _CHUNK):
        chunk = vector[start : start + _CHUNK]
        packed = _pack(chunk, bits)[: packed_bytes(chunk.size, bits)]
        room[end : end + packed.size] = packed
        end += packed.size
    return end


def pack(vector: Ring, bits: int) -> NDArray[np.uint8]:
    """Return packed numbers, see `pack_into`."""
    room = np.empty(packed_bytes(vector.size, bits), np.uint8)
    pack_into(room, vector, bits)
    return room


def unpack(data: bytes | memoryview, bits: int, entries: int, what: str) -> Ring:
    """Read packed numbers, as a view of the bytes if they have a type's own width.

    Raises ProtocolError, in which ``what`` names them, if they have another length or a free bit
    that is not zero.
    """
    if len(data) != packed_bytes(entries, bits):
        raise ProtocolError(
            f"{what} has {len(data)} bytes and not {entries} entries of {bits} bits. "
            "Discard it and compare the versions."
        )
    free = -entries * bits % _BYTE
    if free and data[-1] >> (_BYTE - free):
        raise ProtocolError(
            f"{what} has more than {entries} entries of {bits} bits in its last byte. Discard it "
            "and compare the versions."
        )
    dtype = ring_type(bits)
    if bits == _BYTE * dtype.itemsize:
        return cast("Ring", np.frombuffer(data, dtype))
    vector = cast("Ring", np.empty(entries, dtype))
    for start, chunk in _chunks(np.frombuffer(data, np.uint8), bits):
        numbers = _unpack(chunk, bits)[: entries - start]
        vector[start : start + numbers.size] = numbers
    vector.setflags(write=False)
    return vector


def _chunks(data: NDArray[np.uint8], bits: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the first number and the bytes of each chunk."""
    nbytes = packed_bytes(_CHUNK, bits)
    for index, start in enumerate(range(0, data.size, nbytes)):
        yield index * _CHUNK, data[start : start + nbytes]


def _pack(numbers: Ring, bits: int) -> NDArray[np.uint8]:
    """Pack a few numbers into whole groups."""
    groups = -(-numbers.size // GROUP)
    padded: Words = np.zeros(groups * GROUP, np.uint64)
    padded[: numbers.size] = numbers & numbers.dtype.type((1 << bits) - 1)
    columns = np.ascontiguousarray(padded.reshape(groups, GROUP).T)
    words: Words = np.zeros((bits, groups), np.uint64)
    for place, column in enumerate(columns):
        word, low = divmod(place * bits, GROUP)
        words[word] |= column << np.uint64(low)
        if low + bits > GROUP:
            words[word + 1] |= column >> np.uint64(GROUP - low)
    return np.ascontiguousarray(words.T, "<u8").ravel().view(np.uint8)


def _unpack(data: NDArray[np.uint8], bits: int) -> Words:
    """Return the numbers of some bytes, padded with zeros to whole groups."""
    groups = -(-data.size // (_BYTE * bits))
    padded = np.zeros(groups * _BYTE * bits, np.uint8)
    padded[: data.size] = data
    words = np.ascontiguousarray(padded.view("<u8").reshape(groups, bits).T, np.uint64)
    numbers: Words = np.empty((GROUP, groups), np.uint64)
    for place in range(GROUP):
        word, low = divmod(place * bits, GROUP)
        numbers[place] = words[word] >> np.uint64(low)
        if low + bits > GROUP:
            numbers[place] |= words[word + 1] << np.uint64(GROUP - low)
    numbers &= np.uint64((1 << bits) - 1)
    return np.ascontiguousarray(numbers.T).ravel()
