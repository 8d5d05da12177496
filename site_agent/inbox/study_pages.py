"""Pages of studies: those that wait for a decision, each one's request, and the decisions."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from consortium.algorithms import REGISTRY
from consortium.errors import ConfigurationError, ConsortiumError, StudyError
from consortium.opened_study import open_signed
from consortium.report.statement import protected_text
from consortium.study.outlook import HEADS, Outlook
from consortium.study.plan import Plan, promised_mu
from consortium.study.spec import Study, open_vectors
from site_agent.approval.approval import Papers, Terms, approvals
from site_agent.approval.decision import approve_inspected, despite, not_informed, question
from site_agent.approval.declining import say_no
from site_agent.approval.folder import SiteFolder
from site_agent.approval.inspection import Inspection, Watch, inspect, planned
from site_agent.approval.offers import Offer, approval_digest, state_digest
from site_agent.approval.withdrawal import take_back
from site_agent.inbox.checks import StudyCheck
from site_agent.inbox.notes import MOST_NOTE, read_notes, write_note
from site_agent.inbox.office import CHANGED, Office, field_of, find_offer, form_of, unchanged
from site_agent.layout import STUDIES
from site_agent.ledger.ledger import UNITS, accounts
from site_agent.page.course import Course, Row, approved, ledger_course
from site_agent.page.page import page_content
from site_agent.status import approval_line, read_status

_MOST_RUNS = 10_000


def show_home(office: Office, request: Request) -> Response:
    """Show the studies that wait for a decision, and the approved ones."""
    with office.reading() as folder:
        content = page_content(folder, office.now())
        return office.show(
            request,
            "home.html.j2",
            **content,
            notes=read_notes(folder),
            studies_folder=office.folder.resolve() / STUDIES,
            title_of=_title_of,
        )


def show_study(office: Office, request: Request) -> Response:
    """Show one study: its request, its privacy loss, its check, and the form of its approval."""
    with office.reading() as folder:
        ident = request.path_params["ident"]
        site, offer = find_offer(folder, ident)
        if offer.papers is None:
            raise StudyError(offer.trouble)
        asked = offer.papers.signed.study
        shown = state_digest(SiteFolder.open(office.folder), offer.papers)
        plan, problems = _planned(offer.papers)
        check = office.checks.of(ident)
        return office.show(
            request,
            "study.html.j2",
            site=site.config.name,
            offer=offer,
            command=offer.command(office.folder.resolve()),
            study=asked,
            facts=_facts(asked, offer.papers),
            plan=plan,
            heads=HEADS,
            rows=[*Outlook(plan).rows()] if plan else [],
            problems=problems,
            courses=_courses(office, folder, site, asked),
            check=check,
            stale=check is not None and check.shown != shown,
            note=read_notes(folder).get(asked.study),
            most_note=MOST_NOTE,
            refresh=_next_look(office, ident) if check and check.is_running else "",
        )


def start_check(office: Office, request: Request) -> Response:
    """Start the check of a study with the site's data, from a page of the inbox."""
    ident = request.path_params["ident"]
    site, offer = find_offer(office.folder, ident)
    if offer.papers is None or offer.trouble:
        raise StudyError(offer.trouble)
    shown = state_digest(site, offer.papers)
    work = partial(_inspect_shown, office.folder, offer, shown)
    office.checks.start(ident, shown, office.now(), work)
    return RedirectResponse(f"{office.door.base}study/{ident}#check", 303)


def ask_approval(office: Office, request: Request) -> Response:
    """Ask on a page of the inbox for the confirmation of an approval."""
    check, found = _checked(office, request)
    if found.problems:
        raise StudyError(f"{found.study.study} is not approved: {found.refusal}")
    terms = _terms(form_of(request))
    if terms.ended(office.now().date()):
        raise StudyError(f"{terms.until} has passed, so no run could begin. Name a later day.")
    _require_unchanged(office, request, check)
    return office.show(
        request,
        "confirm.html.j2",
        site=found.case.site.config.name,
        ident=request.path_params["ident"],
        study=found.study,
        file=found.case.papers.signed.file,
        shown=check.mark,
        terms=terms,
        found=found,
        question=question(len(found.warnings)),
    )


