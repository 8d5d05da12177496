"""The cryptographic primitives of secure aggregation, each a thin call of pyca/cryptography."""

from __future__ import annotations

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
SEALED_OVERHEAD = 48
"""Bytes that `encrypt` adds: the plaintext's digest and GCM's tag."""

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


def pack(*parts: str | int | bytes) -> bytes:
    """Encode a tuple so that no two different tuples have the same bytes (MessagePack)."""
    return msgspec.msgpack.encode(parts)


def digest(*parts: str | int | bytes) -> bytes:
    """SHA-256 of `pack`, 32 bytes."""
    return hashlib.sha256(pack(*parts)).digest()


def derive(
    key: bytes, *info: str | int | bytes, length: int = KEY_BYTES, salt: bytes = b""
) -> bytes:
    """HKDF-SHA256 (RFC 5869) with the packed ``info``; at most 8160 bytes."""
    return HKDF(hashes.SHA256(), length, salt, pack(*info)).derive(key)


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    """X25519 (RFC 7748): the 32-byte secret that both owners compute.

    Raises
    ------
    ProtocolError
        If the public key is one of those that agree on zero with everybody.
    """
    check_public_key(public, "the partner")
    return private.exchange(X25519PublicKey.from_public_bytes(public))


def check_public_key(public: bytes, owner: str) -> None:
    """Refuse a public key of low order, whose agreements are no secret.

    Raises
    ------
    ProtocolError
        It names the ``owner``.
    """
    u = (int.from_bytes(public, "little") & ((1 << 255) - 1)) % _PRIME
    if len(public) != KEY_BYTES or u in _LOW_ORDER:
        raise ProtocolError(
            f"A public key of {owner} is not a sound X25519 key; set it up again with a new secret."
        )


def encrypt(key: bytes, plaintext: bytes) -> bytes:
    """Encrypt and authenticate; the same key may meet several plaintexts.

    A site that crashes, or is restored from an older copy of its disk, derives its keys again and
    may then encrypt something else. AES-GCM would give itself away if a key and nonce came
    twice, so the working key is derived from ``key`` and a keyed digest of the plaintext, and the
    nonce is fixed: two different plaintexts never share a working key, and equal plaintexts give
    equal bytes. (AES-GCM-SIV promises the same at five times the cost.)

    Parameters
    ----------
    key : bytes
        32 bytes, bound by its derivation to run, round, sender, receiver and purpose.
    plaintext : bytes

    Returns
    -------
    bytes
        Digest (32), ciphertext, tag (16).
    """
    synthetic = hmac.digest(derive(key, "plaintext digest"), plaintext, "sha256")
    return synthetic + _cipher(key, synthetic).encrypt(bytes(12), plaintext, None)


def decrypt(key: bytes, sealed: bytes, what: str) -> bytes:
    """Undo `encrypt`.

    Raises
    ------
    SignatureError
        If the key is another one or a bit was changed; ``what`` names the message.
    """
    synthetic, ciphertext = sealed[:32], memoryview(sealed)[32:]
    try:
        return _cipher(key, synthetic).decrypt(bytes(12), ciphertext, None)
    except (InvalidTag, ValueError) as error:
        raise SignatureError(
            f"{what} can't be decrypted; ask its sender to send the stored bytes again."
        ) from error


def _cipher(key: bytes, synthetic: bytes) -> AESGCM:
    return AESGCM(derive(key, "encryption", salt=synthetic))
