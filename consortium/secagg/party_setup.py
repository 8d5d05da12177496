"""A site's set-up: its keys for every round, all sites' keys, and shares of their seeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from consortium.errors import ProtocolError
from consortium.secagg import crypto, messages, seed_shares
from consortium.secagg.key_directory import Directory, Member, own_advertisement, read_keys
from consortium.secagg.merkle_tree import tree_root
from consortium.secagg.participants import CENTRE
from consortium.secagg.states import PARTY, PartyState, advance


@dataclass(frozen=True)
class PartyKeys:
    """Part of the set-up that a site's rounds need."""

    directory: Directory
    """Everybody's public keys."""
    channels: Mapping[str, bytes]
    """What this site shares with the centre and with each neighbour."""
    held: Mapping[str, bytes]
    """Shares of the seeds of the sites whose holder this one is. Only its own until the others
    have arrived."""


class PartySetup:
    """All that happens at a site before round 1; the rounds find it as `Party.setup`."""

    def __init__(self, member: Member) -> None:
        self.state = PartyState.NEW
        self._member = member
        self._keys: PartyKeys | None = None
        self._signed = b""
        self._common = b""

    @property
    def keys(self) -> PartyKeys:
        """The set-up so far; raises ProtocolError before the keys were received."""
        if self._keys is None:
            raise ProtocolError(
                f"{self._member.name} has no keys of the others yet. Receive them first."
            )
        return self._keys

    @property
    def notes(self) -> Mapping[str, bytes]:
        """Every site's note, signed by the site itself; raises as `keys`."""
        return self.keys.directory.notes

    def advertise(self, note: bytes) -> bytes:
        """Return the site's public keys and a note for all to read (at most 64 KiB)."""
        after = advance(PARTY, self.state, "advertise", self._member.name)
        if len(note) > messages.NOTE_BYTES:
            raise ProtocolError(
                f"The note of {self._member.name} is over {messages.NOTE_BYTES} bytes. Shorten it."
            )
        message = self._advertisement(note)
        self.state = after
        return message

    def receive_keys(
        self, bundle: bytes, common: Callable[[Mapping[str, bytes]], bytes] = lambda _: b""
    ) -> bytes:
        """Receive all sites' keys, and return this site's secret shares for them.

        Raises ProtocolError if an advertisement is missing, invalid, or not as its site signed it.

        Parameters
        ----------
        common : callable
            Returns, from all sites' notes, a digest that must be the same at all sites, such as a
            plan's. An exception that it raises is raised here, and nothing was changed.
        """
        after = advance(PARTY, self.state, "receive keys", self._member.name)
        directory = read_keys(self._member.session, bundle)
        note = directory.sites[self._member.name].note
        if directory.envelopes[self._member.name] != self._advertisement(note):
            raise ProtocolError(
                f"The bundle's advertisement of {self._member.name} is not from this run's secret. "
                "Give the site back the secret it joined with."
            )
        near = directory.graph.neighbours(self._member.name)
        publics = {peer: directory.sites[peer].channel for peer in near}
        publics |= {CENTRE: directory.channel}
        own = self._member.own.channel()
        channels = {peer: crypto.shared_secret(own, key) for peer, key in publics.items()}
        holders = directory.graph.holders(self._member.name)
        held = seed_shares.split_seeds(self._member.session, self._member.own, holders)
        agreed = common(directory.notes)
        sealed = seed_shares.seal_shares(directory, self._member.name, channels, held)
        shared = messages.Shared(directory.transcript, tree_root(sealed), agreed)
        signed = self._member.seal(messages.SHARED, 0, messages.encode(shared))
        body = messages.Share(signed, sealed)
        message = self._member.seal(messages.SHARE, 0, messages.encode(body))
        own_share = (
            {self._member.name: held[self._member.name]} if self._member.name in held else {}
        )
        self._keys = PartyKeys(directory, channels, own_share)
        self._signed = signed
        self._common = agreed
        self.state = after
        return message

    def receive_shares(self, bundle: bytes) -> None:
        """Take this site's shares of the others' seeds; the set-up is complete.

        Raises ProtocolError if a share message is missing, unsound, or from another set-up. Raises
        DisagreementError if a site has something else where all must have the same.
        """
        name = self._member.name
        session = self._member.session
        after = advance(PARTY, self.state, "receive shares", name)
        parts = seed_shares.read_shares(session, name, bundle)
        if parts[name].signed != self._signed:
            raise ProtocolError(
                f"The bundle's shares of {name} are not those it sent. Fetch the bundle again."
            )
        known = self.keys.directory
        channels = self.keys.channels
        shared = {
            site: seed_shares.read_shared(session, known, site, part.signed)
            for site, part in parts.items()
        }
        for site, body in shared.items():
            seed_shares.check_common(body, site, self._common, name)
        received = {
            sender: seed_shares.open_share(
                session=session,
                directory=known,
                name=name,
                sender=sender,
                shared=channels[sender],
                part=parts[sender],
                root=shared[sender].root,
            )
            for sender in known.graph.owners(name)
            if sender != name
        }
        self._keys = replace(self.keys, held={**self.keys.held, **received})
        self.state = after

    def _advertisement(self, note: bytes) -> bytes:
        body = own_advertisement(self._member.session, self._member.own, note)
        return self._member.seal(messages.ADVERTISE, 0, messages.encode(body))
