"""Which files hold what the page shows."""

from consortium.report.finished import Finished
from consortium.report.sections.base import PageSection


def section(run: Finished) -> PageSection | None:
    """Name them."""
    return PageSection("files", {"files": run.files}) if run.files else None
