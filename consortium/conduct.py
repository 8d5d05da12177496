"""From files to a finished study: what the commands ``run`` and ``simulate`` do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from consortium.algorithms.base import Result
from consortium.engine.centre import Centre, Setting
from consortium.engine.session import Round
from consortium.engine.wire import Clock
from consortium.errors import StudyError
from consortium.exchange import DirectoryExchange
from consortium.identity import load_identity
from consortium.plan import Plan
from consortium.progress import claim_run, only_one
from consortium.report.account import account
from consortium.report.components import tidy_components
from consortium.report.grid import Grid, study_grid
from consortium.report.maps import write_derivatives
from consortium.report.page import write_page
from consortium.report.privacy import SEEDED, PrivacyReport, write_privacy_report
from consortium.report.statement import statement
from consortium.roster import keys_of, load_roster
from consortium.simulate import Simulation
from consortium.study import Study, load_study


@dataclass(frozen=True)
class Errand:
    """Where a run's files are.

    Parameters
    ----------
    study, roster : Path
    exchange, keys, out : Path
        Folders.
    """

    study: Path
    roster: Path
    exchange: Path
    keys: Path
    out: Path


@dataclass(frozen=True)
class Publisher:
    """Writes the output folder.

    Parameters
    ----------
    folder : Path
    study : Study
    grid : Grid
    sampler : str, optional
        Told in the report instead of the exact sampler.
    """

    folder: Path
    study: Study
    grid: Grid
    sampler: str | None = None

    def publish(self, plan: Plan, rounds: Sequence[Round], result: Result) -> PrivacyReport:
        """Write maps, privacy report and page; the same inputs give the same maps."""
        report = account(plan, rounds, _most_volumes(plan), self.sampler)
        write_privacy_report(self.folder / "privacy_report.json", report)
        if result.maps:
            components = tidy_components(result.arrays[result.maps], self.grid)
            write_derivatives(self.folder, self.study, self.grid, components, result.numbers)
            write_page(
                self.folder,
                self.study,
                self.grid,
                components,
                report,
                numbers=result.numbers,
                day=datetime.now(UTC).date(),
            )
        return report


def carry_out(errand: Errand, clock: Clock, console: Console) -> PrivacyReport:
    """Run a study as the centre, or go on with it after a crash.

    Raises
    ------
    ConsortiumError
        What ended the study; the sites have been told.
    """
    study = load_study(errand.study)
    if study.privacy.scheme == "none":
        raise StudyError(
            f"{errand.study}: field 'privacy.scheme': 'none' protects nobody and runs with "
            "'consortium simulate' only; choose cape, secure-sum or local."
        )
    keys = keys_of(study, load_roster(errand.roster), str(errand.roster))
    grid = study_grid(study.data, errand.study.parent)
    exchange = DirectoryExchange(errand.exchange)
    with only_one(errand.out), _bar(console) as bar:
        record = claim_run(errand.out, study, exchange, keys)
        setting = Setting(record.run, study, keys, grid.digest, grid.features)
        identity = load_identity(errand.keys)
        if keys["centre"] != identity.public:
            raise StudyError(
                f"{errand.roster}: the centre's key is not the one in {errand.keys}; correct the "
                "roster or name the right folder with --keys."
            )
        centre = Centre(
            setting, identity.key, exchange, errand.out / "transcript", clock, console.log
        )
        publisher = Publisher(errand.out, study, grid)
        return _conduct(centre, publisher, errand.out, bar)


def _conduct(
    centre: Centre, publisher: Publisher, out: Path, bar: Callable[[int, int], None]
) -> PrivacyReport:
    from flows.embedded import embedded_prefect

    reports: list[PrivacyReport] = []

    def publish(plan: Plan, rounds: list[Round], result: Result) -> str:
        reports.append(publisher.publish(plan, rounds, result))
        return "\n\n".join(statement(reports[-1]))

    with embedded_prefect(out / ".prefect"):
        from flows.study import Outputs, conduct  # imports Prefect, which must be set up before

        conduct(centre, Outputs(publish, bar))
    return reports[-1]


def simulate_study(
    study_path: Path, folders: Mapping[str, Path], out: Path, seed: int, console: Console
) -> PrivacyReport:
    """Run a study with all sites in this process.

    Raises
    ------
    ConsortiumError
        As a run would.
    """
    from site_agent.loaders import SiteDataset

    study = load_study(study_path)
    missing = [site for site in study.sites if site not in folders]
    if missing:
        raise StudyError(f"{missing[0]}: no data set; add --data {missing[0]}=FOLDER.")
    grid, unit = study_grid(study.data, study_path.parent), study.privacy.unit
    data = [
        SiteDataset(folders[site], study.data, grid, unit, out / ".cache" / site)
        for site in study.sites
    ]
    simulation = Simulation(study, data, seed)
    with _bar(console) as bar:
        result = simulation.run(lambda done: bar(done.number, simulation.plan.rounds))
    publisher = Publisher(out, study, grid, f"{SEEDED} (seed {seed})")
    return publisher.publish(simulation.plan, simulation.session.rounds, result)


def _most_volumes(plan: Plan) -> int:
    """A public bound on one person's volumes."""
    fixed = plan.study.data.volumes
    shape = plan.shape
    sizes = zip(shape.samples, shape.subjects, strict=True)
    least = plan.study.data.minimum_volumes
    return fixed or max(total - least * (people - 1) for total, people in sizes)


class _bar:  # noqa: N801 - used like a function
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
