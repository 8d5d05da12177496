"""The envelope that every message of a study travels in: who says what in which run and round.

The signature is Ed25519 (RFC 8032) over a label, the header and SHA-256 of the body, packed so
that no two headers have the same bytes. Signing the body's digest instead of the body lets a
message of megabytes be hashed once, by the fastest hash there is.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from consortium.errors import ProtocolError, SignatureError
from consortium.secagg.crypto import pack_tuple

LABEL = "consortium envelope 1"
OVERHEAD = 512
"""Maximum number of bytes that an envelope adds to its body, with names of up to 63 characters."""
ROUNDS = 2**32


class _Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    label: str
    run: str
    sender: str
    kind: str
    round: int
    body: bytes
    signature: bytes

    def signed(self) -> bytes:
        """Return the bytes under the signature."""
        digest = hashlib.sha256(self.body).digest()
        return _under(self.run, self.sender, self.kind, self.round, digest)


def _under(run: str, sender: str, kind: str, number: int, digest: bytes) -> bytes:
    fields = (LABEL, run, sender, kind, number, digest)
    return pack_tuple(*fields)


@dataclass(frozen=True)
class Opened:
    """Content of an envelope whose signature was verified."""

    sender: str
    kind: str
    round: int
    body: bytes
    signature: bytes


# `round` is the word of the protocol, and nothing here rounds a number.
def seal(
    key: Ed25519PrivateKey,
    run: str,
    sender: str,
    kind: str,
    round: int,  # noqa: A002
    body: bytes,
) -> bytes:
    """Sign a message and put it in its envelope.

    Parameters
    ----------
    key : Ed25519PrivateKey
        The sender's identity.
    run : str
        Name of the study's run, unique for ever.
    sender, kind : str
        Name in the roster, and kind of message.
    round : int
        0 for messages that belong to no round.

    Returns
    -------
    bytes
        The same for the same arguments: Ed25519 draws no random number.
    """
    unsigned = _Envelope(
        label=LABEL, run=run, sender=sender, kind=kind, round=round, body=body, signature=b""
    )
    signature = key.sign(unsigned.signed())
    return msgspec.msgpack.encode(msgspec.structs.replace(unsigned, signature=signature))


def unseal(
    data: bytes,
    roster: Mapping[str, bytes],
    *,
    run: str,
    kind: str,
    limit: int,
    sender: str | None = None,
    round: int | None = None,  # noqa: A002
) -> Opened:
    """Check a message and return the content of its envelope.

    Raises ProtocolError if the message is too large, malformed, or not the one expected. Raises
    SignatureError if the signature is not the sender's over exactly these bytes.

    Parameters
    ----------
    roster : mapping of str to bytes
        Ed25519 public keys by name, 32 bytes each.
    run, kind : str
        Required in the message.
    limit : int
        Largest size of ``data`` in bytes, checked before anything is parsed.
    sender : str, optional
        Required sender (default: any name of the roster).
    round : int, optional
        Required round (default: any).
    """
    if len(data) > limit:
        raise ProtocolError(
            f"The {kind} message of {len(data)} bytes is over its limit of {limit}. Discard it."
        )
    envelope = _parse(data, kind)
    _check(kind, "run", run, envelope.run)
    _check(kind, "kind", kind, envelope.kind)
    _check(kind, "sender", sender, envelope.sender)
    _check(kind, "round", round, envelope.round)
    if envelope.sender not in roster:
        raise ProtocolError(
            f"The {kind} message comes from {envelope.sender[:80]!r}, who is not on the roster. "
            "Discard it or correct the roster."
        )
    try:
        identity = Ed25519PublicKey.from_public_bytes(roster[envelope.sender])
        identity.verify(envelope.signature, envelope.signed())
    except (InvalidSignature, ValueError) as error:
        raise SignatureError(
            f"The {kind} message of {envelope.sender} for round {envelope.round} isn't signed "
            "with its key on the roster. Discard it and compare the key's fingerprint."
        ) from error
    return _opened(envelope)


def read_unchecked(data: bytes) -> Opened:
    """Return the content of an envelope **unchecked**, to find the keys to check it with.

    Raises ProtocolError if it is not an envelope.
    """
    return _opened(_parse(data, "stored"))


def _opened(envelope: _Envelope) -> Opened:
    return Opened(envelope.sender, envelope.kind, envelope.round, envelope.body, envelope.signature)


def has_signed(
    key: bytes, *, run: str, sender: str, kind: str, number: int, digest: bytes, signature: bytes
) -> bool:
    """Return whether a sender has signed a message with a given digest.

    Parameters
    ----------
    key : bytes
        The sender's Ed25519 public key.
    run, sender, kind : str
        As in `seal`.
    number : int
        Round.
    digest : bytes
        SHA-256 of the message's body.
    signature : bytes
        Signature in its envelope.
    """
    try:
        identity = Ed25519PublicKey.from_public_bytes(key)
        identity.verify(signature, _under(run, sender, kind, number, digest))
    except (InvalidSignature, ValueError):
        return False
    return True


def contradicts(found: bytes, own: bytes, roster: Mapping[str, bytes]) -> bool:
    """Return whether a sender has signed another message for the same run, kind and round.

    Raises ProtocolError if ``own`` is not such a message.

    Parameters
    ----------
    found : bytes
        Any bytes.
    own : bytes
        A message that `seal` made.
    roster : mapping of str to bytes
        As in `unseal`.
    """
    said = _parse(own, "stored")
    try:
        unseal(
            found,
            roster,
            run=said.run,
            kind=said.kind,
            limit=len(found),
            sender=said.sender,
            round=said.round,
        )
    except ProtocolError:
        return False
    return found != own


def _parse(data: bytes, kind: str) -> _Envelope:
    """Decode, and refuse every encoding but the one that `seal` writes."""
    try:
        envelope = msgspec.msgpack.decode(data, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(
            f"The {kind} message is cut short or not an envelope. Discard it."
        ) from error
    sound = envelope.label == LABEL and 0 <= envelope.round < ROUNDS
    if not sound or msgspec.msgpack.encode(envelope) != data:
        raise ProtocolError(f"The {kind} message is not in this version's envelope. Discard it.")
    return envelope


def _check(message: str, field: str, expected: str | int | None, found: str | int) -> None:
    if expected is not None and expected != found:
        raise ProtocolError(
            f"The {message} message says {field} {str(found)[:80]!r} where {expected!r} is due. "
            "Discard it."
        )
