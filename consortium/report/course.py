"""The course of a run compared with its plan: times and sizes of messages."""

from collections.abc import Callable
from typing import NamedTuple

from consortium.base.formatting import count, number
from consortium.report.privacy_report import PrivacyReport
from consortium.study.plan import Plan, Stage
from consortium.study.spec import Study

KIBI = 1024


class Step(NamedTuple):
    """A line of the report's course: its subject, the plan, and the outcome."""

    what: str
    planned: str
    happened: str


def course(
    study: Study, plan: Plan, report: PrivacyReport, seconds: float | None = None
) -> tuple[Step, ...]:
    """Compare the outcome of a run with its plan.

    Parameters
    ----------
    study : Study
        As in the study file, with all its sites.
    plan : Plan
        Plan of the sites with which the run started.
    seconds : float, optional
        From the run's opening to its last release, if known.
    """
    sites = len(plan.study.sites)
    privacy = study.privacy
    timing = study.timing
    fewest = min((len(done.survivors) for done in report.releases), default=sites)
    enough = f", at least {study.fewest}" if study.fewest < len(study.sites) else ""
    longest = (
        3 * timing.join + timing.ready + 3 * plan.rounds * timing.answer
    )  # and unmasking twice
    steps = [
        Step("Sites", f"{len(study.sites)}{enough}", _named(sites, study, plan)),
        Step(
            "Sites missing from a round",
            f"at most {privacy.dropouts}",
            _missing(sites - fewest, report, plan),
        ),
        Step("Rounds", f"at most {plan.rounds}", str(len(report.releases))),
        Step(
            "Numbers released",
            f"at most {_planned(plan, lambda stage: stage.mechanism.released(sites)):,}",
            f"{sum(r.entries * (len(r.survivors) if r.each else 1) for r in report.releases):,}",
        ),
        Step(
            "Sent by a site (payload)",
            f"at most {format_size(_planned(plan, lambda stage: stage.message_bytes))}",
            _sent(plan, report),
        ),
        Step(
            "ε against the coalition",
            f"at most {number(report.promised.epsilon)}",
            number(report.guarantees.coalition.epsilon),
        ),
    ]
    if seconds is not None:
        steps.append(Step("Time", f"at most {format_duration(longest)}", format_duration(seconds)))
    return tuple(steps)


def format_size(many: int) -> str:
    """Return a number of bytes for the report: 1.25 MiB."""
    for unit, least in (("GiB", KIBI**3), ("MiB", KIBI**2), ("KiB", KIBI)):
        if many >= least:
            return f"{many / least:.3g} {unit}"
    return count(many, "byte")


def format_duration(seconds: float) -> str:
    """Return a time for the report: 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


def _planned(plan: Plan, many: Callable[[Stage], int]) -> int:
    return sum(many(stage) * stage.release.rounds for stage in plan.stages)


def _named(sites: int, study: Study, plan: Plan) -> str:
    absent = [name for name in study.sites if name not in plan.study.sites]
    return f"{sites}; without {', '.join(absent)}" if absent else str(sites)


def _missing(most: int, report: PrivacyReport, plan: Plan) -> str:
    if not most:
        return "none"
    counts = {
        name: sum(name not in done.survivors for done in report.releases)
        for name in plan.study.sites
    }
    names = ", ".join(f"{name} {count(many, 'time')}" for name, many in counts.items() if many)
    return f"at most {most} ({names})"


def _sent(plan: Plan, report: PrivacyReport) -> str:
    """Return the sizes of the sites' contributions, which the plan fixes."""
    sent = [
        sum(
            plan.stage(done.stage).message_bytes
            for done in report.releases
            if site in done.survivors
        )
        for site in plan.study.sites
    ]
    least = format_size(min(sent))
    most = format_size(max(sent))
    return least if least == most else f"{least} to {most}"
