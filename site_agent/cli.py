"""The command line of a site: ``site-agent``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from consortium.command_line import AsJson, Terminal, program, run_program
from consortium.errors import StudyError

out = Terminal()
app = program(
    "A hospital's agent: takes part in the studies that its people approved. A site begins "
    "with init and join; each study is looked at and approved; the agent itself is start.",
    out,
)
Folder = Annotated[
    Path, typer.Option("--folder", "-f", help="The site's own folder.", envvar="SITE_FOLDER")
]

StudyFile = Annotated[Path, typer.Argument(help="Study file; its signature lies beside it.")]
RosterFile = Annotated[Path, typer.Option(help="Roster file, from the coordinator.")]
ONCE, STUDIES, DAILY = "Becoming a member", "A study", "The agent"  # headings of the help


@app.command(rich_help_panel=ONCE)
def init(
    name: Annotated[str, typer.Option(help="Name of this site, as studies call it.")],
    dataset: Annotated[Path, typer.Option(help="BIDS folder with the preprocessed images.")],
    exchange: Annotated[
        str, typer.Option(help="Directory, s3://bucket/prefix or sftp://user@host/path.")
    ],
    credentials: Annotated[
        Path | None, typer.Option(help="File with credentials for the exchange.")
    ] = None,
    centre: Annotated[
        str, typer.Option(help="The consortium's key: ask to be admitted, too, as join does.")
    ] = "",
    folder: Folder = Path(),
) -> None:
    """Make the site's keys, its configuration and its policy."""
    import secrets

    from consortium.files.atomic import make_folder
    from consortium.membership.keys import create_identity
    from consortium.membership.roster_file import fingerprint
    from site_agent.config import SiteConfig
    from site_agent.enrolment.request import join_consortium
    from site_agent.policy.policy import Policy

    config = SiteConfig.create(name, dataset, exchange, credentials).on_this_machine
    make_folder(folder)
    identity = create_identity(folder, secrets.token_bytes(64))
    config.save(folder)
    Policy().save(folder)
    out.print(
        f"Keys, site.yaml and policy.yaml are in {folder}; read the two files, and change what "
        "your site wants otherwise.",
    )
    if centre:
        path, request = join_consortium(folder, config.name, centre)
        _tell_request(path, request.key)
        return
    out.print(f"This site's fingerprint is {fingerprint(identity.public)}.")
    out.print("Now ask to be admitted with 'site-agent join --centre KEY'.")


@app.command(rich_help_panel=ONCE)
def join(
    centre: Annotated[
        str, typer.Option(help="The consortium's key, 64 digits, from its coordinator.")
    ] = "",
    rotate: Annotated[
        bool, typer.Option(help="Change this site's key; the old one signs, too.")
    ] = False,
    folder: Folder = Path(),
) -> None:
    """Write a signed request to be admitted, for the coordinator."""
    from site_agent.config import SiteConfig
    from site_agent.enrolment.request import change_key, join_consortium

    config = SiteConfig.load(folder)
    if rotate:
        path, request, trouble = change_key(folder, config, centre)
        if trouble:
            out.print(f"The ledger's head is left when the agent starts ({trouble})")
    else:
        path, request = join_consortium(folder, config.name, centre)
    _tell_request(path, request.key)


@app.command(rich_help_panel=STUDIES)
def check(
    study: StudyFile, roster: RosterFile, folder: Folder = Path(), as_json: AsJson = False
) -> None:
    """Look at a study before saying yes: what it would load, ask and cost here."""
    from site_agent.approval.inspection import inspect

    found = inspect(folder, study, roster)
    if as_json:
        out.print_json(found.as_json())
    else:
        found.show(out.console)
    if found.problems:
        raise SystemExit(1)
    if not as_json:
        out.print("Nothing in policy.yaml speaks against it; say yes with 'site-agent approve'.")


