"""Contributions as they are sent: long vectors as payload, followed by the signed envelope.

The masked vector is already a ciphertext: without all the seeds of its masks it looks like uniform
numbers. So it is authenticated and not encrypted again. The open vector is encrypted and
authenticated. A signature over the vectors would need a collision-resistant hash, and SHA-256 takes
four times as long as the cipher of the masks. But the hub and the site share a key, under which the
tag of AES-GCM authenticates a message at a tenth of that cost. So the site signs the digest and the
tag (its *seal*) instead of the vectors. A changed vector fails the check of the tag, and a changed
seal that of the signature.

The seal is not evidence for third parties, because the hub has the key and could find other bytes
with the same seal. So the site also signs a manifest, which all parties can check: the SHA-256 of
each MiB that it sends. The hub publishes the manifests of all survivors before it asks for the
seeds that remove masks. So no vector can be chosen after the sum of the others is known.

Vectors are packed (see `consortium.secagg.packing`).
Layout: masked vector, encrypted open vector, tag, envelope, length of the envelope (4 bytes,
little-endian), manifest, length of the manifest. The vector comes first, so the hub can add it
without copying. An open vector that all may read follows the masked one unencrypted, is
authenticated with it, and only the tag follows.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from consortium.errors import ProtocolError
from consortium.secagg import crypto, envelope, messages, packing
from consortium.secagg.keystream import Ring

_LENGTH_BYTES = 4
_NOTHING = memoryview(b"")


@dataclass(frozen=True)
class Vectors:
    """A contribution once it is decrypted, still packed; ``opened`` is None if there is none."""

    context: bytes
    bits: int
    masked: memoryview
    opened: memoryview | None


class SealedVectors:
    """Buffer of a contribution, in which the vector is masked without a copy.

    A copy of some megabytes takes as long as masks from two peers, most of it for fresh pages of
    memory. NumPy asks for large ones.

    Parameters
    ----------
    entries : int
        Of the masked vector, which its owner writes to ``SealedVectors.masked``.
    bits : int
        Of a number of the round.
    opened : array of `packing.ring_type`, optional
    heard : sequence of Heard
        Neighbours' answers that the manifest lists.
    clear : bool
        Whether the open vector follows the masked one unencrypted.
    """

    def __init__(
        self,
        entries: int,
        bits: int,
        opened: Ring | None,
        heard: Sequence[messages.Heard] = (),
        *,
        clear: bool = False,
    ) -> None:
        self._opened = None if opened is None else packing.pack(opened, bits).data
        opened_bytes = 0 if self._opened is None else len(self._opened)
        dtype = packing.ring_type(bits)
        packed = packing.packed_bytes(entries, bits)
        limit = messages.Limits.contribution(packed + opened_bytes, len(heard))
        plain = entries * dtype.itemsize
        self._room = np.empty(max(limit, plain), dtype=np.uint8)
        self._bits = bits
        self._heard = tuple(heard)
        self._clear = clear
        self._end = 0
        self.masked: Ring = self._room[:plain].view(dtype)

    def load(self, key: bytes, context: bytes) -> messages.Contribution:
        """Pack and seal both vectors, the first with its masks on; gives the envelope's body."""
        size = self._end = packing.pack_into(self._room, self.masked, self._bits)
        if self._clear and self._opened is not None:
            self._append(self._opened)
        front = self._room[: self._end].data if self._end else _NOTHING
        hidden = None if self._clear else self._opened
        digest, sealed = crypto.encrypt_apart(key, hidden or _NOTHING, front)
        self._masked = size
        body = messages.Contribution(
            context,
            self._bits,
            size,
            self._opened is not None,
            digest + sealed[-crypto.TAG_BYTES :],
        )
        self._append(sealed)
        return body

    def close(
        self,
        signed: bytes,
        context: bytes,
        sign: Callable[[messages.Manifest], bytes],
        *,
        released: bool = False,
    ) -> memoryview:
        """Put envelope and manifest behind the vectors. The message can't be changed any more.

        Parameters
        ----------
        signed : bytes
            The envelope.
        context : bytes
            As for `load`.
        sign : callable
            Makes the manifest's envelope.
        released : bool
            Whether the open vector becomes public as it is.
        """
        self._append_with_length(signed)
        size = self._end
        chunks = digests(self._room[:size].data)
        opened = b""
        if released and self._opened is not None:
            opened = opened_digest(context, self._opened)
        manifest = messages.Manifest(
            context=context,
            bits=self._bits,
            masked=self._masked,
            size=size,
            chunks=chunks,
            opened=opened,
            heard=self._heard,
        )
        self._append_with_length(sign(manifest))
        self._room.setflags(write=False)
        return self._room[: self._end].data

    def _append_with_length(self, data: bytes) -> None:
        self._append(data)
        self._append(len(data).to_bytes(_LENGTH_BYTES, "little"))

    def _append(self, data: bytes | memoryview) -> None:
        start = self._end
        self._end = self._end + len(data)
        self._room[start : self._end] = np.frombuffer(data, dtype=np.uint8)


