"""The privacy statement, the sites, and everything that was released."""

from consortium.report.finished import Finished
from consortium.report.sections.base import PageSection
from consortium.report.sections.verdict import UNITS
from consortium.report.statement import clauses


def section(run: Finished) -> PageSection:
    """Show the statement in clauses, a table of sites and one of releases."""
    report = run.report
    values = {
        "report": report,
        "clauses": clauses(report),
        "unit": UNITS[report.unit],
        "summed": not all(release.each for release in report.releases),
    }
    return PageSection("privacy", values, "Privacy")
