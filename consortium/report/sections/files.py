"""Which files hold what the page shows."""

from consortium.report.finished import Finished
from consortium.report.sections.base import Section


def section(run: Finished) -> Section | None:
    """Name them."""
    return Section("files", {"files": run.files}) if run.files else None
