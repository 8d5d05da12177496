"""The parts of the page. Each is a function of the finished study, and None where it has none."""

from collections.abc import Callable

from consortium.report.finished import Finished
from consortium.report.sections import (
    curves,
    glance,
    images,
    maps,
    methods,
    reading,
    tables,
    verdict,
    views,
)
from consortium.report.sections.base import PageSection
from consortium.report.statement import UNITS, clauses

Make = Callable[[Finished], PageSection | None]


def files_section(run: Finished) -> PageSection | None:
    """List the files with the content of the page."""
    return PageSection("files", {"files": run.files}) if run.files else None


def privacy_section(run: Finished) -> PageSection:
    """Show the statement in clauses, a table of sites and one of releases."""
    report = run.report
    values = {
        "report": report,
        "clauses": clauses(report),
        "unit": UNITS[report.unit],
        "summed": not all(release.each for release in report.releases),
    }
    return PageSection("privacy", values, "Privacy")


def course_section(run: Finished) -> PageSection | None:
    """Show the plan and the outcome, line by line."""
    return (
        PageSection("course", {"steps": run.course}, "Planned and actual") if run.course else None
    )


SUMMARY: tuple[Make, ...] = (verdict.section,)
FINDINGS: tuple[Make, ...] = (
    glance.section,
    maps.section,
    images.section,
    curves.section,
    tables.section,
    views.section,
    files_section,
)
EXPLANATIONS: tuple[Make, ...] = (reading.section, privacy_section, methods.section, course_section)
