"""A member of a run, a site or the centre: who it is, its keys, and what it signs."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.secagg.envelope import seal
from consortium.secagg.key_directory import Session
from consortium.secagg.key_schedule import OwnKeys
from consortium.secagg.participants import Participants


@dataclass(frozen=True)
class Member:
    """Whoever takes part in a run, to itself.

    Parameters
    ----------
    name : str
    session : Session
        What all members have in common.
    identity : Ed25519PrivateKey
    own : OwnKeys
        Keys of every round, from the member's secret.
    """

    name: str
    session: Session
    identity: Ed25519PrivateKey
    own: OwnKeys

    @classmethod
    def enter(
        cls,
        run: str,
        name: str,
        roster: Participants,
        rounds: int,
        identity: Ed25519PrivateKey,
        secret: bytes,
    ) -> Member:
        """Check a member against the roster.

        Raises
        ------
        ProtocolError
            If the identity isn't the roster's, or the secret has another length.
        """
        roster.check_identity(name, identity, secret)
        session = Session(run, roster, rounds)
        return cls(name, session, identity, OwnKeys(session.digest, name, secret))

    def seal(self, kind: str, number: int, body: bytes) -> bytes:
        """Sign a message of a round; 0 stands for the set-up."""
        return seal(self.identity, self.session.run, self.name, kind, number, body)
