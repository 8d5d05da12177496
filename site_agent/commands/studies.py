"""Commands for a study at a site: check, prepare, approve, withdraw."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import AsJson
from consortium.errors import StudyError
from site_agent.commands.program import STUDIES, Folder, RosterFile, StudyFile, app, now, out

_WITHOUT = "check the study with 'site-agent check', and approve it with --yes"


@app.command(rich_help_panel=STUDIES)
def check(
    study: StudyFile, roster: RosterFile, folder: Folder = Path(), as_json: AsJson = False
) -> None:
    """Check a study before approval: its data, requests and privacy loss at this site."""
    from site_agent.approval.inspection import inspect

    found = inspect(folder, study, roster)
    if as_json:
        out.print_json(found.as_json())
    else:
        found.show(out.console)
    if found.problems:
        raise SystemExit(1)
    if not as_json:
        first = " once you have resolved the WARNING above" if found.warnings else ""
        out.print(f"policy.yaml allows it. Approve it{first} with 'site-agent approve'.")


@app.command(rich_help_panel=STUDIES)
def prepare(study: StudyFile, roster: RosterFile, folder: Folder = Path()) -> None:
    """Prepare an approved study's scans, on the Prefect task runner of site.yaml."""
    import os
    from functools import partial

    from consortium.base.work import work_folder
    from flows import need_prefect
    from flows.prepare import prepare_all
    from site_agent.config import SiteConfig
    from site_agent.prepare import check_own_prefect, count_persons, prepare_person

    need_prefect()
    config = SiteConfig.load(folder)
    files = (folder.resolve(), study.resolve(), roster.resolve())
    check_own_prefect(config, os.environ)
    persons = count_persons(*files)
    work = partial(prepare_person, *files)
    options = dict(config.task_runner_options)
    prepare_all(
        work, persons, config.task_runner, options, work_folder(folder.resolve()) / "prefect"
    )
    out.print(f"{persons} participants are prepared; the agent finds them in {folder / 'cache'}.")


@app.command(rich_help_panel=STUDIES)
def networks(
    study: StudyFile,
    target: Annotated[Path, typer.Argument(help="New folder of this hospital.")],
    roster: RosterFile,
    templates: Annotated[
        Path | None,
        typer.Option(help="4-D NIfTI, or CIFTI on a mesh, instead of the study's templates."),
    ] = None,
    folder: Folder = Path(),
) -> None:
    """Write each participant's own networks as BIDS derivatives that stay here; nothing is sent."""
    from site_agent.networks import write_networks

    with out.console.status("0 of all participants") as shown:
        persons = write_networks(
            folder,
            study=study,
            roster=roster,
            target=target,
            templates=templates,
            tell=shown.update,
        )
    out.print(f"Networks of {persons} participants are in {target}. Keep it as you keep the scans.")


@app.command(rich_help_panel=STUDIES)
def posterior(
    output: Annotated[Path, typer.Argument(help="Output folder of a finished run of group_ica.")],
    target: Annotated[Path, typer.Argument(help="New folder of this hospital.")],
    roster: RosterFile,
    own_patients: Annotated[
        bool,
        typer.Option("--own-patients", help="Estimate networks of this hospital's patients only."),
    ] = False,
    folder: Folder = Path(),
) -> None:
    """Combine a release with this site's data into more accurate networks. Nothing is sent."""
    from site_agent.posterior import write_posterior

    with out.console.status("participants") as shown:
        lines = write_posterior(
            folder, output, roster, target, own_patients=own_patients, tell=shown.update
        )
    for line in lines:
        out.print(line)
    out.print(f"{target / 'networks.html'} shows them. Keep {target} as you keep the scans.")


@app.command(rich_help_panel=STUDIES)
def zscores(
    source: Annotated[
        Path,
        typer.Argument(help="Output folder of a finished glm; with --chart also a study file."),
    ],
    target: Annotated[Path, typer.Argument(help="New folder of this hospital.")],
    roster: RosterFile,
    chart: Annotated[
        Path | None,
        typer.Option(help="Table of a published chart instead of the study's coefficients."),
    ] = None,
    among: Annotated[
        str | None,
        typer.Option(
            help="Participants from whom this hospital's level is estimated, such as "
            "'diagnosis=control' (default: all)."
        ),
    ] = None,
    folder: Folder = Path(),
) -> None:
    """Write scores and harmonized values of this site's participants. Nothing is sent."""
    from site_agent.zscores import write_zscores

    with out.console.status("participants") as shown:
        lines = write_zscores(
            folder, source, roster, target, chart=chart, among=among, tell=shown.update
        )
    for line in lines:
        out.print(line)
    out.print(f"{target / 'zscores.tsv'} has the scores. Keep {target} as you keep the scans.")


