"""Approvals of one exact study file with one exact set of keys: record, signature and posting.

An approval is a value, and a signed record on the site's own disk. There is one valid record for
each study, the newest. An older or a withdrawn one is kept in a separate place, where it serves
only to inform the coordinator of its end.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.errors import ConfigurationError, OutputError, StudyError
from consortium.exchange.base import Exchange
from consortium.membership.consent import Consent, Terms, read_consents, withdraw
from consortium.membership.keys import Identity
from consortium.membership.roster import Roster, fingerprint, read_roster
from consortium.membership.signed_study import SignedStudy, read_signed
from consortium.study.spec import Study
from site_agent.enrolment.pinned_consortium import check_members, pin_consortium
from site_agent.layout import APPROVED, SERIALS, WITHDRAWN

__all__ = [
    "Approval",
    "Papers",
    "Terms",
    "approvals",
    "approve",
    "approve_papers",
    "newest_serials",
    "post_withdrawn",
    "raise_serials",
    "read_papers",
]


@dataclass(frozen=True)
class Approval(SignedStudy):
    """An approved study, whose signature was checked before its approval."""

    terms: Terms

    def consent(self, site: str) -> Consent:
        """Return the message to the coordinator."""
        terms = self.terms
        return Consent(site, self.study.digest, terms.runs, terms.epsilon, terms.until)


def approvals(
    folder: Path, identity: Identity, tell: Callable[[str], object] | None = None
) -> list[Approval]:
    """Return every study that a site has approved, without withdrawn or replaced approvals.

    Raises ConfigurationError if a record is damaged, not signed with the site's present key, or not
    where the newest approval of its study is kept, and ``tell`` is not given; if the serials can't
    be read.

    Parameters
    ----------
    folder : Path
        The site's.
    tell : callable, optional
        Receives a message about a record that can't be used, whose study is then skipped.
    """
    found = []
    serials = _read_serials(folder, identity)
    for path in sorted((folder / APPROVED).glob("*.json")):
        try:
            approval = _counting(folder, path, identity, serials)
        except ConfigurationError as error:
            if tell is None:
                raise
            tell(str(error))
            continue
        found += [approval] if approval is not None else []
    return found


def approved_names(folder: Path) -> frozenset[str]:
    """Return the names of the studies that have a record of an approval, valid or not."""
    return frozenset(path.stem for path in (folder / APPROVED).glob("*.json"))


def newest_approval(folder: Path, identity: Identity, study: str) -> Approval | None:
    """Return the valid approval of one study, whatever other records are in the folder.

    Raises ConfigurationError as `approvals`, of this study's record.
    """
    path = folder / APPROVED / f"{study}.json"
    serials = _read_serials(folder, identity)
    return _counting(folder, path, identity, serials) if path.exists() else None


def newest_serials(folder: Path, identity: Identity) -> dict[str, tuple[int, bool]]:
    """Return the serial number of each study's newest approval or withdrawal, as the folder has it.

    A record that can't be read is skipped. Raises ConfigurationError if the serials can't be
    read.

    Parameters
    ----------
    folder : Path
        The site's.
    identity : Identity
        Keys of the site.

    Returns
    -------
    dict of str to (int, bool)
        By study: the serial number, and whether the study is approved.
    """
    serials = _read_serials(folder, identity)
    found = {study: (serial, False) for study, serial in serials.items()}
    for path in sorted((folder / APPROVED).glob("*.json")):
        with suppress(ConfigurationError):
            if _counting(folder, path, identity, serials) is not None:
                found[path.stem] = _read(path, identity)[1], True
    return found


def raise_serials(folder: Path, identity: Identity, least: Mapping[str, int]) -> None:
    """Reject approvals whose serial number is below their study's in the ledger.

    Raises ConfigurationError if the serials can't be read or written.

    Parameters
    ----------
    folder : Path
        The site's.
    identity : Identity
        Keys of the site.
    least : mapping of str to int
        Serial number by study, as the ledger records it.
    """
    serials = _read_serials(folder, identity)
    newer = {study: each for study, each in least.items() if each > serials.get(study, 0)}
    try:
        if newer:
            _write_serials(folder, identity, {**serials, **newer})
    except OutputError as error:
        raise ConfigurationError(str(error)) from error


def _counting(
    folder: Path, path: Path, identity: Identity, serials: Mapping[str, int]
) -> Approval | None:
    """Return a record's approval, if it counts."""
    approval, serial = _read(path, identity)
    name = approval.study.study
    if path != _path_of(folder, approval):
        raise ConfigurationError(
            f"{path} is not where the newest approval of '{name}' is kept. Remove it, and approve "
            "the study again if you agree."
        )
    return None if _is_ended(serials, path, name, serial) else approval


