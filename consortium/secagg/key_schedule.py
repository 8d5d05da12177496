"""The key schedule: every secret that is derived from another, with its label.

Labels differ for every purpose, and each includes the names, the round and the session. So no two
derivations of a run, or of two runs, give the same key.
"""

from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from consortium.secagg import crypto, keystream, shamir
from consortium.secagg.graph import LOT_BYTES


def public_bytes(private: X25519PrivateKey) -> bytes:
    """Encode the public key, 32 bytes."""
    return private.public_key().public_bytes_raw()


@dataclass(frozen=True)
class OwnKeys:
    """Keys that one party derives from its secret before it receives any message."""

    session: bytes
    """`Participants.session`."""
    name: str
    secret: bytes
    """32 uniform bytes, drawn for this run and kept until it ends."""

    def channel(self) -> X25519PrivateKey:
        """Return the private key of the party's encrypted channels."""
        return X25519PrivateKey.from_private_bytes(self._derive("channel", 0))

    def mask_seed(self, number: int) -> bytes:
        """Return the 31-byte seed of the key pair of round ``number``, shared in case of a loss."""
        return self._derive("mask seed", number, shamir.SECRET_BYTES)

    def self_seed(self, number: int) -> bytes:
        """Return the 31-byte seed of the self-mask of round ``number``, shared for survivors."""
        return self._derive("self seed", number, shamir.SECRET_BYTES)

    def lots(self, count: int) -> bytes:
        """Return one lot for each of ``count`` sites, by which the party draws its holders."""
        return keystream.key_stream(self._derive("lots", 0), LOT_BYTES * count)

    def polynomial(self, purpose: str, number: int, length: int) -> bytes:
        """Return random bytes for the coefficients of one sharing."""
        return keystream.key_stream(self._derive(f"{purpose} polynomial", number), length)

    def _derive(self, purpose: str, number: int, length: int = crypto.KEY_BYTES) -> bytes:
        return crypto.derive(self.secret, purpose, self.session, self.name, number, length=length)


def mask_private(session: bytes, site: str, number: int, seed: bytes) -> X25519PrivateKey:
    """Return the private key of a site's pair masks in one round, from its seed."""
    key = crypto.derive(seed, "mask key", session, site, number)
    return X25519PrivateKey.from_private_bytes(key)


def commitment(session: bytes, site: str, number: int, seed: bytes) -> bytes:
    """Bind a site to its self-mask seed; 248 uniform bits keep it hidden."""
    return crypto.derive(seed, "self commitment", session, site, number)


@dataclass(frozen=True)
class PairKeys:
    """Keys and masks of a run whose set-up is known."""

    transcript: bytes
    """Digest of the `keys` bundle. Sites that received different bundles share no mask, and their
    sum is noise."""

    def channel(self, shared: bytes, sender: str, receiver: str, kind: str, number: int) -> bytes:
        """Return the key of one message, from the agreement of the two channels."""
        message = (sender, receiver, kind, number)
        return self._derive(shared, "message", *message)

    def pair_mask(
        self, shared: bytes, number: int, context: bytes, first: str, second: str
    ) -> bytes:
        """Stream key of the mask that two sites (in roster order) have in common."""
        mask = (number, context, first, second)
        return self._derive(shared, "pair mask", *mask)

    def self_mask(self, seed: bytes, number: int, context: bytes, site: str) -> bytes:
        """Stream key of a site's own mask."""
        return self._derive(seed, "self mask", number, context, site)

    def _derive(self, key: bytes, purpose: str, *info: str | int | bytes) -> bytes:
        return crypto.derive(key, purpose, self.transcript, *info)
