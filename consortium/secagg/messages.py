"""Bodies of the messages, their kinds and their largest sizes."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec

from consortium.errors import ProtocolError
from consortium.secagg import envelope
from consortium.secagg.crypto import KEY_BYTES, SEALED_OVERHEAD
from consortium.secagg.keystream import RINGS, Ring
from consortium.secagg.packing import MOST_BITS, ring_type
from consortium.secagg.participants import NAME_BYTES
from consortium.secagg.shamir import SECRET_BYTES, SHARE_BYTES

ADVERTISE = "advertise"
KEYS = "keys"
SHARE = "share"
SHARES = "shares"
SHARED = "shared"
"""A site's signed statement about its shares, for all parties."""
CONTRIBUTION = "contribution"
UNMASK = "unmask"
UNMASKING = "unmasking"
MANIFEST = "manifest"
RELEASE = "release"
BROADCAST = "broadcast"
VECTORS = "vectors"
"""Not a kind of message: the label of the key that a contribution's vectors are sealed with."""

NOTE_BYTES = 64 * 1024
"""Largest note that a site may attach to its advertisement."""
CHUNK_BYTES = 1 << 20
"""Bytes of a contribution for each digest in its manifest."""
FRAME_BYTES = 16
"""Maximum number of bytes that MessagePack adds to one value."""
SIGNATURE_BYTES = 64
HEARD_BYTES = NAME_BYTES + KEY_BYTES + SIGNATURE_BYTES + 4 * FRAME_BYTES
"""Maximum number of bytes of one neighbour's answer in a manifest."""

