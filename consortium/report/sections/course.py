"""What was planned, and what happened."""

from consortium.report.finished import Finished
from consortium.report.sections.base import PageSection


def section(run: Finished) -> PageSection | None:
    """Show both, line by line."""
    if not run.course:
        return None
    return PageSection("course", {"steps": run.course}, "Planned and happened")
