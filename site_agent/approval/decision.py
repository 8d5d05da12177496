"""A decision of a site's staff: the approval of a study that they were shown."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

from consortium.base.formatting import count
from consortium.base.lock import take_turns
from consortium.errors import ConsortiumError, StudyError
from consortium.membership.consent import post_consent
from site_agent.approval.approval import (
    Approval,
    Papers,
    Terms,
    approve_papers,
    post_withdrawn,
)
from site_agent.approval.declining import forget_declined
from site_agent.approval.folder import SiteFolder, StudyCase
from site_agent.approval.folder_states import FolderStates
from site_agent.approval.inspection import Inspection
from site_agent.approval.understanding import store_understanding
from site_agent.data.people import candidates
from site_agent.enrolment.pinned_consortium import check_members
from site_agent.enrolment.request import open_anchor
from site_agent.layout import DECISIONS
from site_agent.policy.policy import StudyRequest, refuse_by_policy


def question(warnings: int) -> str:
    """Return the question that is asked before an approval.

    Parameters
    ----------
    warnings : int
        Number of warnings of the inspection.
    """
    return f"Approve this study{despite(warnings)}?"


def despite(warnings: int) -> str:
    """Return the warnings in spite of which a study is approved, in words; may be empty."""
    return f" in spite of {count(warnings, 'WARNING')}" if warnings else ""


def not_informed(trouble: Exception) -> str:
    """Return the sentence on a decision of which the coordinator could not be informed."""
    return f"The coordinator is informed when the agent starts ({trouble})"


def say_yes(
    folder: Path,
    papers: Papers,
    terms: Terms,
    today: date,
    ask: Callable[[], None] = lambda: None,
    still: Callable[[], None] = lambda: None,
) -> tuple[Approval, ConsortiumError | None]:
    """Approve a study for a number of runs from now on, and inform the coordinator.

    ``papers`` are the files that the site's staff were shown. ``ask`` is called once there is no
    objection, and raises an error to stop the approval. ``still`` is called directly before the
    record is written, while no other decision can be made, and raises an error if the site has
    changed since the staff looked. Raises StudyError if the last day is over
    before it began. Raises ConsortiumError if the site's policy refuses the study, or a file can't
    be used.

    Returns
    -------
    approval : Approval
    trouble : ConsortiumError or None
        Why the coordinator could not be informed.
    """
    if terms.ended(today):
        raise StudyError(
            f"--until {terms.until} has passed, so no run could begin. Name a later day."
        )
    site = SiteFolder.open(folder)
    case = StudyCase(site, papers)
    name = site.config.name
    people = candidates(site.config, case.study.data)
    out = {*case.over_limit(people)}
    spent = case.spent([label for label in people if label not in out])
    runs = terms.runs if terms.epsilon is None else 1  # its own bound may end it before its last
    refuse_by_policy(site.policy, case.study, None, StudyRequest(name, spent, runs))
    at = today.isoformat()
    states = FolderStates(folder, site.config, site.identity, site.ledger)
    states.check_left_out()
    states.check_roster(check_members(folder, papers.members))
    ask()
    with take_turns(folder, DECISIONS):
        still()
        states.settle_approvals(at)  # so the new serial number is above all recorded ones
        had = site.ledger.used(case.study.study, case.centres)
        terms = replace(terms, runs=terms.runs + had)
        forget_declined(folder, case.study.digest)
        approval = approve_papers(folder, site.identity, papers, terms)
        return approval, _publish(site, states, approval, at)


def _publish(
    site: SiteFolder, states: FolderStates, approval: Approval, at: str
) -> ConsortiumError | None:
    """Record an approval in the ledger, inform the coordinator, and return what prevents it."""
    name = site.config.name
    try:
        states.settle(at)
        states.settle_left_out(at)
        exchange = site.config.open_exchange()
        trouble = open_anchor(site.path, site.config, site.identity).post()
        post_consent(exchange, site.identity.key, approval.study.study, approval.consent(name))
        post_withdrawn(site.path, site.identity, name, exchange)
    except ConsortiumError as error:
        return error
    return trouble


def approve_inspected(
    folder: Path,
    found: Inspection,
    terms: Terms,
    today: date,
    ask: Callable[[], None] = lambda: None,
    still: Callable[[], None] = lambda: None,
) -> tuple[Approval, ConsortiumError | None]:
    """Approve a study as its inspection showed it; parameters are those of `say_yes`.

    Raises StudyError if the inspection found a problem. Raises errors as `say_yes`.
    """
    if found.problems:
        raise StudyError(f"{found.study.study} is not approved: {found.refusal}")

    def ready() -> None:
        still()
        store_understanding(folder, found.study.study, found.understood)

    return say_yes(folder, found.case.papers, terms, today, ask=ask, still=ready)