Bytes32 = Annotated[bytes, msgspec.Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]
Seed = Annotated[bytes, msgspec.Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a message, in MessagePack."""


class Advertisement(Body, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A site's public keys for the whole run.

    ``masks`` and ``commitments`` have one entry a round; ``note`` is the application's;
    ``holders`` are points (see `consortium.secagg.graph`), none in a complete graph.
    """

    session: Bytes32
    channel: Bytes32
    masks: tuple[Bytes32, ...]
    commitments: tuple[Bytes32, ...]
    note: bytes
    holders: tuple[int, ...] = ()


class Keys(Body, frozen=True, forbid_unknown_fields=True):
    """Message of all advertisements as they were signed, in roster order, and the hub's channel."""

    channel: Bytes32
    advertisements: tuple[bytes, ...]


class Shared(Body, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A site's statement to all parties about the shares that it gave and the common digest.

    ``root`` is that of a tree over the ciphertexts (see `consortium.secagg.merkle_tree`). So each
    holder can verify its own ciphertext without the others. ``common`` is a digest that must be the
    same at all sites, which the application makes from all notes.
    """

    transcript: Bytes32
    root: Bytes32
    common: Annotated[bytes, msgspec.Meta(max_length=KEY_BYTES)] = b""


class Share(Body, frozen=True, forbid_unknown_fields=True):
    """One ciphertext for every holder in roster order (empty for the sender itself).

    ``signed`` is the site's `Shared`, in an envelope of its own.
    """

    signed: bytes
    sealed: tuple[bytes, ...]


class SharePart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Shares of one site for one reader.

    ``signed`` is that site's `Shared`, in its envelope. ``sealed`` is the ciphertext for the
    reader, and ``path`` its way to the root. Both are empty if the reader has no shares of it.
    """

    signed: bytes
    sealed: bytes
    path: tuple[Bytes32, ...]


class Shares(Body, frozen=True, forbid_unknown_fields=True):
    """Shares of all sites for one site, the ``reader``, in roster order."""

    reader: Annotated[str, msgspec.Meta(max_length=NAME_BYTES)]
    shares: tuple[SharePart, ...]


class Contribution(Body, frozen=True, forbid_unknown_fields=True):
    """Header of a site's vectors for one round (see `consortium.secagg.contribution`).

    ``masked`` is the size in bytes of the vector to be summed. ``opened`` states whether an open
    vector is also sent. ``seal`` is the vectors' digest and tag.
    """

    context: Bytes32
    bits: int
    masked: Annotated[int, msgspec.Meta(ge=0)]
    opened: bool
    seal: Annotated[bytes, msgspec.Meta(min_length=SEALED_OVERHEAD, max_length=SEALED_OVERHEAD)]


class Broadcast(Body, frozen=True, forbid_unknown_fields=True):
    """A site's own answer, readable by all parties: packed integers modulo 2^bits of its round."""

    context: Bytes32
    vector: bytes


class Heard(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Answer of a neighbour that a site received: SHA-256 of a broadcast's body, and its signature.

    The signature is the neighbour's own, so the site that lists the answer can't invent it.
    """

    site: Annotated[str, msgspec.Meta(max_length=NAME_BYTES)]
    round: Annotated[int, msgspec.Meta(ge=1, lt=envelope.ROUNDS)]
    body: Bytes32
    signature: Annotated[
        bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)
    ]


class Manifest(Body, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Digests of the vectors that a site contributed to a round, for all parties.

    ``masked`` is the size in bytes of the masked vector, ``size`` that of the contribution before
    its manifest, and ``chunks`` are the SHA-256 of each `CHUNK_BYTES` of it. ``opened`` is the
    SHA-256 of the open vector's `Broadcast` where each site's own is released, and empty elsewhere:
    a digest of a vector that only the hub may read would let others search for it. ``heard`` are
    the neighbours' answers that the site uses, each until it is part of a released round.
    """

    context: Bytes32
    bits: int
    masked: Annotated[int, msgspec.Meta(ge=0)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    chunks: tuple[Bytes32, ...]
    opened: Annotated[bytes, msgspec.Meta(max_length=KEY_BYTES)] = b""
    heard: tuple[Heard, ...] = ()


class Request(Body, frozen=True, forbid_unknown_fields=True):
    """Message to the survivors: whose contributions arrived, and whose did not, in roster order.

    ``manifests`` are the survivors', as they were signed: the summed vectors are fixed before any
    mask is removed.
    """

    context: Bytes32
    survivors: tuple[str, ...]
    lost: tuple[str, ...]
    manifests: tuple[bytes, ...]


class Unmasking(Body, frozen=True, forbid_unknown_fields=True):
    """Shares of the survivors' self-mask seeds and of the lost sites' key seeds, as listed.

    Of those sites only whose shares the sender holds. ``request`` is the digest of the request
    that is answered.
    """

    request: Bytes32
    survivors: tuple[Bytes32, ...]
    lost: tuple[Bytes32, ...]


class Release(Body, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The hub's statement to all parties about the release of a round.

    ``request`` is the SHA-256 of the request whose answers opened the sum, empty in a round
    without masks. ``chunks`` are the SHA-256 of each `CHUNK_BYTES` of the released vector, as
    little-endian integers of 4 bytes, or 8 where ``bits`` are over 32. ``seeds`` has one for each
    site in roster order, from which the removed masks follow: a survivor's self-mask seed, or a
    lost site's key seed. It is empty if the sum itself was not released. ``manifests`` are the
    survivors', as they were signed, in a round without masks, which has no request.
    """

    context: Bytes32
    survivors: tuple[str, ...]
    lost: tuple[str, ...]
    request: bytes
    bits: int
    chunks: tuple[Bytes32, ...]
    seeds: tuple[Seed, ...]
    manifests: tuple[bytes, ...] = ()


BodyType = TypeVar("BodyType", bound=Body)


def encode(body: Body) -> bytes:
    """Encode a body; the same value always gives the same bytes."""
    return msgspec.msgpack.encode(body)


def decode(kind: type[BodyType], data: bytes, sender: str) -> BodyType:
    """Decode the body of a message.

    Raises ProtocolError if a field is missing, unknown, or of another type or length. It names the
    ``sender``.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(
            f"The {kind.__name__.lower()} of {sender} is malformed. Install the same version there."
        ) from error


def check_vectors(context: bytes, masked: Ring, opened: Ring | None, bits: int, where: str) -> None:
    """Refuse vectors that can't be a contribution of numbers with ``bits`` bits.

    Raises ProtocolError, in which ``where`` names the site.
    """
    vectors = [masked] if opened is None else [masked, opened]
    dtype = masked.dtype
    sound = all(v.ndim == 1 and v.dtype == dtype for v in vectors) and dtype in RINGS.values()
    fits = 1 <= bits <= MOST_BITS and dtype == ring_type(bits)
    if not (sound and fits) or len(context) != KEY_BYTES:
        raise ProtocolError(
            f"{where} can contribute vectors of one type, the narrowest of uint16, uint32 and "
            f"uint64 for a number, with a context of {KEY_BYTES} bytes. Convert its arrays to the "
            "round's ring."
        )


@dataclass(frozen=True)
class Limits:
    """Largest size in bytes of every message of a run."""

    sites: int
    rounds: int
    holders: int = 0
    """Number of sites with shares of a site's seeds; 0 for all."""

    @property
    def advertisement(self) -> int:
        """A site's advertisement, with the largest note."""
        keys = self.rounds * 2 * (KEY_BYTES + FRAME_BYTES)
        return envelope.OVERHEAD * 2 + NOTE_BYTES + keys + self.holders * FRAME_BYTES

    @property
    def keys(self) -> int:
        """The bundle of all advertisements."""
        return envelope.OVERHEAD + self.sites * (self.advertisement + FRAME_BYTES)

    @property
    def share(self) -> int:
        """One site's shares for all its holders."""
        return envelope.OVERHEAD + self.shared + (self.holders or self.sites) * self._sealed

    @property
    def shares(self) -> int:
        """Shares of all sites for one site."""
        path = self.sites.bit_length() * (KEY_BYTES + FRAME_BYTES)
        one = self.shared + self._sealed + path + FRAME_BYTES
        return envelope.OVERHEAD + NAME_BYTES + FRAME_BYTES + self.sites * one

    @property
    def shared(self) -> int:
        """A site's statement about its shares."""
        return envelope.OVERHEAD + 3 * (KEY_BYTES + FRAME_BYTES) + FRAME_BYTES

    @property
    def _sealed(self) -> int:
        """A ciphertext for one holder."""
        return self.rounds * 2 * SHARE_BYTES + SEALED_OVERHEAD + FRAME_BYTES

    def request(self, nbytes: int, heard: int = 0) -> int:
        """Return the size of the hub's lists with manifests, for vectors of ``nbytes`` in all."""
        one = NAME_BYTES + FRAME_BYTES + self.manifest(nbytes, heard) + FRAME_BYTES
        return envelope.OVERHEAD + self.sites * one

    def release(self, nbytes: int, heard: int = 0) -> int:
        """Return the size of the hub's statement about ``nbytes``, with the seeds of the masks."""
        chunks = (1 + nbytes // CHUNK_BYTES) * (KEY_BYTES + FRAME_BYTES)
        one = NAME_BYTES + SECRET_BYTES + 3 * FRAME_BYTES + self.manifest(nbytes, heard)
        return envelope.OVERHEAD + 2 * KEY_BYTES + 8 * FRAME_BYTES + chunks + self.sites * one

    @property
    def unmasking(self) -> int:
        """A site's answer to them."""
        return envelope.OVERHEAD + SEALED_OVERHEAD + self.sites * (SHARE_BYTES + FRAME_BYTES)

    @staticmethod
    def broadcast(nbytes: int) -> int:
        """Return the size of a site's own answer of ``nbytes``, readable by its neighbours."""
        return envelope.OVERHEAD + KEY_BYTES + 6 * FRAME_BYTES + nbytes

    @staticmethod
    def manifest(nbytes: int, heard: int = 0) -> int:
        """Return the size of a manifest of ``nbytes`` with ``heard`` neighbours' answers."""
        digests = (3 + nbytes // CHUNK_BYTES) * (KEY_BYTES + FRAME_BYTES)
        return envelope.OVERHEAD + KEY_BYTES + 8 * FRAME_BYTES + digests + heard * HEARD_BYTES

    @staticmethod
    def contribution(nbytes: int, heard: int = 0) -> int:
        """Return the size of a site's vectors, ``nbytes`` in all, with their manifest."""
        sealed = envelope.OVERHEAD + 4 * SEALED_OVERHEAD + 8 * FRAME_BYTES + nbytes
        return sealed + Limits.manifest(nbytes, heard) + FRAME_BYTES
