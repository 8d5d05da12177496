"""What the hub can read of what sites have sent it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from consortium.errors import ProtocolError
from consortium.secagg import contribution, crypto, messages
from consortium.secagg.envelope import Opened
from consortium.secagg.key_directory import Directory, Session
from consortium.secagg.participants import CENTRE
from consortium.secagg.unmask_request import read_manifest


@dataclass(frozen=True)
class HubKeys:
    """What the hub's rounds need of its set-up.

    Parameters
    ----------
    session : Session
    directory : Directory
        Everybody's public keys.
    channels : mapping of str to bytes
        What the hub shares with each site.
    """

    session: Session
    directory: Directory
    channels: Mapping[str, bytes]

    def decrypt(self, kind: type[messages.BodyType], opened: Opened) -> messages.BodyType:
        """Decrypt and decode what a site sent to the hub alone."""
        if opened.sender == CENTRE:
            raise ProtocolError(f"The centre sends no {opened.kind}; discard the message.")
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
        """Decrypt a contribution and the vectors that it seals, if its manifest tells of them."""
        body = self.decrypt(messages.Contribution, opened)
        key = self._key(opened, messages.VECTORS)
        vectors = contribution.unload(key, body, parts.payload, _named(opened), clear=clear)
        manifest = read_manifest(
            self.session, opened.round, body.context, opened.sender, parts.manifest
        )
        shown = vectors.opened if released else None
        if not contribution.check_manifest(manifest, parts, body, shown):
            raise ProtocolError(f"{_named(opened)} is not what its manifest says; discard it.")
        return vectors

    def _key(self, opened: Opened, kind: str) -> bytes:
        """Key of what the sender of a message has encrypted to the hub."""
        shared = self.channels[opened.sender]
        return self.directory.keys.channel(shared, opened.sender, CENTRE, kind, opened.round)


def _named(opened: Opened) -> str:
    return f"The {opened.kind} of {opened.sender} to round {opened.round}"
