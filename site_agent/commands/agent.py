"""Commands of a site's agent: start, status, ledger and page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import AsJson, Metrics
from site_agent.commands.program import DAILY, Folder, app, now, out


@app.command(rich_help_panel=DAILY)
def start(
    folder: Folder = Path(),
    once: Annotated[bool, typer.Option(help="Stop after the first run.")] = False,
    idle: Annotated[
        float,
        typer.Option(help="Seconds without work after which the agent stops. Requires --once."),
    ] = 3600.0,
    page: Annotated[
        bool, typer.Option("--page", help="Update the site's page whenever its state changes.")
    ] = False,
) -> None:
    """Take part in approved studies as they are announced."""
    from functools import partial

    from consortium.engine.clock import Clock
    from site_agent.agent import Agent

    agent = Agent(folder, Clock(), now, _log, page=page)
    work = partial(agent.work, once=once, idle=idle if once else float("inf"))
    if agent.config.prefect:
        from flows import need_prefect

        need_prefect()
        from flows.site import agent_as_flow  # the owner runs a Prefect of their own

        agent_as_flow(agent.config.name, work)
    else:
        work()


@app.command(rich_help_panel=DAILY)
def status(folder: Folder = Path(), as_json: AsJson = False) -> None:
    """Show the site's configuration, approved studies and budget, and what its agent waits for."""
    from site_agent.ledger.export import budget_json, budget_sentences, reserved_json
    from site_agent.status import read_status

    found = read_status(folder)
    if as_json:
        budget = {"budget": budget_json(folder), "reserved": reserved_json(folder)}
        out.print_json({**found.as_json(), **budget})
        return
    for line in (*found.lines(), *(f"budget     {line}" for line in budget_sentences(folder))):
        out.print(line)


@app.command(name="ledger", rich_help_panel=DAILY)
def show_ledger(
    folder: Folder = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all lines and the hash chain as JSON.")
    ] = False,
    verify: Annotated[
        Path | None, typer.Option(help="Saved output of --json to check, from any site.")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(help="Confirm that this ledger is the newest, when the agent requires it."),
    ] = False,
) -> None:
    """Show the loss that studies cost and reserve, and check the ledger for alterations."""
    from datetime import UTC, datetime

    from consortium.base.formatting import count
    from consortium.membership.keys import load_identity
    from site_agent.config import SiteConfig
    from site_agent.ledger.export import export_json, print_accounts, verify_file
    from site_agent.ledger.ledger import Ledger
    from site_agent.policy.policy import Policy

    if verify is not None:
        out.print(verify_file(verify))
        return
    config = SiteConfig.load(folder)
    policy = Policy.load(folder)
    ledger = Ledger(config.ledger)
    if accept:
        from site_agent.enrolment.request import open_anchor
        from site_agent.layout import STORE
        from site_agent.run.message_store import MessageStore

        store = MessageStore(folder / STORE)
        head = open_anchor(folder, config, load_identity(folder), store).accept()
        where = (
            "its head is on the exchange" if head.seq else "the first round will put its head there"
        )
        out.print(f"Accepted with {count(head.seq, 'line')}; {where}.")
    elif as_json:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        key = load_identity(folder).key
        sys.stdout.write(export_json(ledger, site=config.name, at=at, key=key).decode() + "\n")
    else:
        print_accounts(ledger, policy, out.console)


@app.command(name="left-out", rich_help_panel=DAILY)
def left_out(
    folder: Folder = Path(),
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Record the table although it lacks participants.")
    ] = False,
) -> None:
    """Count participants in the left-out table, and those who were in it at the last run only."""
    from consortium.base.formatting import count
    from site_agent.approval.left_out import read_states, record_left_out

    listed, missing = read_states(folder).count_left_out()
    out.print(
        f"The left-out table names {count(listed, 'participant')}, and "
        f"{count(missing, 'participant')} of the last run's table "
        f"{'is' if missing == 1 else 'are'} missing."
    )
    if confirm:
        trouble = record_left_out(folder, now().isoformat(timespec="seconds"))
        out.print("Recorded: runs use this table from now on.")
        if trouble:
            out.print(f"The ledger's head is put on the exchange with the next run ({trouble})")


@app.command(rich_help_panel=DAILY)
def page(
    folder: Folder = Path(),
    to: Annotated[Path | None, typer.Option(help="File to write instead of site.html.")] = None,
) -> None:
    """Write the site's page with the agent's state, the approvals, and the spent privacy budget."""
    from site_agent.page.page import write_site_page

    out.print(f"{write_site_page(folder, now(), to)} is written. Open it in any browser.")


@app.command(rich_help_panel=DAILY)
def serve(
    folder: Folder = Path(),
    port: Annotated[
        int, typer.Option(help="Port on 127.0.0.1 (default: any free one).", min=0, max=65535)
    ] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show pages without forms, and write nothing.")
    ] = False,
) -> None:
    """Serve the inbox, in which staff decide on studies with a browser on this machine."""
    need_inbox()
    from site_agent.inbox.server import serve as serve_inbox

    def announce(address: str) -> None:
        out.print(f"Open {address}")

    out.print("Each address opens the inbox once, in a browser on this machine. Ctrl-C stops it.")
    serve_inbox(folder, now, announce, port=port, read_only=read_only)


@app.command(rich_help_panel=DAILY)
def doctor(
    folder: Folder = Path(),
    study: Annotated[Path | None, typer.Option(help="A study that should find data here.")] = None,
    as_json: AsJson = False,
    metrics: Metrics = None,
) -> None:
    """Test clock, keys, exchange, disk, ledger, versions and data; no data leave the site."""
    import os
    import secrets
    import time

    from consortium.base.checkup import Surroundings
    from consortium.study.reader import read_study
    from site_agent.doctor.checkup import examine

    around = Surroundings(time.time, secrets.token_hex(8), os.environ)
    checks = examine(folder, around, read_study(study) if study else None)
    out.print_checks(checks, as_json, metrics)


def need_inbox() -> None:
    """Require the packages of the inbox, which a site's installation may lack.

    Raises ConfigurationError if one is not installed.
    """
    from importlib.util import find_spec

    from consortium.errors import ConfigurationError

    lacking = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if lacking:
        raise ConfigurationError(
            f"The inbox needs {' and '.join(lacking)}, which can't be found. Install a release's "
            "requirements-all.txt, or run 'pip install \"cape-consortium[inbox]\"'."
        )


def _log(line: str) -> None:
    from consortium.errors import printable

    sys.stderr.write(f"{now().isoformat(timespec='seconds')} {printable(line)}\n")
    sys.stderr.flush()
