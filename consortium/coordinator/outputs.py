"""A finished study's output folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from consortium.algorithms.base import Result
from consortium.coordinator.run_folder import RECORD
from consortium.engine.session import Round
from consortium.engine.transcript import TRANSCRIPT
from consortium.opened_study import OpenedStudy
from consortium.report.accounting import account
from consortium.report.course import course
from consortium.report.finished import finish_result
from consortium.report.legend import Legend
from consortium.report.privacy_report import PrivacyReport
from consortium.study.plan import Plan


@dataclass(frozen=True)
class MachineFacts:
    """Day and machine of a finished folder, which don't follow from other files."""

    day: date
    report: PrivacyReport

    def put_into(self, report: PrivacyReport) -> PrivacyReport:
        """Return the report as that machine would write it."""
        known = self.report.cross_check  # comparable only within one version of the library
        own = report.cross_check
        checked = own if own.version == known.version else known
        return report.model_copy(update={"versions": self.report.versions, "cross_check": checked})


@dataclass(frozen=True)
class Publisher:
    """Writer of a finished study's output folder."""

    folder: Path
    opened: OpenedStudy
    sampler: str | None = None
    """Told in the report instead of the exact sampler."""
    legend: Legend | None = None
    """Names of places and networks for the page."""
    pages: bool = True
    """Whether the page with its pictures is also written; otherwise only the numbers, for a
    comparison."""
    machine: MachineFacts | None = None
    """Day and machine of a folder that is made again."""
    seconds: float | None = None
    """Duration of the run, if its folder doesn't state it."""

    def publish(self, plan: Plan, rounds: Sequence[Round], result: Result) -> PrivacyReport:
        """Write maps, privacy report and page; the same inputs give the same maps."""
        report = account(plan, rounds, _most_volumes(plan), self.sampler)
        day = datetime.now(UTC).date()
        if self.machine is not None:
            report = self.machine.put_into(report)
            day = self.machine.day
        done = finish_result(
            study=self.opened.study,
            space=self.opened.space,
            result=result,
            report=report,
            day=day,
            legend=self.legend,
        )
        done = replace(done, course=course(self.opened.study, plan, report, self._seconds()))
        from consortium.report.outputs import write_outputs  # brings what draws

        write_outputs(self.folder, done, pages=self.pages)
        return report

    def _seconds(self) -> float | None:
        """Time from the run's opening to its last release, of a run that left both."""
        record = self.folder / RECORD
        released = [path.stat().st_mtime for path in (self.folder / TRANSCRIPT).glob("*.json")]
        if not (record.exists() and released):
            return self.seconds
        return max(0.0, max(released) - record.stat().st_mtime)


def _most_volumes(plan: Plan) -> int:
    """Return a public bound on one participant's volumes."""
    if plan.study.features:
        return 1
    fixed = plan.study.data.volumes
    shape = plan.shape
    sizes = zip(shape.samples, shape.subjects, strict=True)
    least = plan.study.data.minimum_volumes
    return fixed or max(total - least * (people - 1) for total, people in sizes)