@dataclass
class _Question:
    """Request for confirmation, unless it was given with the command."""

    yes: bool
    despite_warnings: bool
    warnings: int = 0

    def __call__(self) -> None:
        from site_agent.approval.decision import despite, question

        if not self.yes:
            out.confirm(question(self.warnings), _WITHOUT)
        elif self.warnings and not self.despite_warnings:
            raise StudyError(
                f"Nothing is approved{despite(self.warnings)} above. Fix the problem, or approve "
                "anyway with --yes --despite-warnings."
            )


@app.command(name="approve", rich_help_panel=STUDIES)
def approve_command(
    study: StudyFile,
    roster: RosterFile,
    runs: Annotated[
        int, typer.Option(help="Number of runs from now on; each is charged.", min=1)
    ] = 1,
    until: Annotated[
        datetime | None,
        typer.Option(help="Last day on which a run may begin.", formats=["%Y-%m-%d"]),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Largest ε of all runs of this study together.", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the question. For scripts.")] = False,
    despite_warnings: Annotated[
        bool, typer.Option("--despite-warnings", help="Approve despite a WARNING. Requires --yes.")
    ] = False,
    take_part: Annotated[
        bool, typer.Option("--start", help="Start the agent afterwards, like the command start.")
    ] = False,
    once: Annotated[bool, typer.Option(help="Stop after the first run. Requires --start.")] = False,
    folder: Folder = Path(),
) -> None:
    """Check a study as check does, and approve this exact study file with these exact keys."""
    from site_agent.approval.approval import Terms
    from site_agent.approval.decision import approve_inspected
    from site_agent.approval.inspection import inspect
    from site_agent.status import approval_line

    terms = Terms(runs, epsilon, until.date() if until else None)  # before any scan is loaded
    ask = _Question(yes, despite_warnings)
    if not (yes or sys.stdin.isatty()):
        ask()  # as here, with the next steps
    found = inspect(folder, study, roster)
    found.show(out.console)
    ask.warnings = len(found.warnings)
    approval, trouble = approve_inspected(folder, found, terms, now().date(), ask)
    out.print(f"Approved: {approval_line(approval)}.")
    _tell(trouble)
    if take_part:
        _take_part(folder, once)


def _take_part(folder: Path, once: bool) -> None:
    from site_agent.commands.agent import start
    from site_agent.status import read_status

    if read_status(folder).running:
        out.print("The agent of this folder is at work already and takes part.")
    else:
        start(folder, once=once)


@app.command(rich_help_panel=STUDIES)
def withdraw(
    study: Annotated[str, typer.Argument(help="The study's name, as status shows it.")],
    folder: Folder = Path(),
) -> None:
    """Withdraw an approval; a running agent answers nothing more for the study."""
    from site_agent.approval.withdrawal import take_back

    trouble = take_back(folder, study, now().date())
    out.print(f"Withdrawn: {study} is no longer approved.")
    _tell(trouble)


@app.command(name="decline", rich_help_panel=STUDIES)
def decline_command(
    study: StudyFile,
    roster: RosterFile,
    folder: Folder = Path(),
) -> None:
    """Decline a study, and inform the coordinator; an approval replaces the decision."""
    from site_agent.approval.decision import not_informed
    from site_agent.approval.declining import say_no
    from site_agent.approval.folder import SiteFolder

    papers = SiteFolder.open(folder).papers(study, roster)
    trouble = say_no(folder, papers, now().date())
    out.print(f"Declined: {papers.signed.study.study} is not approved.")
    if trouble:
        out.print(not_informed(trouble))


def _tell(trouble: Exception | None) -> None:
    if trouble:
        from site_agent.approval.decision import not_informed

        out.print(not_informed(trouble))