def unload(
    key: bytes,
    body: messages.Contribution,
    payload: memoryview,
    what: str,
    *,
    clear: bool = False,
) -> Vectors:
    """Undo `load`; ``clear`` as for `SealedVectors`.

    Raises ProtocolError if the payload is not the one that was sealed; ``what`` names the message.
    """
    digest = body.seal[: -crypto.TAG_BYTES]
    tag = body.seal[-crypto.TAG_BYTES :]
    start = max(len(payload) - crypto.TAG_BYTES, 0) if clear else body.masked
    front = payload[:start]
    sealed = payload[start:]
    if sealed[-crypto.TAG_BYTES :] != tag:
        raise ProtocolError(f"{what} carries vectors that its site did not seal. Discard it.")
    plain = memoryview(crypto.decrypt_apart(key, digest, sealed, what, front))
    opened = front[body.masked :] if clear else plain
    return Vectors(body.context, body.bits, front[: body.masked], opened if body.opened else None)


def opened_digest(context: bytes, vector: bytes | memoryview) -> bytes:
    """Return the SHA-256 of an open vector's broadcast, which a site signs if it is released."""
    message = messages.Broadcast(context, cast("bytes", vector))
    return hashlib.sha256(messages.encode(message)).digest()


def digests(data: memoryview) -> tuple[bytes, ...]:
    """Return the SHA-256 of each `messages.CHUNK_BYTES`."""
    starts = range(0, len(data), messages.CHUNK_BYTES)
    return tuple(hashlib.sha256(data[s : s + messages.CHUNK_BYTES]).digest() for s in starts)


@dataclass(frozen=True)
class Parts:
    """Parts of a received contribution, not yet verified.

    ``before`` is everything before the manifest, which contains its digests.
    """

    envelope: bytes
    payload: memoryview
    manifest: bytes
    before: memoryview


def split_message(data: bytes | memoryview, limit: int) -> Parts:
    """Split a stored contribution into envelope and payload.

    Raises ProtocolError if it is over ``limit`` bytes, or too short for the envelopes that it
    claims to have.
    """
    manifest, before = _last(memoryview(data), limit)
    envelope, payload = _last(before, limit)
    return Parts(envelope, payload, manifest, before)


def _last(data: memoryview, limit: int) -> tuple[bytes, memoryview]:
    """Return the last envelope of a message, and the bytes before it."""
    end = len(data) - _LENGTH_BYTES
    start = end - int.from_bytes(data[max(end, 0) :], "little")
    if len(data) > limit or not 0 <= start <= end:
        raise ProtocolError(
            f"The {messages.CONTRIBUTION} message of {len(data)} bytes is cut short or over its "
            f"limit of {limit}. Discard it."
        )
    return bytes(data[start:end]), data[:start]


def check_manifest(
    body: messages.Manifest,
    parts: Parts,
    sealed: messages.Contribution,
    released: memoryview | None = None,
) -> bool:
    """Return whether a manifest belongs to exactly this contribution.

    ``released`` is the open vector, if it becomes public as it is.
    """
    if body.opened != (b"" if released is None else opened_digest(body.context, released)):
        return False
    header = body.context, body.bits, body.masked, body.size
    found = sealed.context, sealed.bits, sealed.masked, len(parts.before)
    return header == found and body.chunks == digests(parts.before)


def contribution_contradicts(
    found: bytes, own: bytes | memoryview, roster: Mapping[str, bytes]
) -> bool:
    """Return whether a sender has signed another message in place of its own.

    Changed vectors under the sender's own envelope don't count, because any party can change them.

    Parameters
    ----------
    found : bytes
        Any bytes, with or without payload.
    own : bytes
        The sender's own message.
    roster : mapping of str to bytes
        Ed25519 public keys by name.
    """
    try:
        return envelope.contradicts(found, bytes(own), roster)
    except ProtocolError:  # a contribution, then
        signed = split_message(own, len(own)).envelope
    try:
        theirs = split_message(found, len(found)).envelope
    except ProtocolError:
        return False
    return envelope.contradicts(theirs, signed, roster)
