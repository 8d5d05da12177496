"""The command line of a site: ``site-agent``."""

from __future__ import annotations

import json
import secrets
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from consortium.errors import ConfigurationError, ConsortiumError
from consortium.identity import create_identity, load_identity
from consortium.privacy.gdp import epsilon_of
from consortium.study import Study
from site_agent.approval import approvals, approve
from site_agent.config import SiteConfig
from site_agent.ledger import LEDGER, Ledger

app = typer.Typer(
    help="A hospital's agent: takes part in the studies that its people approved.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
out = Console(width=None if sys.stdout.isatty() else 140)
Folder = Annotated[
    Path, typer.Option("--folder", "-f", help="The site's own folder.", envvar="SITE_FOLDER")
]


@app.command()
def init(
    name: Annotated[str, typer.Option(help="Name of this site, as studies call it.")],
    dataset: Annotated[Path, typer.Option(help="BIDS folder with the preprocessed images.")],
    exchange: Annotated[Path, typer.Option(help="Directory that the consortium shares.")],
    folder: Folder = Path(),
) -> None:
    """Make the site's keys and its configuration."""
    config = SiteConfig.create(name, dataset, exchange)
    _make(folder)
    identity = create_identity(folder, secrets.token_bytes(64))
    config.save(folder)
    out.print(f"Keys and site.yaml are in {folder}. Give this line to the coordinator:")
    out.print(f"{name}: {identity.public.hex()}", soft_wrap=True)


@app.command(name="approve")
def approve_command(
    study: Annotated[Path, typer.Argument(help="Study file.")],
    roster: Annotated[Path, typer.Option(help="Roster file of the consortium.")],
    runs: Annotated[int, typer.Option(help="Runs from now on; each costs again.", min=1)] = 1,
    folder: Folder = Path(),
) -> None:
    """Say yes to exactly this study with exactly this roster."""
    SiteConfig.load(folder)
    approval = approve(folder, study, roster, runs=runs)
    out.print(f"Approved: {_promise(approval.study)}.")


@app.command()
def start(
    folder: Folder = Path(),
    once: Annotated[bool, typer.Option(help="Stop after the first run.")] = False,
    idle: Annotated[
        float, typer.Option(help="With --once: give up after so many seconds without work.")
    ] = 3600.0,
) -> None:
    """Take part in approved studies as they are announced."""
    from consortium.engine.wire import Clock
    from site_agent.agent import Agent  # imports image libraries, which the other commands spare

    agent = Agent(folder, Clock(), _now, _tell)
    work = partial(agent.work, once=once, idle=idle if once else float("inf"))
    if agent.config.prefect:
        from flows.site import attend  # the owner runs a Prefect of their own

        attend(agent.config.name, work)
    else:
        work()


@app.command()
def status(folder: Folder = Path()) -> None:
    """Show the site's configuration and approved studies."""
    config = SiteConfig.load(folder)
    out.print(f"site      {config.name}")
    out.print(f"key       {load_identity(folder).public.hex()}", soft_wrap=True)
    out.print(f"data set  {config.dataset}", soft_wrap=True)
    out.print(f"exchange  {config.exchange}", soft_wrap=True)
    for approval in approvals(folder):
        out.print(f"approved  {_promise(approval.study)}")


@app.command(name="ledger")
def show_ledger(
    folder: Folder = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what the data set has cost, and check that the ledger was not altered."""
    config, ledger = SiteConfig.load(folder), Ledger(folder / LEDGER)
    entries = [entry for entry in ledger.entries() if entry.event == "reserve"]
    spent = {(e.charge.run, e.charge.round) for e in ledger.entries() if e.event == "spend"}
    if as_json:
        rows = [
            vars(e.charge) | {"at": e.at, "answered": (e.charge.run, e.charge.round) in spent}
            for e in entries
        ]
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    table = Table("run", "round", "statistic", "unit", "μ", "reserved at")
    for entry in entries:
        c = entry.charge
        table.add_row(c.run, str(c.round), c.statistic, c.unit, f"{c.mu:.4f}", entry.at)
    out.print(table)
    for dataset, unit in sorted({(e.charge.dataset, e.charge.unit) for e in entries}):
        mu, delta = ledger.total(dataset, unit), config.limits.delta
        epsilon, allowed = epsilon_of(mu, delta), getattr(config.limits, unit)
        out.print(
            f"{dataset}, unit {unit}: μ = {mu:.4f}, "
            f"ε = {epsilon:.3f} of {allowed:g} allowed at δ = {delta:g}"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} can't be made ({error.strerror}); choose another folder with --folder."
        ) from error


def _promise(study: Study) -> str:
    p = study.privacy
    return f"{study.study}: {study.algorithm}, ε ≤ {p.epsilon:g} at δ = {p.delta:g}, unit {p.unit}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _tell(line: str) -> None:
    sys.stderr.write(f"{_now()} {line}\n")
    sys.stderr.flush()


def main() -> None:
    """Entry point: an expected error is one sentence and exit code 1."""
    try:
        app()
    except ConsortiumError as error:
        sys.stderr.write(f"site-agent: {error}\n")
        sys.exit(1)
