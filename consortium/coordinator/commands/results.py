"""Status and results of runs, and trials on this machine only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consortium.base.command_line import AsJson
from consortium.coordinator.commands.program import (
    RESULTS,
    TRIALS,
    Credentials,
    ExchangePlace,
    OutFolder,
    RosterFile,
    StudyFile,
    app,
    out,
    tell_result,
)
from consortium.errors import StudyError

if TYPE_CHECKING:
    from consortium.coordinator.approvals import SiteApproval
    from consortium.exchange.base import Exchange
    from consortium.membership.signed_study import SignedStudy


Members = Annotated[
    Path | None,
    typer.Option("--roster", help="Roster file, to show the approvals, also before a run."),
]


@app.command(rich_help_panel=RESULTS)
def status(
    study: StudyFile,
    exchange: ExchangePlace,
    folder: Annotated[Path | None, typer.Option("--out", help="Output folder of a run.")] = None,
    roster: Members = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Print which approvals a study awaits, and which message its run awaits from each site."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_approvals, show_status
    from consortium.coordinator.run_folder import read_run, run_status
    from consortium.exchange import open_exchange
    from consortium.study.reader import read_study

    place = open_exchange(exchange, credentials)
    record = None if folder is None else read_run(folder)
    if record is None and roster is None:
        what = "no output folder is named" if folder is None else f"{folder} has no run"
        raise StudyError(
            f"status: {what}. Name a run's folder with --out, start a run with 'consortium run', "
            "or give --roster to see who has approved the study."
        )
    content: dict[str, object] = {}
    if record is not None and folder is not None:
        found = run_status(place, record.run, read_study(study), folder)
        content |= asdict(found)
        if not as_json:
            show_status(found, out.console)
    if roster is not None:
        signed, approvals = _approvals(study, roster, place)
        content["approvals"] = [asdict(each) for each in approvals]
        if not as_json:
            show_approvals(signed.study, approvals, out.console)
    if as_json:
        out.print_json(content)


@app.command(rich_help_panel=RESULTS)
def remind(
    study: StudyFile,
    roster: RosterFile,
    exchange: ExchangePlace,
    folder: Annotated[Path, typer.Option("--to", help="Folder of the mails (.eml).")],
    template: Annotated[
        Path | None, typer.Option(help="Own text of the mail; its first line is the subject.")
    ] = None,
    credentials: Credentials = None,
) -> None:
    """Write a mail to each site whose approval is awaited, as a draft for your mail program."""
    from consortium.coordinator.approvals import write_reminders
    from consortium.exchange import open_exchange

    signed, approvals = _approvals(study, roster, open_exchange(exchange, credentials))
    awaited = [each for each in approvals if not (each.approved or each.declined)]
    for each in approvals:
        if each.declined:
            out.print(f"{each.reason} It gets no reminder.")
    for site, path in write_reminders(signed, study, awaited, template, folder).items():
        out.print(f"{path} is a draft to {site}.")
    if all(each.approved for each in approvals):
        out.print("Every site's approval covers the next run. No reminder is needed.")


def _approvals(
    study: Path, roster: Path, exchange: Exchange
) -> tuple[SignedStudy, tuple[SiteApproval, ...]]:
    """Return a signed study and the approvals of its sites."""
    from datetime import UTC, datetime

    from consortium.coordinator.approvals import site_approvals
    from consortium.membership.roster import read_roster
    from consortium.membership.signed_study import read_signed

    signed = read_signed(study, read_roster(roster))
    return signed, site_approvals(exchange, signed, study, datetime.now(UTC).date())


@app.command(rich_help_panel=RESULTS)
def report(folder: Annotated[Path, typer.Argument(help="Output folder of a run.")]) -> None:
    """Print the privacy statement of a finished study."""
    from consortium.report.privacy_report import read_privacy_report
    from consortium.report.statement import statement

    for line in statement(read_privacy_report(folder / "privacy_report.json")):
        out.print(line + "\n")


@app.command(rich_help_panel=RESULTS)
def contrast(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    expression: Annotated[
        list[str],
        typer.Argument(
            help="Contrast, such as 'patients - controls'. Several, or a column of several levels, "
            "are tested together (F)."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compare levels or columns of a finished glm that has contrasts: all; it costs no privacy."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_table
    from consortium.coordinator.contrast import worked_out
    from consortium.report.coefficients import read_released

    found = worked_out(read_released(folder), expression)
    if as_json:
        out.print_json(asdict(found))
    else:
        show_table(found, out.console)


@app.command(rich_help_panel=RESULTS)
def refit(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run of glm.")],
    formula: Annotated[
        str,
        typer.Option(help="Columns with + between them, the one of interest first."),
    ],
    merge: Annotated[
        list[str] | None, typer.Option(help="Levels that count as one, such as 'ward=b+c'.")
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(help="Level with which others are compared, such as 'ward=b'."),
    ] = None,
    outcomes: Annotated[
        list[str] | None,
        typer.Option(help="Pattern of outcomes, such as 'Left-*' (default: all)."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(help="Folder of this run's refits (default: FOLDER-refits next to it)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a model of fewer columns from a finished glm that has contrasts: all."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_table
    from consortium.coordinator.refit import Refit
    from consortium.coordinator.refits import first_sentence, usual_folder, write_refit

    asked = Refit(
        formula=formula,
        merge=tuple(merge or ()),
        reference=tuple(reference or ()),
        outcomes=tuple(outcomes or ()),
    )
    written = write_refit(folder, to or usual_folder(folder), asked)
    if as_json:
        out.print_json(asdict(written.table))
        return
    show_table(written.table, out.console)
    out.print(f"Refit {written.number}: {first_sentence(written.table)} It has no privacy loss.")
    out.print(f"{written.path} has the table, and {written.page} all refits of this run.")


@app.command(name="compare", rich_help_panel=RESULTS)
def compare_command(
    first: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    second: Annotated[Path, typer.Argument(help="Output folder of another.")],
    folder: OutFolder,
) -> None:
    """Write a page with two results side by side. This has no privacy loss."""
    from consortium.report.comparison import read_outcome
    from consortium.report.comparison_page import write_comparison

    page, sentences = write_comparison(folder, read_outcome(first), read_outcome(second))
    for sentence in sentences:
        out.print(sentence)
    out.print(f"The page is {page}.")


@app.command(rich_help_panel=RESULTS)
def templates(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run with component maps.")],
    file: Annotated[
        Path,
        typer.Argument(help="New file next to the next study's: NIfTI, or .dscalar.nii on a mesh."),
    ],
) -> None:
    """Write the components that were found as templates of a next study; it costs no privacy."""
    from consortium.report.as_templates import write_templates
    from consortium.space.atlas import table_of
    from consortium.space.templates import DENSE

    kept = write_templates(folder, file)
    out.print(f"{file} contains the components {', '.join(map(str, kept))} of {folder}.")
    if table_of(file).exists():
        out.print(f"{table_of(file)} has their names.")
    out.print(f"For networks that differ from these, name it as analysis.templates: {file.name}.")
    if not file.name.endswith(DENSE):
        out.print(
            "To compare their strength between groups: consortium new-study NEXT.yaml --algorithm "
            f"glm --components {folder}."
        )


@app.command(rich_help_panel=RESULTS)
def verify(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run, or a copy of it.")],
    exchange: Annotated[
        str | None, typer.Option(help="Exchange of the run's messages, for adding its sums again.")
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(help="File of lines 'name: fingerprint', as hospitals publish their own."),
    ] = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Check that signed contributions add up to a result. Exits with 0: yes, 1: no, 2: open."""
    from consortium.coordinator.verify import Checkup
    from consortium.exchange import open_exchange

    place = None if exchange is None else open_exchange(exchange, credentials)
    verdict = Checkup(folder, sites, place).run()
    if as_json:
        out.print_json(verdict.numbers())
    else:
        for line in verdict.lines():
            out.print(line)
    raise SystemExit(verdict.code)


