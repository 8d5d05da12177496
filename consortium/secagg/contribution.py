"""A contribution as it travels: long vectors as freight, with the signed envelope at their end.

The masked vector is a ciphertext already: whoever lacks one of the seeds under it sees uniform
numbers. It is not encrypted again, only authenticated, beside the open vector, which is both. And
a signature needs a hash that nobody can find collisions for: SHA-256 takes four times as long as
the cipher that masks. Hub and site share a key, though, under which AES-GCM's tag binds a message
at a tenth of that cost. So the site signs digest and tag (its *seal*) in place of the vectors:
who changes the vectors fails at the tag, who changes the seal fails at the signature. What is lost
is evidence for third parties, for the hub knows the key and could fit other bytes to a seal; no
step of the protocol shows a contribution to anybody else.

Layout: masked vector, encrypted open vector, tag, envelope, length of the envelope (4 bytes,
little-endian). With the vector in front, the hub adds it where it lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from consortium.errors import ProtocolError
from consortium.secagg import crypto, envelope, messages
from consortium.secagg.keystream import Ring

_LENGTH_BYTES = 4
_NOTHING = memoryview(b"")


@dataclass(frozen=True)
class Vectors:
    """A contribution once it is decrypted; ``opened`` is None if there is no such vector."""

    context: bytes
    bits: int
    masked: memoryview
    opened: memoryview | None


class Room:
    """A contribution in the making: it is masked where it will be sent from.

    A copy of some megabytes takes as long as masks from two peers, most of it for fresh pages of
    memory; NumPy asks for large ones.

    Parameters
    ----------
    entries : int
        Of the masked vector, which its owner writes to ``Room.masked``.
    dtype : uint32 or uint64
    opened : array of the same type, optional
    """

    def __init__(self, entries: int, dtype: np.dtype[Any], opened: Ring | None) -> None:
        self._end = entries * dtype.itemsize
        beside = 0 if opened is None else opened.nbytes
        self._room = np.empty(messages.Limits.contribution(self._end + beside), dtype=np.uint8)
        self._opened = opened
        self.masked: Ring = self._room[: self._end].view(dtype)

    def load(self, key: bytes, context: bytes) -> messages.Contribution:
        """Seal both vectors, the first with its masks on; gives the envelope's body."""
        front = self._room[: self._end].data if self._end else _NOTHING
        behind = _NOTHING if self._opened is None else self._opened.view(np.uint8).data
        digest, sealed = crypto.encrypt_apart(key, behind, front)
        body = messages.Contribution(
            context,
            8 * self.masked.itemsize,
            self.masked.nbytes,
            self._opened is not None,
            digest + sealed[-crypto.TAG_BYTES :],
        )
        self._append(sealed)
        return body

    def close(self, signed: bytes) -> memoryview:
        """Put the envelope behind the vectors; the message can't be changed any more."""
        self._append(signed)
        self._append(len(signed).to_bytes(_LENGTH_BYTES, "little"))
        self._room.setflags(write=False)
        return self._room[: self._end].data

    def _append(self, data: bytes) -> None:
        start, self._end = self._end, self._end + len(data)
        self._room[start : self._end] = np.frombuffer(data, dtype=np.uint8)


def unload(key: bytes, body: messages.Contribution, freight: memoryview, what: str) -> Vectors:
    """Undo `load`.

    Raises
    ------
    ProtocolError
        If the freight is not the one that was sealed; ``what`` names the message.
    """
    digest, tag = body.seal[: -crypto.TAG_BYTES], body.seal[-crypto.TAG_BYTES :]
    masked, sealed = freight[: body.masked], freight[body.masked :]
    if sealed[-crypto.TAG_BYTES :] != tag:
        raise ProtocolError(f"{what} carries vectors that its site did not seal; discard it.")
    plain = memoryview(crypto.decrypt_apart(key, digest, sealed, what, masked))
    return Vectors(body.context, body.bits, masked, plain if body.opened else None)


def part(data: bytes | memoryview, limit: int) -> tuple[bytes, memoryview]:
    """Take a message apart into its envelope and its freight.

    Raises
    ------
    ProtocolError
        If it is over ``limit`` bytes, or too short for the envelope that it claims to have.
    """
    whole = memoryview(data)
    end = len(data) - _LENGTH_BYTES
    start = end - int.from_bytes(whole[max(end, 0) :], "little")
    if len(data) > limit or not 0 <= start <= end:
        raise ProtocolError(
            f"A {messages.CONTRIBUTION} message of {len(data)} bytes is cut short or over its "
            f"limit of {limit}; discard it."
        )
    return bytes(whole[start:end]), whole[:start]


def contradicts(found: bytes, own: bytes | memoryview, roster: Mapping[str, bytes]) -> bool:
    """Whether a sender has signed something else in the place of a message, with freight or none.

    Vectors that were changed under the sender's own envelope don't count: anybody can do that.

    Parameters
    ----------
    found : bytes
        Anything at all.
    own : bytes
        The sender's own message.
    roster : mapping of str to bytes
        Everybody's Ed25519 public key.
    """
    try:
        return envelope.contradicts(found, bytes(own), roster)
    except ProtocolError:  # a contribution, then
        signed, _ = part(own, len(own))
    try:
        theirs, _ = part(found, len(found))
    except ProtocolError:
        return False
    return envelope.contradicts(theirs, signed, roster)