def withdrawn_approvals(folder: Path, identity: Identity) -> Iterator[Approval]:
    """Yield the studies that are no longer approved, without unreadable records."""
    for path in sorted((folder / APPROVED / WITHDRAWN).glob("*.json")):
        try:
            yield _read(path, identity)[0]
        except ConfigurationError:
            continue  # it allows nothing, and there is nothing to report


def store_record(folder: Path, identity: Identity, approval: Approval) -> None:
    """Write a signed record of an approval that replaces the study's earlier one.

    Raises ConfigurationError if it can't be written; the earlier one then counts as before.
    """
    path = _path_of(folder, approval)
    study = approval.study.study
    try:
        serial = _next_serial(folder, identity, path, study)
        before = path.read_bytes() if path.exists() else None
        # The new one first: a running agent finds a valid approval at any time.
        write_bytes(path, _signed({**_content(approval), "serial": serial}, identity))
        try:
            if before is not None:
                write_bytes(_aside(path, before), before)
            _end_before(folder, identity, study, serial)
        except OutputError:
            _put_back(path, before)
            raise
    except (OSError, OutputError) as error:
        raise ConfigurationError(f"{path} can't be written ({error}). Check its folder.") from error


def _put_back(path: Path, before: bytes | None) -> None:
    """Restore the earlier record: an approval that is reported as failed must not count."""
    if before is None:
        path.unlink()
        return
    try:
        write_bytes(path, before)
        _aside(path, before).unlink(missing_ok=True)
    except OutputError:
        path.unlink()  # no approval is safer than the new one


def retire_record(folder: Path, identity: Identity, study: str) -> None:
    """Withdraw the approval of a study: no copy of its record counts any more.

    Raises StudyError if the study is not approved. Raises ConfigurationError if the record can't be
    moved.
    """
    known = {path.stem: path for path in (folder / APPROVED).glob("*.json")}
    if study not in known:
        names = ", ".join(sorted(known)) or "none"
        raise StudyError(f"'{study}' is not an approved study ({names}). Correct the name.")
    try:
        path = known[study]
        write_bytes(_aside(path, path.read_bytes()), path.read_bytes())
        _end_before(folder, identity, study, _next_serial(folder, identity, path, study))
        path.unlink()
    except (OSError, OutputError) as error:
        raise ConfigurationError(
            f"{known[study]} can't be moved ({error}). Remove it by hand."
        ) from error


def _aside(path: Path, content: bytes) -> Path:
    """Return the path of a record that no longer counts."""
    name = f"{path.stem}-{hashlib.sha256(content).hexdigest()[:16]}.json"
    return path.parent / WITHDRAWN / name


def _read_serials(folder: Path, identity: Identity) -> dict[str, int]:
    """Return the serial number of the newest approval of each study, or of its withdrawal."""
    path = folder / APPROVED / SERIALS
    if not path.exists():
        return {}
    try:
        serials = _verified(path.read_text(encoding="utf-8"), identity.public)["serials"]
        return {str(name): int(serial) for name, serial in serials.items()}
    except InvalidSignature as error:
        raise ConfigurationError(_not_signed(path)) from error
    except DAMAGED as error:
        raise ConfigurationError(f"{path} is damaged. Restore it from a backup.") from error


def _is_ended(serials: Mapping[str, int], path: Path, study: str, serial: int) -> bool:
    """Return whether an approval was withdrawn or replaced, wherever its record was meanwhile."""
    return serial < serials.get(study, 0) or _aside(path, path.read_bytes()).exists()


def _end_before(folder: Path, identity: Identity, study: str, serial: int) -> None:
    """Reject approvals of a study whose serial number is lower."""
    _write_serials(folder, identity, {**_read_serials(folder, identity), study: serial})


def _write_serials(folder: Path, identity: Identity, serials: Mapping[str, int]) -> None:
    (folder / APPROVED).mkdir(exist_ok=True)
    write_bytes(folder / APPROVED / SERIALS, _signed({"serials": dict(serials)}, identity))


def _next_serial(folder: Path, identity: Identity, path: Path, study: str) -> int:
    """Return a serial number above those of all the study's approvals."""
    try:
        newest = _read(path, identity)[1] if path.exists() else 0
    except ConfigurationError:  # a replaced record need not be valid
        newest = 0
    return 1 + max(newest, _read_serials(folder, identity).get(study, 0))


def _signed(content: dict[str, Any], identity: Identity) -> bytes:
    signature = identity.key.sign(_canonical(content)).hex()
    return json.dumps({**content, "signature": signature}, indent=1).encode()


@lru_cache(maxsize=64)  # the same few records are read at every look at the exchange
def _verified(text: str, key: bytes) -> Mapping[str, Any]:
    """Return the content of a signed record, or raise an error if it is damaged or altered."""
    record: dict[str, Any] = json.loads(text)
    signature = bytes.fromhex(record.pop("signature"))
    Ed25519PublicKey.from_public_bytes(key).verify(signature, _canonical(record))
    return record


