"""A study with all its sites in one process, on data that one may see: the command ``simulate``."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from consortium.base.atomic import make_folder
from consortium.base.formatting import count
from consortium.base.one_thread import one_thread
from consortium.base.work import work_folder
from consortium.coordinator.outputs import Publisher
from consortium.coordinator.progress_bar import RoundsBar
from consortium.errors import StudyError
from consortium.opened_study import open_study
from consortium.report.legend import read_legend
from consortium.report.privacy_report import SEEDED, PrivacyReport
from consortium.simulation.simulation import Simulation
from consortium.study.reader import read_study
from site_agent.loading.open import check_anybody, open_dataset


def simulate_study(
    study_path: Path, folders: Mapping[str, Path], out: Path, seed: int, console: Console
) -> PrivacyReport:
    """Run a study with all sites in this process; raises ConsortiumError as a run would."""
    one_thread()  # as a run would
    study = read_study(study_path)
    missing = [site for site in study.sites if site not in folders]
    if missing:
        raise StudyError(f"{missing[0]}: a data set is required. Add --data {missing[0]}=FOLDER.")
    opened = open_study(study, study_path.parent)
    legend = read_legend(opened)
    make_folder(work_folder(out))
    # Prepared scans are participants' data, and an output folder is public.
    with TemporaryDirectory(dir=work_folder(out), prefix="cache-") as cache:
        folder = Path(cache)
        data = [open_dataset(folders[site], opened, folder / site) for site in study.sites]
        for one in data:
            check_anybody(one)
        simulation = Simulation(study, data, seed)
        with RoundsBar(console) as bar:
            result = simulation.run(lambda done: bar(done.number, simulation.plan.rounds))
        for site, one in zip(study.sites, data, strict=True):
            if out_of_it := one.survey.skipped:
                who = count(len(out_of_it), "participant")
                why = out_of_it[0].detail
                console.print(f"{site}: {who} left out, the first because: {why}", soft_wrap=True)
    with suppress(OSError):  # not empty: others work in it
        work_folder(out).rmdir()
    publisher = Publisher(out, opened, f"{SEEDED} (seed {seed})", legend)
    return publisher.publish(simulation.plan, simulation.session.rounds, result)
