"""What a site's page tells of the agent: what it does now, what is approved, who is left out."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from consortium.algorithms import REGISTRY
from consortium.base.formatting import count, moment
from consortium.engine.wait_file import Waiting
from consortium.errors import ConsortiumError
from consortium.privacy.gdp import mu_of
from consortium.secagg import CENTRE
from consortium.study.plan import promised_mu
from consortium.study.spec import Study
from site_agent.approval.approval import Approval, Terms
from site_agent.config import SiteConfig
from site_agent.data.people import read_left_out
from site_agent.layout import ENDED, LEFT_OUT, REFUSED, WORTH
from site_agent.ledger.entries import LedgerEntry, standing_reservations
from site_agent.ledger.ledger import Ledger
from site_agent.run.message_store import MessageStore
from site_agent.status import ListedApproval, SiteStatus

_HALTED = (
    "The agent has stopped for good: another copy of its folder has answered in its name. Its log "
    "says what to do."
)


@dataclass(frozen=True)
class Row:
    """An approved study."""

    study: Study
    terms: Terms
    left: int
    """Runs that may still take place."""
    state: str
    """Why it does not count any more, or what becomes of it; a sentence."""
    price: float
    """μ of all runs that are left, at the most."""

    @property
    def analysis(self) -> str:
        """Name of its analysis for people."""
        return REGISTRY[self.study.algorithm].title


def approved(status: SiteStatus, ledger: Ledger, today: date) -> tuple[Row, ...]:
    """Every approved study with the runs that are left."""
    return tuple(
        _row(each, _centres(status, each.approval), ledger, today) for each in status.approved
    )


def _centres(status: SiteStatus, approval: Approval) -> Collection[str]:
    known = status.trust.centres if status.trust else frozenset()
    return {approval.keys[CENTRE].hex(), *known}


def _row(yes: ListedApproval, centres: Collection[str], ledger: Ledger, today: date) -> Row:
    study, terms = yes.approval.study, yes.approval.terms
    had = len(ledger.runs(study.study, centres))
    left, state = max(terms.runs - had, 0), "The agent takes part when a run is announced."
    if terms.ended(today):
        left, state = 0, "The last day has passed."
    elif not left:
        state = "All approved runs have begun or taken place."
    if yes.refused:
        left, state = 0, f"Refused: {yes.refused}"
    price = math.sqrt(left) * promised_mu(study) if left else 0.0
    if terms.epsilon is not None:
        price = min(price, mu_of(terms.epsilon, study.privacy.delta))
    return Row(study, terms, left, state, price)


def agent_activity(
    status: SiteStatus, entries: Sequence[LedgerEntry], store: MessageStore
) -> tuple[str, ...]:
    """What the agent does now, a sentence each."""
    if store.halted is not None:
        return (_HALTED,)
    if not status.running:
        return ("The agent is not running; nothing is answered until somebody starts it.",)
    found = ["The agent is running."]
    if status.waiting is not None:
        found.append(_waiting(status.waiting))
    under_way = _open_round(entries, store)
    if under_way:
        found.append(under_way)
    elif status.waiting is None:
        found.append("It waits for the coordinator to start a run of an approved study.")
    return tuple(found)


def _waiting(waiting: Waiting) -> str:
    """The wait that is written down, as 'loading 3 of 24' or for whom."""
    own = waiting.sites.get("this site")
    if own:
        return f"{waiting.step}: {own}."
    who = ", ".join(waiting.sites.values())
    return f"{waiting.step}: it waits for {who}, since {moment(waiting.since)}."


def _open_round(entries: Sequence[LedgerEntry], store: MessageStore) -> str:
    """The last round that was paid for, of a run that has not ended here."""
    paid = standing_reservations(entries)
    if not paid:
        return ""
    last = paid[-1]
    run, number = last.charge.run, last.charge.round
    if store.load(run, ENDED) is not None or store.load(run, REFUSED) is not None:
        return ""
    study = last.charge.study
    return f"It takes part in {run} of {study}, where round {number} was the last paid for."


def count_left_out(
    config: SiteConfig, entries: Sequence[LedgerEntry], store: MessageStore
) -> tuple[str, ...]:
    """How many persons take no part, and by whose rule; never who."""
    found = []
    if config.left_out is not None:
        try:
            many = len(read_left_out(config.left_out))
            found.append(
                f"{count(many, 'participant')} by the hospital's own table, in every study."
            )
        except ConsortiumError:  # which names a person, perhaps, and is told by doctor
            found.append("The hospital's own table can't be read; 'site-agent doctor' says why.")
    for run in dict.fromkeys(entry.charge.run for entry in entries):
        stored = store.load(run, LEFT_OUT)
        many = len(json.loads(stored)) if stored else 0
        if many:
            found.append(f"{count(many, 'participant')} of {run}, whose budget was used up.")
    return tuple(found)


def worths(entries: Sequence[LedgerEntry], store: MessageStore) -> dict[tuple[str, str], str]:
    """What the last run of each study and centre is worth to the site, where that is known."""
    charges = (entry.charge for entry in entries)
    found = {}
    for study, centre, run in dict.fromkeys((c.study, c.centre, c.run) for c in charges):
        stored = store.load(run, WORTH)
        if stored is not None:
            found[study, centre] = stored.decode()
    return found