def approve_study(office: Office, request: Request) -> Response:
    """Approve a study on a page of the inbox, as it was checked and shown."""
    check, found = _checked(office, request)
    terms = _terms(form_of(request))
    if found.warnings and form_of(request).get("despite") != "yes":
        raise StudyError(
            f"Nothing is approved{despite(len(found.warnings))}. Fix the problem, or go back and "
            "tick the box to approve anyway."
        )
    still = partial(_require_unchanged, office, request, check)
    today = office.now().date()
    approval, trouble = approve_inspected(office.folder, found, terms, today, still=still)
    return _decided(office, request, f"Approved: {approval_line(approval)}.", trouble)


def ask_withdrawal(office: Office, request: Request) -> Response:
    """Ask on a page of the inbox for the confirmation of a withdrawal."""
    name = request.path_params["study"]
    with office.reading() as folder:
        site = SiteFolder.open(folder)
        for approval in approvals(folder, site.identity):
            if approval.study.study == name:
                return office.show(
                    request,
                    "withdraw.html.j2",
                    site=site.config.name,
                    study=approval.study,
                    line=approval_line(approval),
                    shown=approval_digest(folder, name),
                )
    raise StudyError(f"'{name[:100]}' is not an approved study. Go to Decisions.")


def withdraw_study(office: Office, request: Request) -> Response:
    """Withdraw an approval from a page of the inbox."""
    name = request.path_params["study"]
    digest = partial(approval_digest, office.folder, name)
    still = unchanged(digest, field_of(request, "shown"))
    trouble = take_back(office.folder, name, office.now().date(), still)
    return _decided(office, request, f"Withdrawn: {name} is no longer approved.", trouble)


def ask_declining(office: Office, request: Request) -> Response:
    """Ask on a page of the inbox for the confirmation that a study is declined."""
    with office.reading() as folder:
        site, offer = find_offer(folder, request.path_params["ident"])
        if offer.papers is None:
            raise StudyError(offer.trouble)
        return office.show(
            request,
            "decline.html.j2",
            site=site.config.name,
            offer=offer,
            study=offer.papers.signed.study,
            shown=state_digest(SiteFolder.open(office.folder), offer.papers),
        )


def decline_study(office: Office, request: Request) -> Response:
    """Decline a study on a page of the inbox, as it was shown."""
    site, offer = find_offer(office.folder, request.path_params["ident"])
    papers = offer.papers
    if papers is None:
        raise StudyError(offer.trouble)
    still = unchanged(partial(state_digest, site, papers), field_of(request, "shown"))
    trouble = say_no(office.folder, papers, office.now().date(), still)
    name = papers.signed.study.study
    return _decided(office, request, f"Declined: {name} is not approved.", trouble)


def keep_note(office: Office, request: Request) -> Response:
    """Store the staff's note on a study from a page of the inbox."""
    ident = request.path_params["ident"]
    _, offer = find_offer(office.folder, ident)
    if offer.study is None:
        raise StudyError(offer.trouble)
    text, before = (
        field_of(request, name).replace("\r\n", "\n").strip() for name in ("note", "before")
    )
    write_note(office.folder, offer.study.study, text, office.now(), before=before)
    return RedirectResponse(f"{office.door.base}study/{ident}#note", 303)


def _decided(
    office: Office, request: Request, sentence: str, trouble: ConsortiumError | None
) -> Response:
    """Show that a decision was made, and whether the coordinator could not be informed."""
    return office.done(request, sentence, not_informed(trouble) if trouble else "")


