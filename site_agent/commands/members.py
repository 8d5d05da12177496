"""Becoming a member of a consortium, and changing the key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from site_agent.commands.program import ONCE, Folder, app, now, out

if TYPE_CHECKING:
    from site_agent.config import SiteConfig


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
        str, typer.Option(help="The consortium's key, which also requests admission, as join does.")
    ] = "",
    participants: Annotated[
        int | None, typer.Option(help="Nominal number of participants, such as 160.")
    ] = None,
    folder: Folder = Path(),
) -> None:
    """Make the site's keys, its configuration and its policy."""
    import secrets

    from consortium.base.atomic import make_folder
    from consortium.membership.keys import create_identity
    from consortium.membership.roster import fingerprint
    from consortium.study.nominal import check_nominal
    from site_agent.config import SiteConfig
    from site_agent.enrolment.request import join_consortium
    from site_agent.policy.policy import Policy

    size = None if participants is None else check_nominal(participants, "--participants")
    config = SiteConfig.create(name, dataset, exchange, credentials, size)
    make_folder(folder)
    identity = create_identity(folder, secrets.token_bytes(64))
    config.save(folder)
    Policy().save(folder)
    out.print(
        f"Keys, site.yaml and policy.yaml are in {folder}. Read the two files, and change them to "
        "your site's needs.",
    )
    if centre:
        path, request = join_consortium(folder, config.name, centre, size)
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
        bool, typer.Option(help="Change this site's key; the old key also signs.")
    ] = False,
    folder: Folder = Path(),
) -> None:
    """Write a signed request to be admitted, for the coordinator."""
    from site_agent.config import SiteConfig
    from site_agent.enrolment.pinned_consortium import read_pinned
    from site_agent.enrolment.request import change_key, join_consortium

    config = SiteConfig.load(folder)
    if rotate:
        path, request, trouble = change_key(folder, config, centre)
        _record_key(folder, config, request.key)
        if trouble:
            out.print(f"The ledger's head is put on the exchange when the agent starts ({trouble})")
    else:
        is_new = read_pinned(folder) is None
        size = config.nominal_participants
        path, request = join_consortium(folder, config.name, centre, size)
        if is_new and config.ledger.exists():
            _record_roster(folder, config)
    _tell_request(path, request.key)


def _record_key(folder: Path, config: SiteConfig, key: bytes) -> None:
    """Write the change of the key to the security log, and report it if that is impossible."""
    from consortium.errors import ConsortiumError
    from site_agent.enrolment.request import earlier_key
    from site_agent.security_log import SecurityLog

    at = now().isoformat(timespec="seconds")
    log = SecurityLog(config.security_log, folder, config.name, lambda: at)
    try:
        log.new_key(key.hex(), (earlier_key(folder) or b"").hex())
    except ConsortiumError as error:
        out.print(str(error))


def _record_roster(folder: Path, config: SiteConfig) -> None:
    """Record in the ledger that the site has joined another consortium."""
    from consortium.membership.keys import load_identity
    from site_agent.approval.folder_states import FolderStates
    from site_agent.enrolment.pinned_consortium import read_pinned
    from site_agent.ledger.ledger import Ledger

    states = FolderStates(folder, config, load_identity(folder), Ledger(config.ledger))
    trust = read_pinned(folder)
    if trust is not None:
        states.accept_roster(trust, now().isoformat(timespec="seconds"))


def _tell_request(path: Path, key: bytes) -> None:
    from consortium.membership.roster import fingerprint

    out.print(f"Give {path} to the coordinator, and read out this fingerprint by telephone:")
    out.print(fingerprint(key))
