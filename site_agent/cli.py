"""The command line of a site: ``site-agent``."""

from __future__ import annotations

import os
import secrets
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from consortium.engine.wait_file import read_waiting
from consortium.errors import ConsortiumError, legible
from consortium.files.atomic import make_folder
from consortium.files.lock import in_use
from consortium.formatting import count, moment
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster_file import fingerprint
from consortium.study.reader import load_study
from site_agent.approval.approval import Approval, approvals
from site_agent.config import SiteConfig
from site_agent.enrolment.pinned_consortium import Trust, read_trust
from site_agent.ledger.ledger import Ledger
from site_agent.policy.policy import Policy

app = typer.Typer(
    help="A hospital's agent: takes part in the studies that its people approved. A site begins "
    "with init and join; for each study, check and approve; the agent itself is start.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Without markup: a title or a file's name with brackets is text, and no mistake.
out = Console(markup=False, width=None if sys.stdout.isatty() else 140)
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
    folder: Folder = Path(),
) -> None:
    """Make the site's keys, its configuration and its policy."""
    config = SiteConfig.create(name, dataset, exchange, credentials)
    make_folder(folder)
    identity = create_identity(folder, secrets.token_bytes(64))
    config.save(folder)
    Policy().save(folder)
    out.print(
        f"Keys, site.yaml and policy.yaml are in {folder}; read the two files, and change what "
        "your site wants otherwise.",
        soft_wrap=True,
    )
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
    from site_agent.enrolment.request import change_key, join_consortium

    config = SiteConfig.load(folder)
    if rotate:
        path, request, trouble = change_key(folder, config, centre)
        if trouble:
            out.print(f"The ledger's head is left when the agent starts ({trouble})")
    else:
        path, request = join_consortium(folder, config.name, centre)
    out.print(
        f"Give {path} to the coordinator, and read out this fingerprint by telephone:",
        soft_wrap=True,
    )
    out.print(fingerprint(request.key))


@app.command(rich_help_panel=STUDIES)
def check(study: StudyFile, roster: RosterFile, folder: Folder = Path()) -> None:
    """Look at a study before saying yes: what it would load, ask and cost here."""
    from site_agent.approval.inspection import inspect  # imports image libraries

    found = inspect(folder, study, roster)
    found.show(out)
    if found.problems:
        raise SystemExit(1)


@app.command(rich_help_panel=STUDIES)
def prepare(study: StudyFile, roster: RosterFile, folder: Folder = Path()) -> None:
    """Prepare a study's scans ahead, on the Prefect task runner of site.yaml."""
    from flows.prepare import prepare_all
    from site_agent.prepare import count_persons, prepare_person

    config, files = SiteConfig.load(folder), (folder.resolve(), study.resolve(), roster.resolve())
    persons = count_persons(*files)
    work, options = partial(prepare_person, *files), dict(config.task_runner_options)
    prepare_all(work, persons, config.task_runner, options, folder.resolve() / ".prefect")
    out.print(f"{persons} persons are prepared; the agent finds them in {folder / 'cache'}.")


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
    folder: Folder = Path(),
) -> None:
    """Say yes to exactly this study with exactly these keys."""
    from site_agent.approval.inspection import say_yes

    day = until.date() if until else None
    approval, trouble = say_yes(folder, study, roster, runs=runs, until=day, epsilon=epsilon)
    out.print(f"Approved: {_promise(approval)}.", soft_wrap=True)
    if trouble:
        out.print(f"The coordinator is told when the agent starts ({trouble})", soft_wrap=True)


@app.command(rich_help_panel=STUDIES)
def withdraw(
    study: Annotated[str, typer.Argument(help="The study's name, as status shows it.")],
    folder: Folder = Path(),
) -> None:
    """Take a yes back; a running agent answers nothing more for the study."""
    from site_agent.approval.approval import take_back

    trouble = take_back(folder, study)
    out.print(f"Withdrawn: {study} is approved no more.", soft_wrap=True)
    if trouble:
        out.print(f"The coordinator is told when the agent starts ({trouble})", soft_wrap=True)


@app.command(rich_help_panel=DAILY)
def start(
    folder: Folder = Path(),
    once: Annotated[bool, typer.Option(help="Stop after the first run.")] = False,
    idle: Annotated[
        float, typer.Option(help="With --once: give up after so many seconds without work.")
    ] = 3600.0,
) -> None:
    """Take part in approved studies as they are announced."""
    from consortium.engine.clock import Clock
    from site_agent.agent import Agent  # imports image libraries, which the other commands spare

    agent = Agent(folder, Clock(), _now, _tell)
    work = partial(agent.work, once=once, idle=idle if once else float("inf"))
    if agent.config.prefect:
        from flows.site import attend  # the owner runs a Prefect of their own

        attend(agent.config.name, work)
    else:
        work()