def _next_look(office: Office, ident: str) -> str:
    """Return an address of the same page that differs each time, or browsers would not load it."""
    return f"{office.door.base}study/{ident}?at={office.now().timestamp():.0f}#check"


def _title_of(study: Study) -> str:
    return REGISTRY[study.algorithm].title


def _facts(asked: Study, papers: Papers) -> tuple[tuple[str, str], ...]:
    """Return the study's requests, by heading."""
    privacy = asked.privacy
    facts = [
        ("Name", asked.study),
        ("Analysis", REGISTRY[asked.algorithm].title),
        ("Hospitals", ", ".join(asked.sites)),
        ("Protects each", UNITS.get(privacy.unit, privacy.unit)),
        ("Loss of one run", f"ε ≤ {privacy.epsilon:g} at δ = {privacy.delta:g}"),
        ("Meaning", protected_text(privacy.unit)),
        ("Open vectors", open_vectors(asked)),
        ("SHA-256 of the study file", papers.signed.file),
    ]
    return tuple((name, text) for name, text in facts if text)


def _planned(papers: Papers) -> tuple[Plan | None, list[str]]:
    """Return the plan from the study's public numbers, or the reasons why there is none."""
    problems: list[str] = []
    try:
        return planned(open_signed(papers.signed), problems), problems
    except ConsortiumError as error:
        return None, [str(error)]


def _courses(
    office: Office, folder: Path, site: SiteFolder, asked: Study
) -> list[tuple[Course, Any]]:
    """Return the accounts over time that one run of the study would add to, with drawings."""
    now = office.now()
    status = read_status(folder)
    ledger = site.ledger
    try:
        others = approved(status, now.date())
        rows = [each for each in others if each.study.study != asked.study]
        rows.append(Row(asked, Terms(1), 1, "", promised_mu(asked)))
        held = accounts(ledger, site.policy)
        delta = site.policy.delta
        found = [ledger_course(ledger, each, rows, delta, now, asked=asked.study) for each in held]
        return [(each, each.draw()) for each in found]
    finally:
        ledger.close()


def _inspect_shown(folder: Path, offer: Offer, shown: str, watch: Watch) -> Inspection:
    """Check a study; raises ConfigurationError if it is not the one that the page showed.

    Its files may be exchanged while they are read, and then exchanged back.
    """
    found = inspect(folder, offer.path, offer.roster, watch)
    if state_digest(found.case.site, found.case.papers) != shown:
        raise ConfigurationError(CHANGED)
    return found


def _checked(office: Office, request: Request) -> tuple[StudyCheck, Inspection]:
    """Return the finished check whose result a form's page showed."""
    check = office.checks.of(request.path_params["ident"])
    if check is None or check.found is None:
        raise StudyError("The study must be checked before it is approved. Check it first.")
    if check.mark != field_of(request, "shown"):
        raise ConfigurationError(CHANGED)
    return check, check.found


def _require_unchanged(office: Office, request: Request, check: StudyCheck) -> None:
    """Refuse a decision if the study or the site has changed since the check."""
    site, offer = find_offer(office.folder, request.path_params["ident"])
    if offer.papers is None or state_digest(site, offer.papers) != check.shown:
        raise ConfigurationError(CHANGED)


def _terms(form: Mapping[str, str]) -> Terms:
    """Return the terms of a form. Raises StudyError if a field is out of range."""
    try:
        runs = int(form.get("runs") or "1")
        until = date.fromisoformat(form["until"]) if form.get("until") else None
        epsilon = float(form["epsilon"]) if form.get("epsilon") else None
    except ValueError as error:
        raise StudyError(
            "Runs must be a whole number, the last day a date such as 2027-06-30, and ε a number "
            "such as 10. Go back, and correct the form."
        ) from error
    if not 1 <= runs <= _MOST_RUNS:
        raise StudyError(f"Runs must be between 1 and {_MOST_RUNS:,}. Go back, and correct it.")
    return Terms(runs, epsilon, until)
