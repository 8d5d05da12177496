"""Which consortium a site has joined: its key, and the newest roster that was seen.

The key is pinned when the site joins, or at the first approval; afterwards only a
roster counts that this key signed, or a key that it handed over to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from consortium.errors import ConfigurationError, OutputError, SignatureError, StudyError
from consortium.files import DAMAGED, write_atomically
from consortium.roster import Membership, fingerprint

TRUST = "consortium.json"


@dataclass(frozen=True)
class Trust:
    """A pinned consortium.

    Parameters
    ----------
    centre : bytes
        Public key, 32 bytes.
    serial : int
        Of the newest roster that was seen; 0 for none.
    roster : str
        That roster's digest, or empty.
    """

    centre: bytes
    serial: int = 0
    roster: str = ""


def read_trust(folder: Path) -> Trust | None:
    """Return the pinned consortium, or None.

    Raises
    ------
    ConfigurationError
        If the record is damaged.
    """
    path = folder / TRUST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        centre, serial = bytes.fromhex(content["centre"]), int(content["serial"])
        trust = Trust(centre, serial, str(content["roster"]))
        if len(centre) != 32 or serial < 0:
            raise ValueError(content)
    except FileNotFoundError:
        return None
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged; restore it, or remove it and join the consortium again."
        ) from error
    return trust


def pin(folder: Path, trust: Trust) -> None:
    """Remember a consortium.

    Raises
    ------
    ConfigurationError
        If it can't be written.
    """
    content = {"centre": trust.centre.hex(), "serial": trust.serial, "roster": trust.roster}
    try:
        write_atomically(folder / TRUST, json.dumps(content).encode())
    except OutputError as error:
        raise ConfigurationError(str(error)) from error


def check_members(folder: Path, members: Membership) -> Trust:
    """Hold a roster against the pinned consortium; returns what to pin next.

    Raises
    ------
    SignatureError
        If another consortium signed it, or it gave two rosters the same number.
    StudyError
        If it is older than one that was seen.
    """
    known = read_trust(folder)
    if known is not None and not members.descends_from(known.centre):
        raise SignatureError(
            f"The roster is signed by {fingerprint(members.centre)}, and this site has joined the "
            f"consortium of {fingerprint(known.centre)}; ask the coordinator, and if the change "
            f"is meant remove {folder / TRUST} and join again."
        )
    if known is not None and members.serial < known.serial:
        raise StudyError(
            f"The roster has the serial number {members.serial}, and this site has seen "
            f"{known.serial}; ask the coordinator for the newest."
        )
    if known is not None and members.serial == known.serial and members.digest != known.roster:
        raise SignatureError(
            f"The roster has the serial number {members.serial}, under which this site has seen "
            "another one; ask the coordinator which is right, and for one with a new number."
        )
    return Trust(members.centre, members.serial, members.digest)