@app.command(rich_help_panel=DAILY)
def status(folder: Folder = Path()) -> None:
    """Show the site's configuration, its approved studies and what its agent waits for."""
    config, identity = SiteConfig.load(folder), load_identity(folder)
    out.print(f"site       {config.name}")
    out.print(
        f"key        {identity.public.hex()} ({fingerprint(identity.public)})", soft_wrap=True
    )
    out.print(f"data set   {config.dataset}", soft_wrap=True)
    out.print(f"exchange   {config.exchange}", soft_wrap=True)
    trust = read_trust(folder)
    joined = f"{fingerprint(trust.centre)}, roster {trust.serial}" if trust else "none joined yet"
    out.print(f"consortium {joined}")
    for approval in approvals(folder, identity):
        out.print(f"approved   {_promise(approval)}", soft_wrap=True)
        try:
            (trust or Trust(b"")).check_keys(approval.study.study, approval.keys)
        except ConsortiumError as error:
            out.print(f"refused    {error}", soft_wrap=True)
    waiting = read_waiting(folder) if in_use(folder) else None
    out.print(f"agent      {'running' if in_use(folder) else 'not running'}")
    if waiting is not None:
        who = ", ".join(f"{name}: {what}" for name, what in waiting.sites.items())
        out.print(f"waits      {waiting.step}: {who}, since {moment(waiting.since)}")


@app.command(name="ledger", rich_help_panel=DAILY)
def show_ledger(
    folder: Folder = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all lines and the hash chain as JSON.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Write a page for the ethics board to this file.")
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Check a file that --json printed, of any site.")
    ] = None,
    accept: Annotated[
        bool, typer.Option(help="Say that this ledger is the newest; the agent asks for it.")
    ] = False,
) -> None:
    """Show what the data set has cost, and check that the ledger was not altered."""
    from site_agent.ledger.summary import print_accounts, verify_file, write_books

    if verify is not None:
        out.print(verify_file(verify), soft_wrap=True)
        return
    config, policy = SiteConfig.load(folder), Policy.load(folder)
    ledger = Ledger(config.ledger)
    if accept:
        from site_agent.enrolment.request import open_anchor

        head = open_anchor(folder, config, load_identity(folder)).accept()
        where = "its head is on the exchange" if head.seq else "the first round will leave its head"
        out.print(f"Accepted with {count(head.seq, 'line')}; {where}.", soft_wrap=True)
    elif as_json or page is not None:
        identity = load_identity(folder)
        write_books(ledger, policy, config, identity, page, datetime.now(UTC))
        if page is not None:
            out.print(f"{page} is written.", soft_wrap=True)
    else:
        print_accounts(ledger, policy, config, out)


@app.command(rich_help_panel=DAILY)
def doctor(
    folder: Folder = Path(),
    study: Annotated[Path | None, typer.Option(help="A study that should find data.")] = None,
) -> None:
    """Test clock, keys, exchange, disk, ledger, versions and data; nothing leaves the site."""
    from site_agent.doctor.checkup import Surroundings, examine

    around = Surroundings(time.time, secrets.token_hex(8), os.environ)
    checks = examine(folder, around, load_study(study) if study else None)
    for check in checks:
        out.print(f"{check.state:<5} {check.name}: {check.says} {check.remedy}", soft_wrap=True)
    if any(check.state == "fail" for check in checks):
        raise SystemExit(1)


def _promise(approval: Approval) -> str:
    study, terms = approval.study, approval.terms
    p = study.privacy
    text = f"{study.study}: {study.algorithm}, ε ≤ {p.epsilon:g} at δ = {p.delta:g}, unit {p.unit}"
    text += f", {terms.runs} run{'' if terms.runs == 1 else 's'}"
    if terms.epsilon is not None:
        text += f", ε ≤ {terms.epsilon:g} in all"
    return text + (f", until {terms.until}" if terms.until else "")


def _now() -> datetime:
    return datetime.now().astimezone()


def _tell(line: str) -> None:
    sys.stderr.write(f"{_now().isoformat(timespec='seconds')} {legible(line)}\n")
    sys.stderr.flush()


def main() -> None:
    """Entry point: an expected error is one sentence and exit code 1."""
    try:
        app()
    except ConsortiumError as error:
        sys.stderr.write(f"site-agent: {error}\n")
        sys.exit(1)
