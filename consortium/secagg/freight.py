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

from dataclasses import dataclass

import numpy as np

from consortium.errors import ProtocolError
from consortium.secagg import crypto, messages
from consortium.secagg.masks import Ring

_LENGTH_BYTES = 4
_NOTHING = memoryview(b"")


@dataclass(frozen=True)
class Vectors:
    """A contribution once it is decrypted; ``opened`` is None if there is no such vector."""

    context: bytes
    bits: int
    masked: memoryview
    opened: memoryview | None


def load(
    key: bytes, context: bytes, masked: Ring, opened: Ring | None
) -> tuple[messages.Contribution, list[bytes | memoryview]]:
    """Seal two vectors, the first with its masks on; gives the envelope's body and the freight."""
    front = masked.view(np.uint8).data if masked.size else _NOTHING
    behind = _NOTHING if opened is None else opened.view(np.uint8).data
    digest, sealed = crypto.encrypt_apart(key, behind, front)
    body = messages.Contribution(
        context,
        8 * masked.itemsize,
        masked.nbytes,
        opened is not None,
        digest + sealed[-crypto.TAG_BYTES :],
    )
    return body, [front, sealed]


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


def join(envelope: bytes, freight: list[bytes | memoryview]) -> bytes:
    """Put a message together."""
    return b"".join((*freight, envelope, len(envelope).to_bytes(_LENGTH_BYTES, "little")))


def part(data: bytes, limit: int) -> tuple[bytes, memoryview]:
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
