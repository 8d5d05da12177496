"""A site's signed request to be admitted, and its admission by the coordinator.

The request proves that the sender has the private key of the requested entry. A site that changes
its key also signs with its earlier one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import Field

from consortium.base.frozen_model import FrozenModel
from consortium.base.strict_yaml import read_yaml, write_yaml
from consortium.errors import SignatureError, StudyError
from consortium.membership.roster import (
    MOST_PARTICIPANTS,
    Key,
    Roster,
    Signature,
    fingerprint,
    verifies,
)
from consortium.secagg.crypto import pack_tuple
from consortium.study.nominal import check_nominal
from consortium.study.spec import Name

_LABEL = "consortium join 1"


class _File(FrozenModel):
    site: Name
    key: Key
    centre: Key
    signature: Signature
    replaces: Key | None = None
    replaced_signature: Signature | None = None
    participants: Annotated[int, Field(ge=1, le=MOST_PARTICIPANTS)] | None = None


@dataclass(frozen=True)
class JoinRequest:
    """A site's request to join a consortium, whose signatures were checked."""

    site: str
    key: bytes
    """Public key to be admitted with, 32 bytes."""
    centre: bytes
    """Key of the consortium that the site requests to join."""
    replaces: bytes | None = None
    """The site's earlier key, which has signed too."""
    participants: int | None = None
    """Nominal number of participants, if the site states one."""

    def signed(self) -> bytes:
        """Return the bytes under the signatures."""
        fields = (_LABEL, self.site, self.key, self.centre, self.replaces or b"")
        size = () if self.participants is None else (self.participants,)
        return pack_tuple(*fields, *size)


def write_request(
    path: Path,
    site: str,
    centre: bytes,
    key: Ed25519PrivateKey,
    replaced: Ed25519PrivateKey | None = None,
    participants: int | None = None,
) -> JoinRequest:
    """Sign a request and write it; raises OutputError if the file can't be written."""
    before = replaced.public_key().public_bytes_raw() if replaced else None
    request = JoinRequest(site, key.public_key().public_bytes_raw(), centre, before, participants)
    text = request.signed()
    file = _File(
        site=site,
        key=request.key.hex(),
        centre=centre.hex(),
        signature=key.sign(text).hex(),
        replaces=before.hex() if before else None,
        replaced_signature=replaced.sign(text).hex() if replaced else None,
        participants=participants,
    )
    write_yaml(path, file.model_dump(exclude_none=True))
    return request


def read_request(path: Path) -> JoinRequest:
    """Read a request and check its signatures.

    Raises StudyError if it is missing, or not a request. Raises SignatureError if it was changed,
    or the sender doesn't have the keys.
    """
    try:
        file = _File.model_validate(read_yaml(path))
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{path} is not a request to join. Ask the site for the file that 'site-agent join' "
            "wrote."
        ) from error
    replaces = bytes.fromhex(file.replaces) if file.replaces else None
    request = JoinRequest(
        site=file.site,
        key=bytes.fromhex(file.key),
        centre=bytes.fromhex(file.centre),
        replaces=replaces,
        participants=file.participants,
    )
    if file.participants is not None:
        check_nominal(file.participants, f"{path}: field 'participants'")
    signatures = [(request.key, file.signature)]
    if replaces is not None:
        signatures.append((replaces, file.replaced_signature or ""))
    for key, signature in signatures:
        if not verifies(key, signature, request.signed()):
            raise SignatureError(
                f"{path} is not signed with the key {fingerprint(key)} that it names. Ask "
                f"{request.site} for a new request."
            )
    return request


def admit_site(members: Roster, request: JoinRequest, *, lost_key: bool = False) -> Roster:
    """Add a site to the roster, or replace its key as it requests.

    Raises StudyError if the request is for another consortium, or the site is on the roster with
    another key.

    Parameters
    ----------
    lost_key : bool
        Whether a site of the roster may change its key without its old key's signature. The
        coordinator must then have verified the sender by other means.
    """
    site = request.site
    known = members.sites.get(request.site)
    if not members.descends_from(request.centre):
        raise StudyError(
            f"{site} asks to join the consortium with the key {fingerprint(request.centre)}, which "
            "is not this one's. Give the site the right key."
        )
    stated = members.participants.get(site)
    if known == request.key and request.participants in (None, stated):
        return members
    if known not in (None, request.key, request.replaces) and not lost_key:
        raise StudyError(
            f"{site} is on the roster with the key {fingerprint(known)}, which did not sign this "
            "request. Have it sign with that key, or admit it with --lost-key after you verified "
            "its sender."
        )
    return members.with_site(site, request.key, request.participants)
