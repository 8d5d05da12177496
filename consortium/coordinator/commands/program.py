"""The program that commands are added to, and what several of them take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consortium.base.command_line import Terminal, program
from consortium.errors import StudyError

if TYPE_CHECKING:
    from consortium.report.privacy_report import PrivacyReport
    from consortium.study.spec import Study

out = Terminal()
app = program(
    "Studies over several hospitals whose data stay where they are. A consortium begins with "
    "init and admit; a study goes through new-study, plan, sign, run and report.",
    out,
)
# Headings of the help.
MEMBERS = "Members"
STUDIES = "A study"
RESULTS = "Its run and result"
TRIALS = "Trying out"
StudyFile = Annotated[Path, typer.Argument(help="Study file (YAML).")]
RosterFile = Annotated[Path, typer.Option(help="Roster file, roster.yaml of 'init'.")]
KeysFolder = Annotated[Path, typer.Option(help="Folder with the consortium's keys, of 'init'.")]
ExchangePlace = Annotated[
    str, typer.Option(help="Place that the sites share: a directory, s3://… or sftp://…")
]
Credentials = Annotated[
    Path | None, typer.Option(help="File with the centre's credentials for the exchange.")
]
Subjects = Annotated[
    str | None,
    typer.Option(
        help="Subjects per site: one number, or one per site with commas (default: the nominal "
        "numbers of the study)."
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", help="Output folder.")]


def tell_result(report: PrivacyReport, folder: Path) -> None:
    """Print a run's summary and the folder of its outputs, at the end of a command."""
    from consortium.report.statement import few_sentences, summary

    out.print(f"Output: {folder} (open report.html)")
    out.print(summary(report))
    for sentence in few_sentences(report):
        out.print(sentence)


def site_sizes(text: str | None, study: Study) -> tuple[int, ...]:
    """Read a number for each site of a study, or take the nominal ones that it states.

    Raises StudyError if there are not as many, one is not a number, or the study states none and
    none are given.
    """
    sites = len(study.sites)
    if text is None:
        if study.participants is not None:
            return tuple(study.participants[site] for site in study.sites)
        raise StudyError(
            "field 'participants': the nominal number of participants of each site is required. "
            f"Add it to the study, or give --subjects, one number or {sites} with commas."
        )
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise StudyError(
            f"--subjects: must be whole numbers with commas, such as 40,60, got {text!r}."
        ) from error
    if len(numbers) == 1:
        numbers *= sites
    if len(numbers) != sites or min(numbers) < 1:
        raise StudyError(f"--subjects: must be one or {sites} positive numbers, got {text!r}.")
    return numbers
