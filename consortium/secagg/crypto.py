"""The cryptographic primitives of secure aggregation, and the encoding of hashed values."""

import hashlib
import hmac

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from consortium.errors import ProtocolError, SignatureError

KEY_BYTES = 32
DIGEST_BYTES = 32
TAG_BYTES = 16
SEALED_OVERHEAD = DIGEST_BYTES + TAG_BYTES
"""Bytes that `encrypt` adds: the plaintext's digest and GCM's tag."""
_NONCE = bytes(12)

_PRIME = 2**255 - 19
_LOW_ORDER = frozenset(
    {
        0,
        1,
        _PRIME - 1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    }
)
"""u-coordinates of order 1, 2, 4 and 8, on Curve25519 or its twist: they agree on zero."""


def pack_tuple(*parts: str | int | bytes) -> bytes:
    """Encode a tuple as MessagePack, in which different tuples have different bytes."""
    return msgspec.msgpack.encode(parts)


def digest(*parts: str | int | bytes) -> bytes:
    """Return the SHA-256 of `pack_tuple`, 32 bytes."""
    return hashlib.sha256(pack_tuple(*parts)).digest()


def derive(
    key: bytes, *info: str | int | bytes, length: int = KEY_BYTES, salt: bytes = b""
) -> bytes:
    """Return at most 8160 bytes of HKDF-SHA256 (RFC 5869) with the packed ``info``."""
    return HKDF(hashes.SHA256(), length, salt, pack_tuple(*info)).derive(key)


def shared_secret(private: X25519PrivateKey, public: bytes) -> bytes:
    """Return the 32-byte secret of X25519 (RFC 7748) that both owners compute.

    Raises ProtocolError if the public key has low order: every agreement with it is zero.
    """
    check_public_key(public, "the partner")
    return private.exchange(X25519PublicKey.from_public_bytes(public))


def check_public_key(public: bytes, owner: str) -> None:
    """Refuse a public key of low order, because agreements with it are not secret.

    Raises ProtocolError, which names the ``owner``.
    """
    u = (int.from_bytes(public, "little") & ((1 << 255) - 1)) % _PRIME
    if len(public) != KEY_BYTES or u in _LOW_ORDER:
        raise ProtocolError(
            f"A public key of {owner} is not a sound X25519 key. Set it up again with a new secret."
        )


def encrypt(key: bytes, plaintext: bytes) -> bytes:
    """Encrypt and authenticate; the same key may meet several plaintexts (see `encrypt_apart`).

    Parameters
    ----------
    key : bytes
        32 bytes, bound by its derivation to run, round, sender, receiver and purpose.

    Returns
    -------
    bytes
        Digest (32), ciphertext, tag (16).
    """
    return b"".join(encrypt_apart(key, plaintext))


def encrypt_apart(
    key: bytes, plaintext: bytes | memoryview, associated: bytes | memoryview = b""
) -> tuple[bytes, bytes]:
    """Encrypt and authenticate; returns the digest and, uncopied, the ciphertext with its tag.

    A site that crashes, or is restored from an older copy of its disk, derives its keys again and
    may then encrypt another message. AES-GCM is broken if a key and nonce are used twice. So the
    working key is derived from ``key`` and a keyed digest of the message, and the nonce is fixed.
    Two different messages never share a working key, and equal ones give equal bytes. AES-GCM-SIV
    has the same property at five times the cost.

    Parameters
    ----------
    key, plaintext : bytes
        As in `encrypt`.
    associated : bytes
        Also authenticated, but neither encrypted nor returned. Only its keyed digest enters the
        cipher, so it is read once.
    """
    mark = keyed_digest(key, associated)
    synthetic = keyed_digest(key, plaintext, mark)
    return synthetic, _cipher(key, synthetic).encrypt(_NONCE, plaintext, mark)


def keyed_digest(key: bytes, *parts: bytes | memoryview) -> bytes:
    """Return a keyed digest of a tuple of strings, 32 bytes that look random without the key.

    A universal hash under a pseudorandom function, each with a key of its own: GHASH (as the tag
    that AES-GCM gives to associated data) of each part, all under HMAC-SHA256. Two strings of n
    bytes, chosen without the key, have equal digests with probability of at most n/2^131. Unlike a
    tag, the digest may be shown for any number of messages, because HMAC hides the value of the
    hash. It costs a tenth of SHA-256. M. N. Wegman and J. L. Carter, New hash functions and their
    use in authentication and set equality, Journal of Computer and System Sciences 22 (1981).
    """
    keys = derive(key, "plaintext digest", length=2 * KEY_BYTES)
    universal = AESGCM(keys[:KEY_BYTES])
    hashed = b"".join(universal.encrypt(_NONCE, b"", part) for part in parts)
    return hmac.digest(keys[KEY_BYTES:], hashed, "sha256")


def decrypt(key: bytes, sealed: bytes, what: str) -> bytes:
    """Undo `encrypt`.

    Raises SignatureError if the key is another one or a bit was changed; ``what`` names the
    message.
    """
    return decrypt_apart(key, sealed[:DIGEST_BYTES], memoryview(sealed)[DIGEST_BYTES:], what)


def decrypt_apart(
    key: bytes,
    synthetic: bytes,
    ciphertext: memoryview,
    what: str,
    associated: bytes | memoryview = b"",
) -> bytes:
    """Undo `encrypt_apart`; raises as `decrypt`."""
    try:
        return _cipher(key, synthetic).decrypt(_NONCE, ciphertext, keyed_digest(key, associated))
    except (InvalidTag, ValueError) as error:
        raise SignatureError(
            f"{what} can't be decrypted. Ask its sender to send the stored bytes again."
        ) from error


def _cipher(key: bytes, synthetic: bytes) -> AESGCM:
    return AESGCM(derive(key, "encryption", salt=synthetic))
