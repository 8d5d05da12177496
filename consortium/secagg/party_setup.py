"""A site's set-up: its keys for every round, everybody's keys, and shares of everybody's seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ProtocolError
from consortium.secagg import crypto, messages, seed_shares
from consortium.secagg.envelope import seal
from consortium.secagg.key_directory import Directory, Session, own_advertisement, read_keys
from consortium.secagg.key_schedule import OwnKeys
from consortium.secagg.participants import CENTRE, Roster
from consortium.secagg.states import PARTY, PartyState, advance


class Joining:
    """The first half of a `Party`, whose arguments it has: all that happens before round 1."""

    def __init__(
        self,
        *,
        run: str,
        name: str,
        roster: Roster,
        rounds: int,
        identity: Ed25519PrivateKey,
        secret: bytes,
    ) -> None:
        roster.check_identity(name, identity, secret)
        self.name = name
        self._session = Session(run, roster, rounds)
        self._identity = identity
        self._own = OwnKeys(self._session.digest, name, secret)
        self._state = PartyState.NEW
        self._directory: Directory | None = None
        self._channels: dict[str, bytes] = {}
        self._sent_shares = b""
        self._common = b""
        self._held: dict[str, bytes] = {}

    @property
    def session(self) -> Session:
        """What hub and sites have in common."""
        return self._session

    @property
    def directory(self) -> Directory:
        """Everybody's public keys; raises as `notes`."""
        return self._known

    @property
    def notes(self) -> Mapping[str, bytes]:
        """Every site's note, signed by the site itself.

        Raises
        ------
        ProtocolError
            Before the keys are known.
        """
        return self._known.notes

    def advertise(self, note: bytes) -> bytes:
        """Return the site's public keys and a note for all to read (at most 64 KiB)."""
        after = advance(PARTY, self._state, "advertise", self.name)
        if len(note) > messages.NOTE_BYTES:
            raise ProtocolError(
                f"The note of {self.name} is over {messages.NOTE_BYTES} bytes; shorten it."
            )
        message = self._advertisement(note)
        self._state = after
        return message

    def receive_keys(
        self, bundle: bytes, common: Callable[[Mapping[str, bytes]], bytes] = lambda _: b""
    ) -> bytes:
        """Take everybody's keys, and return this site's secret shares for all.

        Parameters
        ----------
        bundle : bytes
        common : callable
            Makes, of everybody's notes, a digest of what all must have in common, such as a plan;
            what it raises is raised here, and nothing was changed.

        Raises
        ------
        ProtocolError
            If an advertisement is missing, unsound, or not as its site signed it.
        """
        after = advance(PARTY, self._state, "receive keys", self.name)
        directory = read_keys(self._session, bundle)
        note = directory.sites[self.name].note
        if directory.envelopes[self.name] != self._advertisement(note):
            raise ProtocolError(
                f"The bundle's advertisement of {self.name} is not from this run's secret; "
                "give the site back the secret it joined with."
            )
        near = directory.graph.neighbours(self.name)
        publics = {peer: directory.sites[peer].channel for peer in near}
        publics |= {CENTRE: directory.channel}
        own = self._own.channel()
        channels = {peer: crypto.agree(own, key) for peer, key in publics.items()}
        holders = directory.graph.holders(self.name)
        held = seed_shares.split_seeds(self._session, self._own, holders)
        agreed = common(directory.notes)
        body = seed_shares.seal_shares(directory, self.name, channels, held, agreed)
        message = self._seal(messages.SHARE, 0, messages.encode(body))
        self._held = {site: shares for site, shares in held.items() if site == self.name}
        self._directory, self._channels, self._sent_shares = directory, channels, message
        self._common = agreed
        self._state = after
        return message

    def receive_shares(self, bundle: bytes) -> None:
        """Take the shares of everybody's seeds; the set-up is complete.

        Raises
        ------
        ProtocolError
            If a share message is missing, unsound, or from another set-up.
        DisagreementError
            If a site has something else where all must have the same.
        """
        after = advance(PARTY, self._state, "receive shares", self.name)
        envelopes = seed_shares.read_shares(self._session, bundle)
        if envelopes[self.name] != self._sent_shares:
            raise ProtocolError(
                f"The bundle's shares of {self.name} are not those it sent; fetch the bundle anew."
            )
        known = self._known
        for site, envelope in envelopes.items():
            seed_shares.check_common(self._session, known, site, envelope, self._common, self.name)
        self._held |= {
            sender: seed_shares.open_share(
                self._session, known, self.name, sender, self._channels[sender], envelopes[sender]
            )
            for sender in known.graph.owners(self.name)
            if sender != self.name
        }
        self._state = after

    @property
    def _known(self) -> Directory:
        if self._directory is None:
            raise ProtocolError(f"{self.name} has no keys of the others yet; receive them first.")
        return self._directory

    def _advertisement(self, note: bytes) -> bytes:
        body = own_advertisement(self._session, self._own, note)
        return self._seal(messages.ADVERTISE, 0, messages.encode(body))

    def _seal(self, kind: str, number: int, body: bytes) -> bytes:
        return seal(self._identity, self._session.run, self.name, kind, number, body)
