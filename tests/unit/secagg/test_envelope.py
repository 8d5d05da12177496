import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ProtocolError, SignatureError
from consortium.secagg import OVERHEAD, Opened, seal, unseal
from consortium.secagg.envelope import contradicts, has_signed
from tests.support.secagg_wire import identity, public

ROSTER = {name: public(name) for name in ("s0", "s1", "centre")}
NAME = "n" * 63


def letter(**changes: object) -> bytes:
    fields = {"run": "r", "sender": "s0", "kind": "query", "round": 3, "body": b"hello"} | changes
    return seal(identity("s0"), **fields)  # type: ignore[arg-type]


def read(data: bytes, **changes: object) -> Opened:
    due = {"run": "r", "kind": "query", "limit": 10_000} | changes
    return unseal(data, ROSTER, **due)  # type: ignore[arg-type]


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**32 - 1), st.binary())
def test_unseal_undoes_seal(run: str, kind: str, number: int, body: bytes) -> None:
    data = seal(identity("s1"), run, "s1", kind, number, body)
    opened = unseal(data, ROSTER, run=run, kind=kind, round=number, limit=len(data))
    assert opened == Opened("s1", kind, number, body, opened.signature)
    told = {"run": run, "sender": "s1", "kind": kind, "number": number}
    told |= {"digest": hashlib.sha256(body).digest(), "signature": opened.signature}
    assert has_signed(ROSTER["s1"], **told)
    for other in ({"number": number + 1}, {"kind": f"{kind}s"}, {"digest": bytes(32)}):
        assert not has_signed(ROSTER["s1"], **(told | other))
    assert not has_signed(ROSTER["s0"], **told)


def test_the_overhead_is_an_upper_bound() -> None:
    data = seal(identity("s0"), "r" * 128, NAME, NAME, 2**32 - 1, bytes(70_000))
    assert len(data) <= 70_000 + OVERHEAD


@pytest.mark.parametrize(
    "due",
    [
        {"run": "another"},
        {"kind": "release"},
        {"round": 4},
        {"sender": "s1"},
        {"limit": len(letter()) - 1},
    ],
)
def test_an_unexpected_message_is_refused(due: dict[str, object]) -> None:
    read(letter())
    with pytest.raises(ProtocolError):
        read(letter(), **due)


@given(st.integers(0, 8 * len(letter()) - 1))
def test_any_flipped_bit_is_refused(bit: int) -> None:
    data = bytearray(letter())
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ProtocolError):
        read(bytes(data))


@given(st.integers(0, len(letter()) - 1))
def test_a_cut_message_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError):
        read(letter()[:length])


@pytest.mark.parametrize("tail", [b"\x00", b"\xc0", letter()])
def test_trailing_bytes_are_refused(tail: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(letter() + tail)


@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(data)


def test_another_encoding_of_the_same_message_is_refused() -> None:
    fields = msgspec.msgpack.decode(letter())
    assert msgspec.msgpack.encode(fields) == letter()
    position = letter().index(b"\x03\xc4")
    longer = letter()[:position] + b"\xcc\x03" + letter()[position + 1 :]
    assert msgspec.msgpack.decode(longer) == fields
    with pytest.raises(ProtocolError):
        read(longer)


def test_signatures_of_others_are_refused() -> None:
    with pytest.raises(SignatureError):
        read(seal(identity("s1"), "r", "s0", "query", 3, b"hello"))
    with pytest.raises(ProtocolError, match="not on the roster"):
        read(seal(identity("s9"), "r", "s9", "query", 3, b"hello"))
    with pytest.raises(SignatureError):
        unseal(letter(), {"s0": b"no key"}, run="r", kind="query", limit=10_000)


def test_a_signature_can_not_be_moved_to_another_header() -> None:
    fields = msgspec.msgpack.decode(letter())
    for place, other in enumerate(["consortium envelope 2", "q", "s1", "k", 9, b"other"]):
        moved = list(fields)
        moved[place] = other
        due = {"run": moved[1], "kind": moved[3]}
        with pytest.raises(ProtocolError):
            read(msgspec.msgpack.encode(moved), **due)


def test_sealing_is_deterministic() -> None:
    assert letter() == letter()


def test_only_another_word_of_the_same_sender_for_the_same_place_contradicts() -> None:
    roster = {"north": public("north"), "east": public("east")}
    said = ("small-0001", "north", "unmasking", 3)
    own = seal(identity("north"), *said, b"one")
    assert contradicts(seal(identity("north"), *said, b"two"), own, roster)
    others = [
        own,
        b"anything",
        seal(identity("east"), *said, b"two"),
        seal(identity("east"), "small-0001", "east", "unmasking", 3, b"two"),
        seal(identity("north"), "small-0002", "north", "unmasking", 3, b"two"),
        seal(identity("north"), "small-0001", "north", "contribution", 3, b"two"),
        seal(identity("north"), "small-0001", "north", "unmasking", 4, b"two"),
    ]
    assert not any(contradicts(other, own, roster) for other in others)
