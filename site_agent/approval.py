"""What a site's people have said yes to: one exact study file with one exact set of keys."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature

from consortium.consent import Consent
from consortium.errors import BudgetError, ConfigurationError, OutputError, PrivacyError, StudyError
from consortium.files import DAMAGED, write_atomically
from consortium.identity import Identity
from consortium.plan import promised_mu
from consortium.privacy.gdp import compose, epsilon_of
from consortium.roster import fingerprint, read_roster
from consortium.secagg import CENTRE
from consortium.signing import SignedStudy, mask_digest, read_signed
from consortium.study import Study
from site_agent.ledger import Ledger
from site_agent.trust import check_members, pin

APPROVED = "approved"
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Terms:
    """How often, how dearly and how long an approved study may run.

    Parameters
    ----------
    runs : int
        Runs that may ever cost something, those of before included.
    epsilon : float or None
        Largest ε of all these runs together, at the study's δ; None sets no bound of its own.
    until : date or None
        Last day on which a run may begin.

    Raises
    ------
    StudyError
        If a number allows nothing, or is none.
    """

    runs: int = 1
    epsilon: float | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise StudyError(f"An approval of {self.runs} runs allows nothing; give --runs 1.")
        if self.epsilon is not None and not 0 < self.epsilon < math.inf:
            raise StudyError(
                f"ε = {self.epsilon:g} in all is no bound; give --epsilon a number above 0."
            )


@dataclass(frozen=True)
class Approval:
    """An approved study.

    Parameters
    ----------
    study : Study
    file, mask : str
        SHA-256 of the study file and of its mask, in hexadecimal.
    keys : mapping of str to bytes
    folder : Path
        Where the study's mask is looked for.
    terms : Terms
    """

    study: Study
    file: str
    mask: str
    keys: Mapping[str, bytes]
    folder: Path
    terms: Terms

    def consent(self, site: str) -> Consent:
        """Return what the coordinator is told."""
        terms = self.terms
        return Consent(site, self.study.digest, terms.runs, terms.epsilon, terms.until)

    def check_new_run(self, ledger: Ledger, dataset: str, today: date) -> None:
        """Refuse another run than those that were approved.

        Raises
        ------
        StudyError
            If the mask is not the one that was approved.
        PrivacyError
            If the approved runs are used up, or the approval has ended.
        BudgetError
            If one more run could cost more than was approved.
        """
        if mask_digest(self.study, self.folder) != self.mask:
            raise StudyError(
                f"The mask of '{self.study.study}' in {self.folder} is not the one that was "
                "approved; restore it, or approve the study again if you agree."
            )
        study, terms, centre = self.study, self.terms, self.keys[CENTRE].hex()
        if len(ledger.runs(study.study, centre)) >= terms.runs:
            count = f"{terms.runs} run{'' if terms.runs == 1 else 's'}"
            raise PrivacyError(
                f"'{study.study}' was approved for {count} and had as many; another costs again, "
                "so approve it again if you agree."
            )
        if terms.until is not None and today > terms.until:
            raise PrivacyError(
                f"The approval of '{study.study}' ended on {terms.until}; approve it again if you "
                "agree."
            )
        if terms.epsilon is not None:
            spent = ledger.study_total(dataset, study.privacy.unit, study.study, centre)
            asked = epsilon_of(compose([spent, promised_mu(study)]), study.privacy.delta)
            if not asked <= terms.epsilon * _ROUNDING:
                raise BudgetError(
                    f"'{study.study}' was approved for ε = {terms.epsilon:g} in all, and another "
                    f"run could make it {asked:.4g}; approve it again if you agree."
                )


def read_for(folder: Path, name: str, own_key: bytes, study: Path, roster: Path) -> SignedStudy:
    """Read a study as a site does before it says yes: signed, by its consortium, with its key.

    Raises
    ------
    StudyError, SignatureError
        If a file can't be used or is not what it must be, or the study protects nobody.
    """
    members = read_roster(roster)
    check_members(folder, members)
    signed = read_signed(study, members)
    if signed.study.privacy.scheme == "none":
        raise StudyError(
            f"{study}: field 'privacy.scheme': 'none' protects nobody and is for simulations; "
            "ask for a study with cape, secure-sum or local."
        )
    if name in signed.keys and signed.keys[name] != own_key:
        raise StudyError(
            f"{roster} has {fingerprint(signed.keys[name])} as the key of '{name}', and this "
            f"site's is {fingerprint(own_key)}; send the coordinator a request of 'site-agent "
            "join'."
        )
    return signed


def approve(
    folder: Path,
    name: str,
    identity: Identity,
    study: Path,
    roster: Path,
    terms: Terms,
) -> Approval:
    """Record a signed yes to a study and its keys.

    Parameters
    ----------
    folder : Path
        The site's folder.
    name : str
        The site's.
    identity : Identity
    study, roster : Path
    terms : Terms

    Raises
    ------
    StudyError, SignatureError
        As `read_for`.
    ConfigurationError
        If the record can't be written.
    """
    signed = read_for(folder, name, identity.public, study, roster)
    approval = Approval(signed.study, signed.file, signed.mask, signed.keys, signed.folder, terms)
    content = _content(approval)
    signature = identity.key.sign(_canonical(content)).hex()
    record = json.dumps({**content, "signature": signature}, indent=1)
    members = read_roster(roster)
    try:
        write_atomically(folder / APPROVED / f"{_stem(approval)}.json", record.encode())
    except OutputError as error:
        raise ConfigurationError(str(error)) from error
    pin(folder, check_members(folder, members))
    return approval


def approvals(folder: Path, identity: Identity) -> list[Approval]:
    """Every study that a site has approved.

    Raises
    ------
    ConfigurationError
        If a record is damaged, or not signed with the site's present key.
    """
    return [_read(path, identity) for path in sorted((folder / APPROVED).glob("*.json"))]


def _read(path: Path, identity: Identity) -> Approval:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        signature = bytes.fromhex(record.pop("signature"))
        identity.key.public_key().verify(signature, _canonical(record))
        terms, until = record["terms"], record["terms"]["until"]
        return Approval(
            Study.model_validate(record["study"]),
            str(record["file"]),
            str(record["mask"]),
            {name: bytes.fromhex(text) for name, text in record["keys"].items()},
            Path(record["folder"]),
            Terms(int(terms["runs"]), terms["epsilon"], until and date.fromisoformat(until)),
        )
    except InvalidSignature as error:
        raise ConfigurationError(
            f"{path} is not signed with this site's key: it was changed, or the key was; remove it "
            "and approve the study again."
        ) from error
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged; remove it and approve the study again."
        ) from error


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


def _stem(approval: Approval) -> str:
    keys = (f"{name}={key.hex()}" for name, key in sorted(approval.keys.items()))
    digest = hashlib.sha256("|".join([approval.file, approval.mask, *keys]).encode()).hexdigest()
    return f"{approval.study.study}-{digest[:16]}"