@app.command(rich_help_panel=STUDIES)
def prepare(study: StudyFile, roster: RosterFile, folder: Folder = Path()) -> None:
    """Prepare a study's scans ahead, on the Prefect task runner of site.yaml."""
    from functools import partial

    from consortium.files.work import work_folder
    from flows.prepare import prepare_all
    from site_agent.config import SiteConfig
    from site_agent.prepare import count_persons, prepare_person

    config, files = SiteConfig.load(folder), (folder.resolve(), study.resolve(), roster.resolve())
    persons = count_persons(*files)
    work, options = partial(prepare_person, *files), dict(config.task_runner_options)
    prepare_all(
        work, persons, config.task_runner, options, work_folder(folder.resolve()) / "prefect"
    )
    out.print(f"{persons} persons are prepared; the agent finds them in {folder / 'cache'}.")


@app.command(rich_help_panel=STUDIES)
def networks(
    study: StudyFile,
    target: Annotated[Path, typer.Argument(help="New folder of this hospital.")],
    roster: RosterFile,
    templates: Annotated[
        Path | None, typer.Option(help="4-D NIfTI of maps in place of the study's templates.")
    ] = None,
    folder: Folder = Path(),
) -> None:
    """Write each person's own networks as BIDS derivatives that stay here; nothing is sent."""
    from site_agent.networks import write_networks

    with out.console.status("0 of all persons") as shown:
        persons = write_networks(folder, study, roster, target, templates, shown.update)
    out.print(f"Networks of {persons} persons are in {target}; keep it as you keep the scans.")


@app.command(name="approve", rich_help_panel=STUDIES)
def approve_command(
    study: StudyFile,
    roster: RosterFile,
    runs: Annotated[int, typer.Option(help="Runs from now on; each costs again.", min=1)] = 1,
    until: Annotated[
        datetime | None,
        typer.Option(help="Last day on which a run may begin.", formats=["%Y-%m-%d"]),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Largest ε of all runs of this study together.", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask; for scripts.")] = False,
    take_part: Annotated[
        bool, typer.Option("--start", help="Then take part, as start does.")
    ] = False,
    once: Annotated[bool, typer.Option(help="With --start: stop after the first run.")] = False,
    folder: Folder = Path(),
) -> None:
    """Look at a study as check does, and say yes to exactly it with exactly these keys."""
    from site_agent.approval.approval import Terms
    from site_agent.approval.inspection import inspect, say_yes
    from site_agent.status import promise, read_status

    def ask() -> None:
        if not yes:
            out.confirm("Say yes to this study?", _WITHOUT)

    day = until.date() if until else None
    Terms(runs, epsilon, day)  # which refuses nonsense before any scan is loaded
    if not (yes or sys.stdin.isatty()):
        ask()  # as here, which says how to go on
    found = inspect(folder, study, roster)
    found.show(out.console)
    if found.problems:
        raise StudyError(f"{found.signed.study.study} is not approved: {found.problems[0]}")
    today = _now().date()
    approval, trouble = say_yes(
        folder, study, roster, runs=runs, until=day, epsilon=epsilon, today=today, ask=ask
    )
    out.print(f"Approved: {promise(approval)}.")
    if trouble:
        out.print(f"The coordinator is told when the agent starts ({trouble})")
    if take_part and read_status(folder).running:
        out.print("The agent of this folder is at work already and takes part.")
    elif take_part:
        start(folder, once=once)


@app.command(rich_help_panel=STUDIES)
def withdraw(
    study: Annotated[str, typer.Argument(help="The study's name, as status shows it.")],
    folder: Folder = Path(),
) -> None:
    """Take a yes back; a running agent answers nothing more for the study."""
    from site_agent.approval.approval import take_back

    trouble = take_back(folder, study)
    out.print(f"Withdrawn: {study} is approved no more.")
    if trouble:
        out.print(f"The coordinator is told when the agent starts ({trouble})")


@app.command(rich_help_panel=DAILY)
def start(
    folder: Folder = Path(),
    once: Annotated[bool, typer.Option(help="Stop after the first run.")] = False,
    idle: Annotated[
        float, typer.Option(help="With --once: give up after so many seconds without work.")
    ] = 3600.0,
    page: Annotated[
        bool, typer.Option("--page", help="Write the site's page anew whenever its state changes.")
    ] = False,
) -> None:
    """Take part in approved studies as they are announced."""
    from functools import partial

    from consortium.engine.clock import Clock
    from site_agent.agent import Agent

    agent = Agent(folder, Clock(), _now, _log, page=page)
    work = partial(agent.work, once=once, idle=idle if once else float("inf"))
    if agent.config.prefect:
        from flows.site import attend  # the owner runs a Prefect of their own

        attend(agent.config.name, work)
    else:
        work()


