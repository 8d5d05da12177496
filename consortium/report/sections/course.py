"""What was planned, and what happened."""

from consortium.report.finished import Finished
from consortium.report.sections.base import Section


def section(run: Finished) -> Section | None:
    """Show both, line by line."""
    if not run.course:
        return None
    return Section("course", {"steps": run.course}, "Planned and actual")
