"""A decision of a site's staff: the approval of a study that they were shown."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

from consortium.errors import ConsortiumError, StudyError
from consortium.membership.consent import post_consent
from site_agent.approval.approval import (
    Approval,
    Papers,
    Terms,
    approve_papers,
    post_withdrawn,
)
from site_agent.approval.folder import SiteFolder, StudyCase
from site_agent.approval.folder_states import FolderStates
from site_agent.data.people import candidates
from site_agent.enrolment.pinned_consortium import check_members
from site_agent.enrolment.request import open_anchor
from site_agent.policy.policy import StudyRequest, refuse_by_policy


def say_yes(
    folder: Path,
    papers: Papers,
    terms: Terms,
    today: date,
    ask: Callable[[], None] = lambda: None,
) -> tuple[Approval, ConsortiumError | None]:
    """Approve a study for a number of runs from now on, and inform the coordinator.

    ``papers`` are the files that the site's staff were shown. ``ask`` is called once there is no
    objection, and raises an error to stop the approval. Raises StudyError if the last day is over
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
            f"--until {terms.until} has passed, so no run could begin; name a later day."
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
    states.settle_approvals(at)  # so the new serial number is above all recorded ones
    had = site.ledger.used(case.study.study, case.centres)
    terms = replace(terms, runs=terms.runs + had)
    approval = approve_papers(folder, site.identity, papers, terms)
    try:
        states.settle(at)
        states.settle_left_out(at)
        exchange = site.config.open_exchange()
        trouble = open_anchor(folder, site.config, site.identity).post()
        post_consent(exchange, site.identity.key, case.study.study, approval.consent(name))
        post_withdrawn(folder, site.identity, name, exchange)
    except ConsortiumError as error:
        return approval, error
    return approval, trouble
