"""A finished study's output folder, and the bar that shows how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from consortium.algorithms.base import Result
from consortium.engine.session import Round
from consortium.report.accounting import account
from consortium.report.bids import noise_in_maps, write_derivatives
from consortium.report.components import tidy_components
from consortium.report.feature_page import write_feature_page
from consortium.report.image_sets import write_image_sets
from consortium.report.page import write_page
from consortium.report.privacy_report import PrivacyReport, write_privacy_report
from consortium.report.tables import write_results
from consortium.space.smoothing import smooth_maps
from consortium.space.study_space import Space
from consortium.study.plan import Plan
from consortium.study.spec import Study


@dataclass(frozen=True)
class Publisher:
    """Writes the output folder.

    Parameters
    ----------
    folder : Path
    study : Study
    space : Space
    sampler : str, optional
        Told in the report instead of the exact sampler.
    pages : bool
        Whether the page with its pictures is written, too; without it the numbers alone are, to be
        compared.
    """

    folder: Path
    study: Study
    space: Space
    sampler: str | None = None
    pages: bool = True

    def publish(self, plan: Plan, rounds: Sequence[Round], result: Result) -> PrivacyReport:
        """Write maps, privacy report and page; the same inputs give the same maps."""
        report = account(plan, rounds, _most_volumes(plan), self.sampler)
        write_privacy_report(self.folder / "privacy_report.json", report)
        write_image_sets(self.folder, self.study, self.space, result)
        if self.study.features or not result.maps:
            self._publish_entries(result, report)
        else:
            self._publish_maps(result, report)
        return report

    def _publish_entries(self, result: Result, report: PrivacyReport) -> None:
        files = write_results(self.folder, self.study, self.space, result)
        if not self.pages:
            return
        day = datetime.now(UTC).date()
        write_feature_page(
            self.folder, self.study, self.space, result, report, files=files, day=day
        )

    def _publish_maps(self, result: Result, report: PrivacyReport) -> None:
        values = result.arrays[result.maps]
        grid = self.space.maps if result.fine else self.space.grid
        painted = values if result.fine else self.space.paint(values)
        smooth, noise = smooth_maps(painted, result.noise, grid, self.study.data.maps_smoothing)
        components = tidy_components(smooth, grid)
        # A region's voxels share their noise, so that it is not told voxel by voxel.
        told = result.noise > 0 and (result.fine or self.space.regions is None)
        write_derivatives(
            self.folder,
            self.study,
            grid,
            components,
            result.numbers,
            noise if told else None,
        )
        if not self.pages:
            return
        floor = noise_in_maps(noise, components) if told else None
        write_page(
            self.folder,
            self.study,
            grid,
            components,
            report,
            numbers=result.numbers,
            day=datetime.now(UTC).date(),
            noise=floor,
        )


def _most_volumes(plan: Plan) -> int:
    """A public bound on one person's volumes."""
    if plan.study.features:
        return 1
    fixed = plan.study.data.volumes
    shape = plan.shape
    sizes = zip(shape.samples, shape.subjects, strict=True)
    least = plan.study.data.minimum_volumes
    return fixed or max(total - least * (people - 1) for total, people in sizes)


class RoundsBar:
    """A progress bar as a context; calling it sets it."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self._task = self._progress.add_task("rounds", total=None)

    def __enter__(self) -> Callable[[int, int], None]:
        self._progress.__enter__()
        return lambda done, total: self._progress.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)
