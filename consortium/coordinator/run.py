"""The command ``run``: from files to a finished study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from consortium.algorithms.base import Result
from consortium.base.lock import only_one
from consortium.base.work import work_folder
from consortium.coordinator.evidence import keep_evidence
from consortium.coordinator.outputs import Publisher
from consortium.coordinator.progress_bar import RoundsBar, tell_plainly
from consortium.coordinator.run_folder import claim_run
from consortium.engine.centre import Centre
from consortium.engine.clock import Cancellation, Clock
from consortium.engine.closing import read_end
from consortium.engine.session import Round
from consortium.errors import StudyError
from consortium.exchange import Exchange, open_exchange
from consortium.membership.consent import uncovered_sites
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import read_signed
from consortium.opened_study import open_signed
from consortium.report.legend import read_legend
from consortium.report.privacy_report import PrivacyReport, read_privacy_report
from consortium.report.statement import statement
from consortium.study.plan import Plan
from consortium.verification.record import EVIDENCE, PUBLISHED
from flows import need_prefect
from flows.outputs import Outputs, PublishedTexts

_REPORT = "privacy_report.json"


@dataclass(frozen=True)
class RunFiles:
    """Files and folders that the command `run` uses."""

    study: Path
    roster: Path
    exchange: Path | str
    """A directory, or the URL of another kind of exchange."""
    keys: Path
    out: Path
    """Folders."""
    credentials: Path | None = None
    """File with the centre's credentials for the exchange."""
    url: str | None = None
    """Where people are served the output folder."""
    resumed: str | None = None
    """Run on the exchange whose output folder is lost, and that is resumed in this one."""

    def open_exchange(self) -> Exchange:
        """Open the exchange; raises as `consortium.exchange.open_exchange`."""
        return open_exchange(self.exchange, self.credentials)


def run_study(files: RunFiles, clock: Clock, console: Console) -> PrivacyReport:
    """Run a study as the centre, or continue it after a crash.

    Raises ConsortiumError for the error that ended the study, which the sites have received.
    """
    need_prefect()
    signed = read_signed(files.study, read_roster(files.roster))
    study = signed.study
    keys = signed.keys
    identity = load_identity(files.keys)
    if keys["centre"] != identity.public:
        raise StudyError(
            f"{files.roster}: the centre's key is not the one in {files.keys}. Correct the "
            "roster or name the right folder with --keys."
        )
    opened = open_signed(signed)
    legend = read_legend(opened)
    exchange = files.open_exchange()
    with only_one(files.out):
        record = claim_run(files.out, study, exchange, keys, files.resumed)
        if _is_published(files.out, exchange, record.run, keys):
            console.print(
                f"{record.run} is finished, and {files.out} has its result: nothing is computed "
                "or charged. For another run choose a new folder with --out.",
                soft_wrap=True,
            )
            return read_privacy_report(files.out / _REPORT)
        context = opened.context(record.run)
        tell = partial(console.log, markup=False)  # sites' words are among its lines
        order = Cancellation()
        centre = Centre(
            context=context,
            identity=identity.key,
            exchange=exchange,
            folder=files.out,
            clock=order.clock(clock),
            log=tell,
        )
        centre.on_wait(partial(tell_plainly, console))
        centre.on_absence(lambda: uncovered_sites(exchange, study, keys, datetime.now(UTC).date()))
        publisher = Publisher(files.out, opened, legend=legend)
        with RoundsBar(console, files.out) as shown:
            return _run_flow(centre, publisher, files, shown, order)


def _is_published(out: Path, exchange: Exchange, run: str, keys: Mapping[str, bytes]) -> bool:
    """Return whether a run is complete and all its files are written, the signature the last."""
    end = read_end(exchange, run, keys)
    files = (out / _REPORT, out / EVIDENCE / PUBLISHED)
    return end is not None and end.complete and all(path.exists() for path in files)


def _run_flow(
    centre: Centre,
    publisher: Publisher,
    files: RunFiles,
    shown: Callable[[int, int], None],
    order: Cancellation,
) -> PrivacyReport:
    from flows.embedded import embedded_prefect

    reports: list[PrivacyReport] = []
    work = work_folder(files.out)

    def publish(plan: Plan, rounds: list[Round], result: Result) -> PublishedTexts:
        reports.append(publisher.publish(plan, rounds, result))
        keep_evidence(files.out, centre.releases, files.study, plan, len(rounds))
        from consortium.report.outputs import NAME, first_picture  # brings what draws

        summary = "\n\n".join(statement(reports[-1]))
        link = f"{files.url.rstrip('/')}/{NAME}" if files.url else ""
        return PublishedTexts(summary, first_picture(files.out), link)

    with embedded_prefect(work / "prefect"):
        from flows.study import StudyFlow  # imports Prefect, which must be set up before

        StudyFlow(centre, Outputs(publish, shown), order, work / "flow-runs.json").run()
    return reports[-1]
