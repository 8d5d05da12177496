"""Vectors under way: whatever is changed, cut or put together anew is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ProtocolError
from consortium.secagg import CENTRE, contribution, crypto, messages, seal
from consortium.secagg.packing import pack
from consortium.secagg.participants import NAME_BYTES
from tests.support.secagg_wire import Wire, context, identity, ring, vectors, with_payload

KEY = bytes(range(32))
LIMIT = 1 << 16


def sealed_vectors(clear: bool = False) -> tuple[messages.Contribution, memoryview]:
    """Ten masked and six open numbers as they travel."""
    room = contribution.SealedVectors(10, 32, ring(np.arange(6), 32), clear=clear)
    room.masked[:] = np.arange(10)
    body = room.load(KEY, bytes(32))
    return body, contribution.split_message(
        room.close(b"", bytes(32), messages.encode), LIMIT
    ).payload


@given(
    masked=st.integers(0, 20),
    opened=st.none() | st.integers(0, 20),
    bits=st.sampled_from([32, 64, 11, 40]),
    clear=st.booleans(),
)
def test_unload_undoes_load(masked: int, opened: int | None, bits: int, clear: bool) -> None:
    first = ring(np.arange(masked), bits)
    second = None if opened is None else ring(np.arange(opened) + 100, bits)
    room = contribution.SealedVectors(first.size, bits, second, clear=clear)
    room.masked[:] = first
    body = room.load(KEY, bytes(32))
    parts = contribution.split_message(room.close(b"envelope", bytes(32), messages.encode), LIMIT)
    assert parts.envelope == b"envelope"
    manifest = messages.decode(messages.Manifest, parts.manifest, "it")
    assert contribution.check_manifest(manifest, parts, body)
    front = pack(first, bits).tobytes()
    behind = b"" if second is None else pack(second, bits).tobytes()
    lies_open = bytes(parts.before).startswith(front + behind)
    assert lies_open == (clear or not behind)
    found = contribution.unload(KEY, body, parts.payload, "It", clear=clear)
    assert found.masked == front
    assert found.opened == (None if second is None else behind)
    assert (found.context, found.bits) == (bytes(32), bits)


@given(bit=st.integers(0, 8 * (40 + 24 + 16) - 1), clear=st.booleans())
def test_any_flipped_bit_of_the_payload_is_noticed(bit: int, clear: bool) -> None:
    body, sealed = sealed_vectors(clear)
    load = bytearray(sealed)
    load[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ProtocolError):
        contribution.unload(KEY, body, memoryview(bytes(load)), "It", clear=clear)


@pytest.mark.parametrize("shift", [-4, 4])
def test_the_border_of_the_two_vectors_is_sealed(shift: int) -> None:
    body, load = sealed_vectors()
    moved = messages.Contribution(body.context, 32, body.masked + shift, True, body.seal)
    with pytest.raises(ProtocolError):
        contribution.unload(KEY, moved, load, "It")


@given(st.binary(max_size=12), st.integers(0, 2**32 - 1))
def test_a_message_is_parted_within_its_bytes_or_refused(data: bytes, claim: int) -> None:
    message = data + claim.to_bytes(4, "little") + bytes(4)  # and no manifest
    if claim <= len(data):
        parts = contribution.split_message(message, LIMIT)
        assert bytes(parts.payload) + parts.envelope == data
        assert len(parts.envelope) == claim
    else:
        with pytest.raises(ProtocolError):
            contribution.split_message(message, LIMIT)


@pytest.mark.parametrize("size", [0, 3, 4, 7])
def test_too_short_for_a_length(size: int) -> None:
    with pytest.raises(ProtocolError):
        contribution.split_message(bytes(size), LIMIT)


def test_a_message_over_its_limit_is_refused_unread() -> None:
    with pytest.raises(ProtocolError, match="limit of 99"):
        contribution.split_message(bytes(96) + bytes(4), 99)


def test_the_payload_of_one_site_under_anothers_envelope_is_refused() -> None:
    wire = Wire().set_up()
    values = vectors(wire.parties, 8)
    wire.call(CENTRE, "open", 1, context(1), 8, 32)
    sent = [wire.parties[s].contribute(1, context(1), values[s]) for s in ("s0", "s1")]
    mine, other = (contribution.split_message(data, LIMIT) for data in sent)
    with pytest.raises(ProtocolError, match="did not seal"):
        wire.hub.receive_contribution(with_payload(mine.envelope, other.payload, mine.manifest))
    assert wire.hub.contributed(1) == ()
    assert [wire.hub.receive_contribution(data) for data in sent] == ["s0", "s1"]


def test_the_keyed_digest_tells_tuples_apart() -> None:
    known = {
        crypto.keyed_digest(key, *parts)
        for key in (KEY, bytes(32))
        for parts in ((b"", b"ab"), (b"a", b"b"), (b"ab", b""), (b"ab",), (b"ab\0", b""))
    }
    assert len(known) == 10


def test_the_longest_manifest_is_within_its_limit() -> None:
    """Of the longest names, with as many answers of neighbours as are planned for."""
    name, size, heard = "n" * NAME_BYTES, 3 << 20, 7
    told = messages.Heard(name, 2**32 - 1, bytes(32), bytes(64))
    chunks = (bytes(32),) * (1 + (size + 2000) // messages.CHUNK_BYTES)
    body = messages.Manifest(bytes(32), 64, size, size + 2000, chunks, bytes(32), (told,) * heard)
    run, largest = "r" * (NAME_BYTES + 5), 2**32 - 1
    message = seal(identity("s0"), run, name, messages.MANIFEST, largest, messages.encode(body))
    assert len(message) <= messages.Limits.manifest(size, heard)
    assert len(message) > messages.Limits.manifest(size, heard - 4)
