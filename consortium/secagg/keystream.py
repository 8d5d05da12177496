"""Key streams as masks, and which masks a site adds or subtracts.

A stream is AES-128 in counter mode, read as little-endian integers modulo 2^bits.

The same functions give the masks that a site adds to its vector and those that the hub removes when
a site is lost.

With the sites in roster order, site u adds PRG(s_uv) for every later neighbour v and subtracts it
for every earlier one. The masks cancel in the sum.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from consortium.secagg.crypto import shared_secret
from consortium.secagg.key_directory import Directory
from consortium.secagg.participants import Participants

Ring = NDArray[np.uint16] | NDArray[np.uint32] | NDArray[np.uint64]
"""Vector over the integers modulo 2^16, 2^32 or 2^64, or of numbers of fewer bits."""
RingType = np.dtype[np.uint16] | np.dtype[np.uint32] | np.dtype[np.uint64]

RINGS: Mapping[int, RingType] = MappingProxyType(
    {16: np.dtype("<u2"), 32: np.dtype("<u4"), 64: np.dtype("<u8")}
)
"""Little-endian unsigned types by their bits, the narrowest first."""
STREAM_KEY_BYTES = 32
CHUNK_BYTES = 128 * 1024
"""Zeros, key stream and sum of one chunk stay in a core's second-level cache."""


def add_streams(
    total: Ring, added: Sequence[bytes], subtracted: Sequence[bytes], source: Ring | None = None
) -> None:
    """Add and subtract masks in place, modulo the type's own range.

    All streams pass over one chunk before the next one. So memory is read once for any number of
    sites, and no mask exists as a whole.

    Parameters
    ----------
    total : array of a type of `RINGS`, shape (entries,)
        Changed in place.
    added, subtracted : sequence of bytes
        32-byte stream keys (see `_encryptor`), each good for one mask.
    source : array as ``total``, optional
        Vector to which the masks are added (default: ``total``).
    """
    keyed = [*((key, np.add) for key in added), *((key, np.subtract) for key in subtracted)]
    streams = [(_encryptor(key), combine) for key, combine in keyed]
    zeros = memoryview(bytes(CHUNK_BYTES))
    entries = CHUNK_BYTES // total.itemsize
    buffer = np.empty(entries, total.dtype)
    for start in range(0, total.size, entries):
        chunk = total[start : start + entries]
        mask = buffer[: chunk.size]
        window = mask.view(np.uint8).data
        if source is not None:
            np.copyto(chunk, source[start : start + entries])
        for stream, combine in streams:
            stream.update_into(zeros[: chunk.nbytes], window)
            combine(chunk, mask, out=chunk)


def key_stream(key: bytes, length: int) -> bytes:
    """Return the first ``length`` bytes of the stream of a 32-byte stream key."""
    return bytes(_encryptor(key).update(bytes(length)))


def _encryptor(key: bytes) -> CipherContext:
    """Return AES-128-CTR whose key and first counter are both secret.

    A secret first counter prevents the attack that tests one guess against all streams of AES-128,
    at less cost than AES-256.
    """
    return Cipher(algorithms.AES128(key[:16]), modes.CTR(key[16:STREAM_KEY_BYTES])).encryptor()


def pair_masks(
    directory: Directory,
    roster: Participants,
    private: X25519PrivateKey,
    site: str,
    peers: Iterable[str],
    number: int,
    context: bytes,
) -> tuple[list[bytes], list[bytes]]:
    """Stream keys of the masks that a site adds, and of those it subtracts.

    Parameters
    ----------
    directory, roster
        The run's set-up.
    private : X25519PrivateKey
        The site's own for this round.
    peers : iterable of str
        Its neighbours that count.
    number : int
        Round.
    context : bytes
        Digest of the round's question.
    """
    added: list[bytes] = []
    subtracted: list[bytes] = []
    place = {name: index for index, name in enumerate(roster.sites)}
    for peer in peers:
        shared = shared_secret(private, directory.mask_key(peer, number))
        first, second = (site, peer) if place[site] < place[peer] else (peer, site)
        key = directory.keys.pair_mask(shared, number, context, first, second)
        (added if first == site else subtracted).append(key)
    return added, subtracted
