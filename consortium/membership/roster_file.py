"""The roster file: everybody's public key by name, signed by the consortium's key.

A roster has a serial number that grows with every change, so that nobody can be
handed an older one. A new key of the consortium is vouched for by the one before.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import Field

from consortium.base.frozen_model import FrozenModel
from consortium.base.strict_yaml import read_yaml, write_yaml
from consortium.errors import SignatureError, StudyError
from consortium.membership.roster import (
    MOST_HANDOVERS,
    MOST_SITES,
    Handover,
    Key,
    Roster,
    Signature,
    fingerprint,
    found_roster,
    verifies,
)
from consortium.secagg import CENTRE
from consortium.study.spec import Name, Study

__all__ = [
    "Roster",
    "fingerprint",
    "found_roster",
    "read_roster",
    "roster_keys",
    "save_roster",
]

MOST_SERIAL = 2**63 - 1
"""A larger one can't be packed to be signed."""


class _File(FrozenModel):
    serial: int = Field(ge=1, le=MOST_SERIAL)
    centre: Key
    sites: dict[Name, Key] = Field(max_length=MOST_SITES)
    handovers: tuple[Handover, ...] = Field(default=(), max_length=MOST_HANDOVERS)
    signature: Signature


def read_roster(path: Path) -> Roster:
    """Read a roster and check its signature, and that each of its keys vouches for the next.

    Raises StudyError if it is missing, or not a roster. Raises SignatureError if somebody else than
    the consortium's key signed it, or it was changed.
    """
    try:
        file = _File.model_validate(read_yaml(path))
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{path} is no roster; ask the coordinator for the file that 'consortium admit' wrote."
        ) from error
    sites = {name: bytes.fromhex(key) for name, key in file.sites.items()}
    found = Roster(file.serial, bytes.fromhex(file.centre), sites, file.handovers)
    whole = found.descends_from(found.succession[0])
    if not (whole and verifies(found.centre, file.signature, found.signed())):
        raise SignatureError(
            f"{path} was changed after the coordinator signed it; ask for the roster again."
        )
    return found


def save_roster(path: Path, members: Roster, key: Ed25519PrivateKey) -> None:
    """Sign a roster and write it.

    Raises SignatureError if the key is not the one that the roster names as the consortium's.
    Raises OutputError if the file can't be written.
    """
    members.check_owner(key)
    content: dict[str, Any] = {
        "serial": members.serial,
        "centre": members.centre.hex(),
        "sites": {name: site.hex() for name, site in sorted(members.sites.items())},
        "handovers": [each.model_dump() for each in members.handovers],
        "signature": key.sign(members.signed()).hex(),
    }
    write_yaml(path, content)


def roster_keys(study: Study, roster: Mapping[str, bytes], where: str) -> dict[str, bytes]:
    """Keys of a study's sites and of the centre.

    Raises StudyError if one is not on the roster, or has the coordinator's name.
    """
    if CENTRE in study.sites:
        raise StudyError(
            f"{where}: '{CENTRE}' is the coordinator's own name; correct the study's sites."
        )
    missing = [name for name in (*study.sites, CENTRE) if name not in roster]
    if missing:
        raise StudyError(
            f"{where}: no key for {', '.join(missing)}; the coordinator admits a site with "
            "'consortium admit'."
        )
    return {name: roster[name] for name in (*study.sites, CENTRE)}
