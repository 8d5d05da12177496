"""The hub's set-up, which collects the messages that the sites signed and forwards them unchanged.

`HubKeys` contains the part of these messages that the hub can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from consortium.errors import ProtocolError
from consortium.secagg import contribution, crypto, messages
from consortium.secagg.envelope import Opened
from consortium.secagg.key_directory import (
    Directory,
    KeySession,
    Member,
    read_advertisement,
    read_keys,
)
from consortium.secagg.key_schedule import public_bytes
from consortium.secagg.participants import CENTRE
from consortium.secagg.seed_shares import CheckedShares, check_common, handed_to, read_share
from consortium.secagg.states import HUB, HubState, advance
from consortium.secagg.unmasking import read_manifest

T = TypeVar("T")


class HubSetup:
    """All that happens at the hub before round 1; the rounds find it as `Hub.setup`."""

    def __init__(self, member: Member) -> None:
        self.state = HubState.ADVERTISING
        self._member = member
        self._channel = member.own.channel()
        self._advertisements: dict[str, bytes] = {}
        self._keys: HubKeys | None = None
        self._given: dict[str, CheckedShares] = {}

    @property
    def known(self) -> HubKeys:
        """Return the part of the set-up that the hub's rounds need.

        Raises ProtocolError before all sites have advertised.
        """
        if self._keys is None:
            raise ProtocolError(
                f"The centre still waits for {', '.join(self.missing)} to advertise. "
                "Start the sites that are missing."
            )
        return self._keys

    @property
    def notes(self) -> Mapping[str, bytes]:
        """Every site's note, signed by the site itself; raises as `known`."""
        return self.known.directory.notes

    @property
    def missing(self) -> tuple[str, ...]:
        """Sites that the set-up waits for now; none once it is complete."""
        arrived = self._advertisements if self._keys is None else self._given
        return tuple(site for site in self._member.session.roster.sites if site not in arrived)

    def receive_advertisement(self, data: bytes) -> str:
        """Take a site's advertisement and return the site's name.

        Raises ProtocolError if it is unsound or the site has advertised before. The last one
        completes the bundle, which is refused if two sites advertise the same key.
        """
        advance(HUB, self.state, "advertisement", "The centre")
        sender, _ = read_advertisement(self._member.session, data)
        gathered = _with(self._advertisements, sender, data, "advertisement")
        if len(gathered) == len(self._member.session.roster.sites):
            after = advance(HUB, self.state, "last advertisement", "The centre")
            directory = read_keys(self._member.session, self._bundle(gathered))
            channels = {
                site: crypto.shared_secret(self._channel, body.channel)
                for site, body in directory.sites.items()
            }
            self._keys = HubKeys(self._member.session, directory, channels)
            self.state = after
        self._advertisements = gathered
        return sender

    def keys(self) -> bytes:
        """Return the bundle of all advertisements and the hub's own channel key, for every site.

        Raises ProtocolError before all sites have advertised.
        """
        advance(HUB, self.state, "keys", "The centre")
        return self._bundle(self._advertisements)

    def receive_share(self, data: bytes) -> str:
        """Take a site's share message and return the site's name.

        Raises ProtocolError if it is unsound, made for other keys than the hub's bundle, or came
        before.
        """
        advance(HUB, self.state, "share", "The centre")
        sender, given = read_share(self._member.session, self.known.directory, data)
        gathered = _with(self._given, sender, given, "share message")
        if len(gathered) == len(self._member.session.roster.sites):
            self.state = advance(HUB, self.state, "last share", "The centre")
        self._given = gathered
        return sender

    def check_common(self, own: bytes) -> None:
        """Compare the digest that all sites must have in common with the hub's.

        Raises DisagreementError if a site's differs. It names the site.
        """
        for site, given in self._given.items():
            check_common(given.shared, site, own, "the centre")

    def shares(self, site: str) -> bytes:
        """Return the shares of all sites that one site receives.

        Raises ProtocolError before all sites have sent theirs.
        """
        advance(HUB, self.state, "shares", "The centre")
        body = handed_to(self.known.directory, site, self._given)
        return self._member.seal(messages.SHARES, 0, messages.encode(body))

    def _bundle(self, advertisements: Mapping[str, bytes]) -> bytes:
        body = messages.Keys(public_bytes(self._channel), self._ordered(advertisements))
        return self._member.seal(messages.KEYS, 0, messages.encode(body))

    def _ordered(self, gathered: Mapping[str, bytes]) -> tuple[bytes, ...]:
        return tuple(gathered[site] for site in self._member.session.roster.sites)


def _with(gathered: Mapping[str, T], sender: str, data: T, what: str) -> dict[str, T]:
    """Add a message to those gathered, unless its sender has one there."""
    if sender in gathered:
        raise ProtocolError(f"The {what} of {sender} has arrived before. Discard this one.")
    return {**gathered, sender: data}


@dataclass(frozen=True)
class HubKeys:
    """Part of the set-up that the hub's rounds need."""

    session: KeySession
    directory: Directory
    """Everybody's public keys."""
    channels: Mapping[str, bytes]
    """Secrets that the hub shares with each site."""

    def decrypt(self, kind: type[messages.BodyType], opened: Opened) -> messages.BodyType:
        """Decrypt and decode a message that a site encrypted to the hub."""
        if opened.sender == CENTRE:
            raise ProtocolError(f"The centre sends no {opened.kind}. Discard the message.")
        plain = crypto.decrypt(self._key(opened, opened.kind), opened.body, _named(opened))
        return messages.decode(kind, plain, opened.sender)

    def unload(
        self,
        opened: Opened,
        parts: contribution.Parts,
        *,
        released: bool = False,
        clear: bool = False,
    ) -> contribution.Vectors:
        """Decrypt a contribution and the vectors that it seals, if they match its manifest."""
        body = self.decrypt(messages.Contribution, opened)
        key = self._key(opened, messages.VECTORS)
        vectors = contribution.unload(key, body, parts.payload, _named(opened), clear=clear)
        manifest = read_manifest(
            self.session, opened.round, body.context, opened.sender, parts.manifest
        )
        shown = vectors.opened if released else None
        if not contribution.check_manifest(manifest, parts, body, shown):
            raise ProtocolError(f"{_named(opened)} is not what its manifest says. Discard it.")
        return vectors

    def _key(self, opened: Opened, kind: str) -> bytes:
        """Return the key under which the sender of a message encrypts to the hub."""
        shared = self.channels[opened.sender]
        return self.directory.keys.channel(shared, opened.sender, CENTRE, kind, opened.round)


def _named(opened: Opened) -> str:
    return f"The {opened.kind} of {opened.sender} to round {opened.round}"