def _not_signed(path: Path) -> str:
    return (
        f"{path} is not signed with this site's key: it was changed, or the key was. Remove it "
        "and approve the study again."
    )


def _path_of(folder: Path, approval: Approval) -> Path:
    return folder / APPROVED / f"{approval.study.study}.json"


def _read(path: Path, identity: Identity) -> tuple[Approval, int]:
    """Return an approval and its serial number, which is 0 in records older than serial numbers."""
    try:
        return _approval_of(path.read_text(encoding="utf-8"), identity.public)
    except InvalidSignature as error:
        raise ConfigurationError(_not_signed(path)) from error
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged, or of an earlier version. Remove it and approve the study again."
        ) from error


@lru_cache(maxsize=64)
def _approval_of(text: str, key: bytes) -> tuple[Approval, int]:
    record = _verified(text, key)
    terms = record["terms"]
    until = record["terms"]["until"]
    approval = Approval(
        study=Study.model_validate(record["study"]),
        file=str(record["file"]),
        mask=str(record["mask"]),
        keys={name: bytes.fromhex(public) for name, public in record["keys"].items()},
        folder=Path(record["folder"]),
        terms=Terms(int(terms["runs"]), terms["epsilon"], until and date.fromisoformat(until)),
    )
    return approval, int(record.get("serial", 0))


def _content(approval: Approval) -> dict[str, Any]:
    terms = approval.terms
    return {
        "study": approval.study.model_dump(mode="json"),
        "file": approval.file,
        "mask": approval.mask,
        "keys": {name: key.hex() for name, key in sorted(approval.keys.items())},
        "folder": str(approval.folder),
        "terms": {
            "runs": terms.runs,
            "epsilon": terms.epsilon,
            "until": terms.until.isoformat() if terms.until else None,
        },
    }


def _canonical(content: Mapping[str, Any]) -> bytes:
    return b"consortium approval 1\n" + json.dumps(content, sort_keys=True).encode()


@dataclass(frozen=True)
class Papers:
    """A study that the site's staff approve: read once, shown, checked and signed as one value."""

    signed: SignedStudy
    members: Roster
    """The consortium's, with the study's keys."""


def read_papers(folder: Path, name: str, own_key: bytes, study: Path, roster: Path) -> Papers:
    """Read the papers of an approval: the signed study, the site's consortium and the site's key.

    Raises StudyError, SignatureError if a file can't be used or is invalid.
    """
    members = read_roster(roster)
    check_members(folder, members)
    signed = read_signed(study, members)
    if name in signed.keys and signed.keys[name] != own_key:
        raise StudyError(
            f"{roster} has {fingerprint(signed.keys[name])} as the key of '{name}', and this "
            f"site's is {fingerprint(own_key)}. Send the coordinator a request of 'site-agent "
            "join'."
        )
    return Papers(signed, members)


def approve(
    folder: Path, name: str, identity: Identity, study: Path, roster: Path, terms: Terms
) -> Approval:
    """Read a study, and record a signed approval without confirmation.

    Raises errors as `read_papers` and `record_approval`.
    """
    papers = read_papers(folder, name, identity.public, study, roster)
    return approve_papers(folder, identity, papers, terms)


def approve_papers(folder: Path, identity: Identity, papers: Papers, terms: Terms) -> Approval:
    """Record a signed approval of a study and its keys, which replaces any earlier one.

    Raises ConfigurationError if the record can't be written.

    Parameters
    ----------
    folder : Path
        The site's folder.
    papers : Papers
        The study as it was shown to the site's staff.
    """
    signed = papers.signed
    approval = Approval(
        study=signed.study,
        file=signed.file,
        mask=signed.mask,
        keys=signed.keys,
        folder=signed.folder,
        terms=terms,
    )
    pin_consortium(folder, check_members(folder, papers.members))
    store_record(folder, identity, approval)
    return approval


def post_withdrawn(
    folder: Path,
    identity: Identity,
    name: str,
    exchange: Exchange,
    tell: Callable[[str], object] | None = None,
) -> None:
    """Withdraw the messages of approvals that no longer count from the exchange.

    Raises ConfigurationError if a record of an approval can't be read and ``tell`` is not given.
    Raises ExchangeError if the exchange can't be used.
    """
    valid = {approval.study.digest for approval in approvals(folder, identity, tell)}
    for approval in withdrawn_approvals(folder, identity):
        study = approval.study
        if study.digest in valid or name not in study.sites:
            continue
        consents = read_consents(exchange, study, {name: identity.public})[name]
        if consents is not None and consents.runs > 0:
            withdraw(exchange, identity.key, name, study)
