"""A site's people say yes to one exact study file with one exact set of keys, or take it back."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from consortium.errors import ConsortiumError, StudyError
from consortium.exchange.base import Exchange
from consortium.membership.consent import Terms, read_consents, withdraw
from consortium.membership.keys import Identity, load_identity
from consortium.membership.roster import Roster, fingerprint, read_roster
from consortium.membership.signed_study import SignedStudy, read_signed
from site_agent.approval.record import (
    Approval,
    approvals,
    retire_record,
    store_record,
    withdrawn_approvals,
)
from site_agent.config import SiteConfig
from site_agent.enrolment.pinned_consortium import check_members, pin_consortium

__all__ = [
    "Approval",
    "Papers",
    "Terms",
    "approvals",
    "approve",
    "approve_papers",
    "post_withdrawn",
    "read_papers",
    "take_back",
]


@dataclass(frozen=True)
class Papers:
    """A study as a site's people see it: read once, shown, checked and signed as one value."""

    signed: SignedStudy
    members: Roster
    """The consortium's, with the study's keys."""


def read_papers(folder: Path, name: str, own_key: bytes, study: Path, roster: Path) -> Papers:
    """Read a study as a site does before it says yes: signed, by its consortium, with its key.

    Raises StudyError, SignatureError if a file can't be used or is not what it must be, or the
    study protects nobody.
    """
    members = read_roster(roster)
    check_members(folder, members)
    signed = read_signed(study, members)
    if signed.study.privacy.scheme == "none":
        raise StudyError(
            f"{study}: field 'privacy.scheme': 'none' protects no participant and is for "
            "simulations; ask for a study with cape, secure-sum or local."
        )
    if name in signed.keys and signed.keys[name] != own_key:
        raise StudyError(
            f"{roster} has {fingerprint(signed.keys[name])} as the key of '{name}', and this "
            f"site's is {fingerprint(own_key)}; send the coordinator a request of 'site-agent "
            "join'."
        )
    return Papers(signed, members)


def approve(
    folder: Path, name: str, identity: Identity, study: Path, roster: Path, terms: Terms
) -> Approval:
    """Read a study, and record a signed yes to it that nobody is asked for; raises as both."""
    papers = read_papers(folder, name, identity.public, study, roster)
    return approve_papers(folder, identity, papers, terms)


def approve_papers(folder: Path, identity: Identity, papers: Papers, terms: Terms) -> Approval:
    """Record a signed yes to a study and its keys, in the place of any earlier yes to it.

    Raises ConfigurationError if the record can't be written.

    Parameters
    ----------
    folder : Path
        The site's folder.
    papers : Papers
        What the site's people were shown.
    """
    signed = papers.signed
    approval = Approval(signed.study, signed.file, signed.mask, signed.keys, signed.folder, terms)
    store_record(folder, identity, approval)
    pin_consortium(folder, check_members(folder, papers.members))
    return approval


def take_back(folder: Path, study: str) -> ConsortiumError | None:
    """Take a yes back; a running agent reserves nothing for the study from now on.

    Raises StudyError if the study is not approved. Raises ConfigurationError if the site's folder
    can't be used.

    Parameters
    ----------
    folder : Path
        The site's folder.
    study : str
        The study's name.

    Returns
    -------
    ConsortiumError or None
        Why the coordinator could not be told.
    """
    config, identity = SiteConfig.load(folder), load_identity(folder)
    retire_record(folder, identity, study)
    try:
        post_withdrawn(folder, identity, config.name, config.open_exchange())
    except ConsortiumError as error:
        return error
    return None


def post_withdrawn(
    folder: Path,
    identity: Identity,
    name: str,
    exchange: Exchange,
    tell: Callable[[str], object] | None = None,
) -> None:
    """Take back what lies on the exchange of yeses that don't count any more.

    Raises ConfigurationError if a record of what is approved can't be read, and ``tell`` is not
    told so. Raises ExchangeError if the exchange can't be used.
    """
    valid = {approval.study.digest for approval in approvals(folder, identity, tell)}
    for approval in withdrawn_approvals(folder, identity):
        study = approval.study
        if study.digest in valid or name not in study.sites:
            continue
        consents = read_consents(exchange, study, {name: identity.public})[name]
        if consents is not None and consents.runs > 0:
            withdraw(exchange, identity.key, name, study)