@app.command(rich_help_panel=RESULTS)
def evidence(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run, or a copy of it.")],
    exchange: Annotated[str, typer.Option(help="Exchange of the run's messages.")],
    credentials: Credentials = None,
) -> None:
    """Fetch attestations that sites sent after a result was published, for 'verify'."""
    from consortium.coordinator.late_evidence import fetch_late
    from consortium.exchange import open_exchange

    for line in fetch_late(folder, open_exchange(exchange, credentials)).lines():
        out.print(line)


@app.command(rich_help_panel=TRIALS)
def simulate(
    study: StudyFile,
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help="name=FOLDER, a BIDS data set for each site; or one FOLDER that has all, by name.",
        ),
    ],
    folder: OutFolder,
    seed: Annotated[int, typer.Option(help="Seed of every random number.")] = 0,
) -> None:
    """Run all sites in this process, on data you may see, also with scheme 'local' or 'none'."""
    from consortium.coordinator.simulate import simulate_study

    tell_result(simulate_study(study, _folders(data, study), folder, seed, out.console), folder)


@app.command(rich_help_panel=TRIALS)
def audit(
    trials: Annotated[int, typer.Option(help="Trials a row.", min=1000)] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Try to refute the privacy formulas, by likelihood-ratio tests on the real code's output."""
    import secrets

    from consortium.coordinator.console_tables import show_audit
    from consortium.privacy.audit import SETTINGS, audit_scheme

    found = [audit_scheme(*row, trials, lambda: secrets.token_bytes(32)) for row in SETTINGS]
    if as_json:
        out.print_json([vars(f) | {"upheld": f.upheld} for f in found])
    else:
        show_audit(found, out.console)
    if not all(finding.upheld for finding in found):
        raise SystemExit(1)


@app.command(rich_help_panel=TRIALS)
def demo(
    folder: OutFolder = Path("build/demo"),
    subjects: Annotated[
        int, typer.Option(help="Participants of a hospital, in the mean.", min=4)
    ] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the simulated scans.")] = 1,
    real: Annotated[
        list[Path] | None,
        typer.Option(help="4-D NIfTI to split over the hospitals instead of simulated scans."),
    ] = None,
    full_brain: Annotated[
        bool, typer.Option(help="Run one study of scans of 70,000 voxels.")
    ] = False,
) -> None:
    """Simulate four hospitals on this machine. Write networks, and where patients differ."""
    from consortium.coordinator.demo.run import run_demo

    run_demo(
        folder,
        subjects=subjects,
        seed=seed,
        real=tuple(real or ()),
        console=out.console,
        full_brain=full_brain,
    )


def _folders(pairs: list[str], study: Path) -> dict[str, Path]:
    if len(pairs) == 1 and Path(pairs[0]).is_dir():
        from consortium.study.reader import read_study

        return {site: Path(pairs[0], site) for site in read_study(study).sites}
    folders = {}
    for pair in pairs:
        name, _, folder = pair.partition("=")
        if not folder:
            raise StudyError(f"--data: must be SITE=FOLDER, got {pair!r}. Correct it.")
        folders[name] = Path(folder)
    return folders
