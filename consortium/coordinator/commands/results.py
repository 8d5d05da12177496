"""What a run does, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import AsJson
from consortium.coordinator.commands.program import (
    RESULTS,
    Credentials,
    ExchangePlace,
    OutFolder,
    StudyFile,
    app,
    out,
)
from consortium.errors import StudyError


@app.command(rich_help_panel=RESULTS)
def status(
    folder: OutFolder,
    study: StudyFile,
    exchange: ExchangePlace,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Say of each site what is awaited, since when, and until when."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_status
    from consortium.coordinator.run_folder import read_run, run_status
    from consortium.exchange import open_exchange
    from consortium.study.reader import read_study

    record = read_run(folder)
    if record is None:
        raise StudyError(f"{folder} holds no run; start one with 'consortium run'.")
    place = open_exchange(exchange, credentials)
    found = run_status(place, record.run, read_study(study), folder)
    if as_json:
        out.print_json(asdict(found))
    else:
        show_status(found, out.console)


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
            help="Such as 'patients - controls'. Several, or a column of several levels, are "
            "tested together (F)."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compare levels or columns of a finished glm that has contrasts: all; it costs no privacy."""
    from dataclasses import asdict

    from consortium.coordinator.console_tables import show_table
    from consortium.coordinator.contrast import read_released, worked_out

    found = worked_out(read_released(folder), expression)
    if as_json:
        out.print_json(asdict(found))
    else:
        show_table(found, out.console)


@app.command(name="compare", rich_help_panel=RESULTS)
def compare_command(
    first: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    second: Annotated[Path, typer.Argument(help="Output folder of another.")],
    folder: OutFolder,
) -> None:
    """Lay two results side by side, as a page; it costs no privacy."""
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
        typer.Argument(help="New file beside the next study's: NIfTI, or .dscalar.nii on a mesh."),
    ],
) -> None:
    """Write the components that were found as templates of a next study; it costs no privacy."""
    from consortium.report.as_templates import write_templates
    from consortium.space.templates import DENSE

    kept = write_templates(folder, file)
    out.print(f"{file} holds the components {', '.join(map(str, kept))} of {folder}.")
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
        str | None, typer.Option(help="Where the run's messages lie: its sums are added again.")
    ] = None,
    sites: Annotated[
        Path | None,
        typer.Option(help="File of lines 'name: fingerprint', as hospitals publish their own."),
    ] = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Check that a result is the sum of what sites signed: 0 shown, 1 contradicted, 2 open."""
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
    exchange: Annotated[str, typer.Option(help="Where the run's messages lie.")],
    credentials: Credentials = None,
) -> None:
    """Fetch what sites attested after a result was published, for verify to count."""
    from consortium.coordinator.late_evidence import fetch_late
    from consortium.exchange import open_exchange

    for line in fetch_late(folder, open_exchange(exchange, credentials)).lines():
        out.print(line)
