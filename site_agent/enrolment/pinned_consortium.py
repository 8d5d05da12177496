"""The consortium that a site has joined: its keys, and the newest roster that was seen.

The key is pinned when the site joins, or at the first approval. Afterwards only a
roster counts that this key signed, or a key that it handed over to. Earlier keys are stored, since
their requests came from the same consortium. All members' keys on the newest roster are also
stored, since no other key is trusted any more.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.errors import ConfigurationError, OutputError, SignatureError, StudyError
from consortium.membership.roster import Roster, fingerprint
from consortium.secagg import CENTRE
from site_agent.layout import PINNED


@dataclass(frozen=True)
class PinnedConsortium:
    """The consortium that a site joined, with its pinned keys."""

    centre: bytes
    """Public key, 32 bytes."""
    serial: int = 0
    """Serial number of the newest roster that was seen; 0 for none."""
    roster: str = ""
    """That roster's digest, or empty."""
    sites: Mapping[str, bytes] = field(default_factory=dict)
    """Public keys on that roster."""
    earlier: tuple[bytes, ...] = ()
    """Public keys that the consortium had before, oldest first."""

    @property
    def centres(self) -> frozenset[str]:
        """Every key that the consortium has or had, in hexadecimal."""
        return frozenset(key.hex() for key in (*self.earlier, self.centre))

    def check_keys(self, study: str, keys: Mapping[str, bytes]) -> None:
        """Refuse a study's keys unless they are those of the newest roster.

        Raises StudyError if a key was replaced, or its owner is not a member any more.

        Parameters
        ----------
        study : str
            The study's name.
        keys : mapping of str to bytes
            Public keys of its sites and of the centre, as they were approved.
        """
        newest = {**self.sites, CENTRE: self.centre}
        replaced = [name for name, key in sorted(keys.items()) if newest.get(name) != key]
        if replaced:
            raise StudyError(
                f"'{study}' was approved with a key of {', '.join(replaced)} that the newest "
                f"roster seen here, number {self.serial}, does not have. Approve the study again "
                "with the newest roster."
            )


def read_pinned(folder: Path) -> PinnedConsortium | None:
    """Return the pinned consortium, or None; raises ConfigurationError if the record is damaged."""
    path = folder / PINNED
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        centre = bytes.fromhex(content["centre"])
        serial = int(content["serial"])
        sites = {name: bytes.fromhex(key) for name, key in content.get("sites", {}).items()}
        earlier = tuple(bytes.fromhex(key) for key in content.get("earlier", ()))
        trust = PinnedConsortium(centre, serial, str(content["roster"]), sites, earlier)
        if serial < 0 or any(len(key) != 32 for key in (centre, *sites.values(), *earlier)):
            raise ValueError(content)
    except FileNotFoundError:
        return None
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged. Restore it, or remove it and join the consortium again."
        ) from error
    return trust


def pin_consortium(folder: Path, trust: PinnedConsortium) -> None:
    """Remember a consortium; raises ConfigurationError if it can't be written."""
    content = {
        "centre": trust.centre.hex(),
        "serial": trust.serial,
        "roster": trust.roster,
        "sites": {name: key.hex() for name, key in sorted(trust.sites.items())},
        "earlier": [key.hex() for key in trust.earlier],
    }
    try:
        write_bytes(folder / PINNED, json.dumps(content).encode())
    except OutputError as error:
        raise ConfigurationError(str(error)) from error


def check_members(folder: Path, members: Roster) -> PinnedConsortium:
    """Compare a roster with the pinned consortium, and return the one to pin next.

    Raises SignatureError if another consortium signed it, or it gave two rosters the same number.
    Raises StudyError if it is older than one that was seen.
    """
    known = read_pinned(folder)
    if known is not None and not members.descends_from(known.centre):
        raise SignatureError(
            f"The roster is signed by {fingerprint(members.centre)}, and this site has joined the "
            f"consortium of {fingerprint(known.centre)}. Ask the coordinator, and if the change "
            f"is meant remove {folder / PINNED} and join again."
        )
    if known is not None and members.serial < known.serial:
        raise StudyError(
            f"The roster has the serial number {members.serial}, and this site has seen "
            f"{known.serial}. Ask the coordinator for the newest."
        )
    if known is not None and members.serial == known.serial and members.digest != known.roster:
        raise SignatureError(
            f"The roster has the serial number {members.serial}, under which this site has seen "
            "another one. Ask the coordinator which is right, and for one with a new number."
        )
    before = (*(known.earlier if known else ()), *members.succession[:-1])
    earlier = tuple(key for key in dict.fromkeys(before) if key != members.centre)
    return PinnedConsortium(members.centre, members.serial, members.digest, members.sites, earlier)
