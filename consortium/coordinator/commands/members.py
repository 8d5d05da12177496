"""Founding a consortium, and changes of its members."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import AsJson, Metrics
from consortium.coordinator.commands.program import (
    MEMBERS,
    Credentials,
    ExchangePlace,
    KeysFolder,
    RosterFile,
    app,
    out,
)
from consortium.errors import StudyError


@app.command(rich_help_panel=MEMBERS)
def init(
    folder: Annotated[Path, typer.Argument(help="Folder for the centre's keys.")],
    exchange: Annotated[
        str | None,
        typer.Option(
            help="Place of the messages: a directory, which is made, or an address, as "
            "s3://bucket/prefix, which is tested."
        ),
    ] = None,
    credentials: Credentials = None,
) -> None:
    """Make a consortium: its keys and an empty roster."""
    import secrets

    from consortium.base.atomic import make_folder
    from consortium.errors import ExchangeError
    from consortium.exchange.address import open_exchange
    from consortium.exchange.checkup import fault_of
    from consortium.membership.keys import create_identity
    from consortium.membership.roster import fingerprint, found_roster, save_roster

    if exchange is not None and "://" in exchange:
        fault = fault_of(open_exchange(exchange, credentials), "centre", secrets.token_hex(8))
        if fault:
            raise ExchangeError(f"{exchange} can't be the exchange: {fault}")
    elif exchange is not None:
        make_folder(Path(exchange))
    make_folder(folder)
    identity = create_identity(folder, secrets.token_bytes(64))
    roster = folder / "roster.yaml"
    save_roster(roster, found_roster(identity.public), identity.key)
    if exchange is not None:
        out.print(f"The messages are stored in {exchange}. Let every party read and add there.")
    out.print(f"The keys are in {folder}, and the roster is {roster}.")
    out.print(
        f"To check a result, compare the centre's fingerprint: {fingerprint(identity.public)}."
    )
    out.print("Tell every site this key of the consortium:")
    out.print(identity.public.hex())


@app.command(rich_help_panel=MEMBERS)
def admit(
    requests: Annotated[list[Path], typer.Argument(help="Files that 'site-agent join' wrote.")],
    roster: RosterFile,
    keys: KeysFolder,
    lost_key: Annotated[
        bool, typer.Option(help="Accept a new key that the site's old one did not sign.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Skip the question, as the fingerprints were compared.")
    ] = False,
) -> None:
    """Put sites on the roster, once their fingerprints were compared by telephone."""
    from consortium.membership.admission import admit_site as take_up
    from consortium.membership.admission import read_request
    from consortium.membership.keys import load_identity
    from consortium.membership.roster import fingerprint, read_roster, save_roster

    members = read_roster(roster)
    key = load_identity(keys).key
    members.check_owner(key)
    for path in requests:
        request = read_request(path)
        out.print(f"{request.site}: {fingerprint(request.key)}")
        if not (yes or typer.confirm("Did the site read out this fingerprint?")):
            raise StudyError(f"{request.site} was not admitted. Ask it for its fingerprint.")
        members = take_up(members, request, lost_key=lost_key)
    save_roster(roster, members, key)
    out.print(f"The roster has {len(members.sites)} sites, serial number {members.serial}.")


@app.command(rich_help_panel=MEMBERS)
def remove(
    site: Annotated[str, typer.Argument(help="Name of the site.")],
    roster: RosterFile,
    keys: KeysFolder,
) -> None:
    """Remove a site from the roster; studies that name it must be signed again without it."""
    from consortium.membership.keys import load_identity
    from consortium.membership.roster import read_roster, save_roster

    members = read_roster(roster).without_site(site)
    save_roster(roster, members, load_identity(keys).key)
    out.print(f"{site} is off the roster, serial number {members.serial}.")


@app.command(rich_help_panel=MEMBERS)
def rotate(
    roster: RosterFile,
    keys: KeysFolder,
    new: Annotated[Path, typer.Option(help="New folder for the new keys.")],
) -> None:
    """Sign the roster with new keys of the consortium, which the old ones vouch for."""
    import secrets

    from consortium.base.atomic import make_folder
    from consortium.membership.keys import create_identity, load_identity
    from consortium.membership.roster import read_roster, save_roster

    members = read_roster(roster)
    old = load_identity(keys).key
    members.check_owner(old)
    make_folder(new)
    identity = create_identity(new, secrets.token_bytes(64))
    save_roster(roster, members.handed_over(old, identity.public), identity.key)
    out.print(
        f"The keys in {new} are the consortium's now. Sign its studies again with them, and send "
        "every site the roster."
    )


@app.command(rich_help_panel=MEMBERS)
def doctor(
    roster: RosterFile,
    exchange: ExchangePlace,
    keys: KeysFolder,
    study: Annotated[Path | None, typer.Argument(help="A signed study, if there is one.")] = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
    metrics: Metrics = None,
) -> None:
    """Test keys, roster, exchange, clock, disk, Prefect, and a study's approvals, before a run."""
    import os
    import secrets
    import time

    from consortium.base.checkup import Surroundings
    from consortium.coordinator.doctor import CoordinatorParts, check_centre

    around = Surroundings(time.time, secrets.token_hex(8), os.environ)
    parts = CoordinatorParts(keys, roster, exchange, credentials, study)
    out.print_checks(check_centre(parts, around), as_json, metrics)
