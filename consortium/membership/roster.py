"""Members of a consortium: their public keys by name, and the rules for changing keys.

The roster file is signed by the consortium's key. A roster has a serial number that grows with
every change. So an older one is not accepted. A new key of the consortium is signed by the earlier
one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, StringConstraints

from consortium.base.frozen_model import FrozenModel
from consortium.base.strict_yaml import read_yaml, write_yaml
from consortium.errors import SignatureError, StudyError
from consortium.secagg import CENTRE
from consortium.secagg.crypto import pack_tuple
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
Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Signature = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
MOST_SITES = 1024
MOST_PARTICIPANTS = 10_000_000
MOST_HANDOVERS = 64
_LABEL = "consortium roster 1"
_HANDOVER = "consortium handover 1"


class _File(FrozenModel):
    serial: int = Field(ge=1, le=MOST_SERIAL)
    centre: Key
    sites: dict[Name, Key] = Field(max_length=MOST_SITES)
    participants: dict[Name, Annotated[int, Field(ge=1, le=MOST_PARTICIPANTS)]] = Field(
        default={}, max_length=MOST_SITES
    )
    handovers: tuple[Handover, ...] = Field(default=(), max_length=MOST_HANDOVERS)
    signature: Signature


def read_roster(path: Path) -> Roster:
    """Read a roster and check its signature, and that each of its keys signed the next.

    Raises StudyError if it is missing, or not a roster. Raises SignatureError if it was not signed
    by the consortium's key, or was changed.
    """
    try:
        file = _File.model_validate(read_yaml(path))
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{path} is not a roster. Ask the coordinator for the file that 'consortium admit' "
            "wrote."
        ) from error
    sites = {name: bytes.fromhex(key) for name, key in file.sites.items()}
    found = Roster(
        file.serial, bytes.fromhex(file.centre), sites, file.handovers, file.participants
    )
    whole = found.descends_from(found.succession[0])
    if not (whole and verifies(found.centre, file.signature, found.signed())):
        raise SignatureError(
            f"{path} was changed after the coordinator signed it. Ask for the roster again."
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
        **({"participants": dict(members.participants)} if members.participants else {}),
        "handovers": [each.model_dump() for each in members.handovers],
        "signature": key.sign(members.signed()).hex(),
    }
    write_yaml(path, content)


def roster_keys(study: Study, roster: Mapping[str, bytes], where: str) -> dict[str, bytes]:
    """Return the keys of a study's sites and of the centre.

    Raises StudyError if one is not on the roster, or has the coordinator's name.
    """
    if CENTRE in study.sites:
        raise StudyError(
            f"{where}: '{CENTRE}' is the coordinator's own name. Correct the study's sites."
        )
    missing = [name for name in (*study.sites, CENTRE) if name not in roster]
    if missing:
        raise StudyError(
            f"{where}: every site must be on the roster, and {', '.join(missing)} is not. Admit it "
            "with 'consortium admit'."
        )
    return {name: roster[name] for name in (*study.sites, CENTRE)}


class Handover(FrozenModel):
    """An earlier key of the consortium that vouches for the one after it."""

    key: Key
    signature: Signature


@dataclass(frozen=True)
class Roster:
    """Members of a consortium by name, whose signature was checked.

    Raises StudyError if a member lacks a name or a key of its own, or there are too many.
    """

    serial: int
    """Grows with every change."""
    centre: bytes
    """Public key of the consortium, 32 bytes."""
    sites: Mapping[str, bytes]
    """Public keys of the admitted sites."""
    handovers: tuple[Handover, ...] = ()
    """Earlier keys of the consortium, oldest first."""
    participants: Mapping[str, int] = field(default_factory=dict)
    """Nominal numbers of participants of the sites that stated one."""

    def __post_init__(self) -> None:
        if CENTRE in self.sites:
            raise StudyError(
                f"A site's name must not be '{CENTRE}', which is the coordinator's. Choose another "
                "name with 'site-agent init --name'."
            )
        owners: dict[bytes, str] = {}
        earlier = [("an earlier consortium", key) for key in self.succession[:-1]]
        for name, key in (*earlier, *self.keys.items()):
            if key in owners:
                raise StudyError(
                    f"Every member must have its own key, and {name} has that of {owners[key]}. "
                    "Create a new key with 'init'."
                )
            owners[key] = name
        if len(self.sites) > MOST_SITES or len(self.handovers) > MOST_HANDOVERS:
            raise StudyError(
                f"A roster must have at most {MOST_SITES} sites and {MOST_HANDOVERS} earlier keys "
                "of the consortium. Create a new consortium with 'consortium init'."
            )

    @property
    def succession(self) -> tuple[bytes, ...]:
        """The consortium's keys, oldest first; the last one is the present one."""
        return (*(bytes.fromhex(each.key) for each in self.handovers), self.centre)

    @property
    def keys(self) -> dict[str, bytes]:
        """Everybody's key, the centre's included."""
        return {CENTRE: self.centre, **self.sites}

    @property
    def digest(self) -> str:
        """SHA-256 of all that is signed, in hexadecimal."""
        return hashlib.sha256(self.signed()).hexdigest()

    def signed(self) -> bytes:
        """Return the bytes under the signature."""
        members = [part for name, key in sorted(self.sites.items()) for part in (name, key)]
        earlier = self.succession[:-1]
        sizes = [part for each in sorted(self.participants.items()) for part in each]
        signed = [_LABEL, self.serial, self.centre, len(earlier), *earlier, len(members), *members]
        if sizes:
            signed += [len(sizes), *sizes]
        return pack_tuple(*signed)

    def with_site(self, name: str, key: bytes, participants: int | None = None) -> Roster:
        """Admit a site, or give it another key.

        Raises StudyError if another member has that key or name.

        Parameters
        ----------
        participants : int, optional
            Nominal number that the site states; an earlier one stays if not given.
        """
        sizes = {**self.participants, **({} if participants is None else {name: participants})}
        sites = {**self.sites, name: key}
        return replace(self, serial=self.serial + 1, sites=sites, participants=sizes)

    def without_site(self, name: str) -> Roster:
        """Remove a site; raises StudyError if it is not on the roster."""
        if name not in self.sites:
            members = ", ".join(sorted(self.sites)) or "no site yet"
            raise StudyError(f"{name} is not on the roster, which has {members}. Correct the name.")
        rest = {each: key for each, key in self.sites.items() if each != name}
        sizes = {each: size for each, size in self.participants.items() if each != name}
        return replace(self, serial=self.serial + 1, sites=rest, participants=sizes)

    def handed_over(self, old: Ed25519PrivateKey, new: bytes) -> Roster:
        """Give the consortium a new key, signed by the old one.

        Raises SignatureError if ``old`` is not the consortium's key. Raises StudyError if another
        party has the new key already.
        """
        self.check_owner(old)
        voucher = Handover(
            key=self.centre.hex(), signature=old.sign(pack_tuple(_HANDOVER, new)).hex()
        )
        return replace(
            self, serial=self.serial + 1, centre=new, handovers=(*self.handovers, voucher)
        )

    def check_owner(self, key: Ed25519PrivateKey) -> None:
        """Refuse a key that is not the consortium's; raises SignatureError."""
        public = key.public_key().public_bytes_raw()
        if public != self.centre:
            raise SignatureError(
                f"The keys with the fingerprint {fingerprint(public)} are not those of the "
                f"consortium, which the roster gives as {fingerprint(self.centre)}. Name the right "
                "folder with --keys."
            )

    def descends_from(self, pinned: bytes) -> bool:
        """Return whether the consortium's key is ``pinned``, or follows from it in signed steps."""
        if pinned not in self.succession:
            return False
        start = self.succession.index(pinned)
        steps = zip(self.handovers[start:], self.succession[start + 1 :], strict=True)
        return all(
            verifies(bytes.fromhex(e.key), e.signature, pack_tuple(_HANDOVER, new))
            for e, new in steps
        )


def found_roster(centre: bytes) -> Roster:
    """Return the empty roster of a new consortium."""
    return Roster(1, centre, {})


def fingerprint(key: bytes) -> str:
    """Return the first 96 bits of a key's SHA-256 in groups of four digits, for the telephone."""
    digits = hashlib.sha256(key).hexdigest()[:24]
    return "-".join(digits[place : place + 4] for place in range(0, 24, 4))


def verifies(key: bytes, signature: str, data: bytes) -> bool:
    """Return whether a signature, in hexadecimal, is the key's for these bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True
