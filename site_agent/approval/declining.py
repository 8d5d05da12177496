"""A decision of a site's staff against a study, which waits for no decision any more."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.lock import take_turns
from consortium.errors import ConfigurationError, ConsortiumError, StudyError
from consortium.exchange.base import Exchange
from consortium.membership.consent import decline
from consortium.membership.keys import Identity, load_identity
from site_agent.approval.approval import Papers, newest_approval
from site_agent.config import SiteConfig
from site_agent.layout import DECISIONS, DECLINED


class DeclinedStudy(NamedTuple):
    """A study that the site's staff declined, and the day."""

    study: str
    """The study's name."""
    day: str


def read_declined(folder: Path) -> dict[str, DeclinedStudy]:
    """Return the declined studies, by `Study.digest`.

    Raises ConfigurationError if the file is damaged.
    """
    path = folder / DECLINED
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): DeclinedStudy(str(name), str(day)) for key, (name, day) in found.items()}
    except FileNotFoundError:
        return {}
    except DAMAGED as error:
        raise ConfigurationError(
            f"{path} is damaged. Restore it from a backup, or remove it."
        ) from error


def say_no(
    folder: Path, papers: Papers, today: date, still: Callable[[], None] = lambda: None
) -> ConsortiumError | None:
    """Decline a study, and inform the coordinator. A later approval replaces the decision.

    Raises StudyError if the study is approved, or does not name this site. Raises
    ConfigurationError if the site's folder can't be used.

    Parameters
    ----------
    folder : Path
        The site's folder.
    papers : Papers
        The study as it was shown to the site's staff.
    today : date
        The day that is recorded.
    still : callable
        Called directly before the decision is recorded, while no other decision can be made. It
        raises an error if the site has changed since the staff looked.

    Returns
    -------
    ConsortiumError or None
        Why the coordinator could not be informed.
    """
    config = SiteConfig.load(folder)
    identity = load_identity(folder)
    study = papers.signed.study
    if config.name not in study.sites:
        raise StudyError(
            f"{study.study} does not name this site, '{config.name}', so there is nothing to "
            "decline."
        )
    with take_turns(folder, DECISIONS):
        still()
        approval = newest_approval(folder, identity, study.study)
        if approval is not None and approval.study.digest == study.digest:
            raise StudyError(
                f"{study.study} is approved here. Withdraw the approval with 'site-agent withdraw "
                f"{study.study}' instead."
            )
        new = DeclinedStudy(study.study, today.isoformat())
        _write(folder, {**read_declined(folder), study.digest: new})
        try:
            post_declined(folder, identity, config.name, config.open_exchange())
        except ConsortiumError as error:
            return error
    return None


def post_declined(folder: Path, identity: Identity, name: str, exchange: Exchange) -> None:
    """Post each declined study on the exchange, unless its message is there.

    Raises ConfigurationError as `read_declined`, and ExchangeError if the exchange can't be used.
    """
    for digest, declined in read_declined(folder).items():
        decline(exchange, identity.key, name, declined.study, digest)


def forget_declined(folder: Path, digest: str) -> None:
    """Remove the record that a study was declined, once it is approved; without one, do nothing.

    Raises ConfigurationError as `read_declined`, and OutputError if the file can't be written.
    """
    kept = read_declined(folder)
    if kept.pop(digest, None) is not None:
        _write(folder, kept)


def _write(folder: Path, declined: Mapping[str, DeclinedStudy]) -> None:
    write_bytes(folder / DECLINED, json.dumps(declined, indent=1).encode(), mode=0o600)
