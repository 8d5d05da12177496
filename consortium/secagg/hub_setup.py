"""The hub's set-up: it gathers what the sites signed and hands it on, unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ProtocolError
from consortium.secagg import crypto, messages
from consortium.secagg.envelope import seal
from consortium.secagg.key_directory import Directory, Session, read_advertisement, read_keys
from consortium.secagg.key_schedule import OwnKeys, public_bytes
from consortium.secagg.participants import CENTRE, Roster
from consortium.secagg.seed_shares import check_common, read_share
from consortium.secagg.states import HUB, HubState, advance


class Registering:
    """The first half of a `Hub`, whose arguments it has: all that happens before round 1."""

    def __init__(
        self,
        *,
        run: str,
        roster: Roster,
        rounds: int,
        identity: Ed25519PrivateKey,
        secret: bytes,
    ) -> None:
        roster.check_identity(CENTRE, identity, secret)
        self._session = Session(run, roster, rounds)
        self._identity = identity
        self._channel = OwnKeys(self._session.digest, CENTRE, secret).channel()
        self._state = HubState.ADVERTISING
        self._advertisements: dict[str, bytes] = {}
        self._directory: Directory | None = None
        self._channels: dict[str, bytes] = {}
        self._shares: dict[str, bytes] = {}

    @property
    def session(self) -> Session:
        """What hub and sites have in common."""
        return self._session

    @property
    def notes(self) -> Mapping[str, bytes]:
        """Every site's note, signed by the site itself.

        Raises
        ------
        ProtocolError
            Before all sites have advertised.
        """
        return self._known.notes

    @property
    def missing(self) -> tuple[str, ...]:
        """Sites that the set-up waits for now; none once it is complete."""
        arrived = self._advertisements if self._directory is None else self._shares
        return tuple(site for site in self._session.roster.sites if site not in arrived)

    def receive_advertisement(self, data: bytes) -> str:
        """Take a site's advertisement and return the site's name.

        Raises
        ------
        ProtocolError
            If it is unsound or the site has advertised before. The last one completes the
            bundle, which is refused if two sites advertise the same key.
        """
        advance(HUB, self._state, "advertisement", "The centre")
        sender, _ = read_advertisement(self._session, data)
        gathered = _with(self._advertisements, sender, data, "advertisement")
        if len(gathered) == len(self._session.roster.sites):
            after = advance(HUB, self._state, "last advertisement", "The centre")
            directory = read_keys(self._session, self._bundle(gathered))
            self._channels = {
                site: crypto.agree(self._channel, body.channel)
                for site, body in directory.sites.items()
            }
            self._directory, self._state = directory, after
        self._advertisements = gathered
        return sender

    def keys(self) -> bytes:
        """Bundle of all advertisements and the hub's own channel key, for every site.

        Raises
        ------
        ProtocolError
            Before all sites have advertised.
        """
        advance(HUB, self._state, "keys", "The centre")
        return self._bundle(self._advertisements)

    def receive_share(self, data: bytes) -> str:
        """Take a site's share message and return the site's name.

        Raises
        ------
        ProtocolError
            If it is unsound, made for other keys than the hub's bundle, or came before.
        """
        advance(HUB, self._state, "share", "The centre")
        sender, _ = read_share(self._session, self._known, data)
        gathered = _with(self._shares, sender, data, "share message")
        if len(gathered) == len(self._session.roster.sites):
            self._state = advance(HUB, self._state, "last share", "The centre")
        self._shares = gathered
        return sender

    def check_common(self, own: bytes) -> None:
        """Compare what the sites say that all have in common with what the hub has.

        Raises
        ------
        DisagreementError
            If a site's differs; it names the site.
        """
        for site, envelope in self._shares.items():
            check_common(self._session, self._known, site, envelope, own, "the centre")

    def shares(self) -> bytes:
        """Bundle of all share messages, for every site.

        Raises
        ------
        ProtocolError
            Before all sites have sent theirs.
        """
        advance(HUB, self._state, "shares", "The centre")
        body = messages.Shares(self._ordered(self._shares))
        return self._seal(messages.SHARES, 0, messages.encode(body))

    @property
    def _known(self) -> Directory:
        if self._directory is None:
            raise ProtocolError(
                f"The centre still waits for {', '.join(self.missing)} to advertise; "
                "start the sites that are missing."
            )
        return self._directory

    def _bundle(self, advertisements: Mapping[str, bytes]) -> bytes:
        body = messages.Keys(public_bytes(self._channel), self._ordered(advertisements))
        return self._seal(messages.KEYS, 0, messages.encode(body))

    def _ordered(self, gathered: Mapping[str, bytes]) -> tuple[bytes, ...]:
        return tuple(gathered[site] for site in self._session.roster.sites)

    def _seal(self, kind: str, number: int, body: bytes) -> bytes:
        return seal(self._identity, self._session.run, CENTRE, kind, number, body)


def _with(gathered: Mapping[str, bytes], sender: str, data: bytes, what: str) -> dict[str, bytes]:
    """Add a message to those gathered, unless its sender has one there."""
    if sender in gathered:
        raise ProtocolError(f"The {what} of {sender} has arrived before; discard this one.")
    return {**gathered, sender: data}