@app.command(rich_help_panel=DAILY)
def status(folder: Folder = Path(), as_json: AsJson = False) -> None:
    """Show the site's configuration, its approved studies and what its agent waits for."""
    from site_agent.status import read_status

    found = read_status(folder)
    if as_json:
        out.print_json(found.as_json())
        return
    for line in found.lines():
        out.print(line)


@app.command(name="ledger", rich_help_panel=DAILY)
def show_ledger(
    folder: Folder = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all lines and the hash chain as JSON.")
    ] = False,
    verify: Annotated[
        Path | None, typer.Option(help="Check a file that --json printed, of any site.")
    ] = None,
    accept: Annotated[
        bool, typer.Option(help="Say that this ledger is the newest; the agent asks for it.")
    ] = False,
) -> None:
    """Show what studies have cost, and check that the ledger was not altered."""
    from datetime import UTC

    from consortium.formatting import count
    from consortium.membership.keys import load_identity
    from site_agent.config import SiteConfig
    from site_agent.ledger.export import export_json
    from site_agent.ledger.ledger import Ledger
    from site_agent.ledger.summary import print_accounts, verify_file
    from site_agent.policy.policy import Policy

    if verify is not None:
        out.print(verify_file(verify))
        return
    config, policy = SiteConfig.load(folder), Policy.load(folder)
    ledger = Ledger(config.ledger)
    if accept:
        from site_agent.enrolment.request import open_anchor

        head = open_anchor(folder, config, load_identity(folder)).accept()
        where = "its head is on the exchange" if head.seq else "the first round will leave its head"
        out.print(f"Accepted with {count(head.seq, 'line')}; {where}.")
    elif as_json:
        at, key = datetime.now(UTC).isoformat(timespec="seconds"), load_identity(folder).key
        sys.stdout.write(export_json(ledger, site=config.name, at=at, key=key).decode() + "\n")
    else:
        print_accounts(ledger, policy, out.console)


@app.command(rich_help_panel=DAILY)
def page(
    folder: Folder = Path(),
    to: Annotated[
        Path | None, typer.Option(help="Write it to this file instead of site.html.")
    ] = None,
) -> None:
    """Write the site's page: what the agent does, what is approved, and what was spent."""
    from site_agent.page.page import write_page

    out.print(f"{write_page(folder, _now(), to)} is written; open it in any browser.")


@app.command(rich_help_panel=DAILY)
def doctor(
    folder: Folder = Path(),
    study: Annotated[Path | None, typer.Option(help="A study that should find data.")] = None,
    as_json: AsJson = False,
) -> None:
    """Test clock, keys, exchange, disk, ledger, versions and data; no data leave the site."""
    import os
    import secrets
    import time
    from dataclasses import asdict

    from consortium.study.reader import load_study
    from site_agent.doctor.checkup import Surroundings, examine

    around = Surroundings(time.time, secrets.token_hex(8), os.environ)
    checks = examine(folder, around, load_study(study) if study else None)
    if as_json:
        out.print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            out.print(f"{check.state:<5} {check.name}: {check.message} {check.remedy}")
    if any(check.state == "fail" for check in checks):
        raise SystemExit(1)


_WITHOUT = "look at the study with 'site-agent check', and say yes with --yes"


def _tell_request(path: Path, key: bytes) -> None:
    from consortium.membership.roster_file import fingerprint

    out.print(f"Give {path} to the coordinator, and read out this fingerprint by telephone:")
    out.print(fingerprint(key))


def _now() -> datetime:
    return datetime.now().astimezone()


def _log(line: str) -> None:
    from consortium.errors import legible

    sys.stderr.write(f"{_now().isoformat(timespec='seconds')} {legible(line)}\n")
    sys.stderr.flush()


def main() -> None:
    """Entry point: an expected error is one sentence and exit code 1."""
    run_program("site-agent", app, out)
