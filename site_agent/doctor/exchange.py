"""The doctor's look at the exchange, and at what it tells of clock, ledger and versions."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from consortium import __version__
from consortium.base.checkup import Check
from consortium.base.formatting import count
from consortium.engine.names import ANNOUNCEMENT, MOST_ANNOUNCEMENT, Names
from consortium.engine.queries import read_announcement
from consortium.errors import ExchangeError, ProtocolError
from consortium.exchange import Exchange
from consortium.exchange.checkup import SET_IT, SLOW, check_probe, compared_clock
from consortium.membership.keys import load_identity
from consortium.secagg import CENTRE, OVERHEAD, unseal
from site_agent.approval.approval import Approval
from site_agent.config import SiteConfig
from site_agent.enrolment.request import open_anchor
from site_agent.layout import STORE
from site_agent.ledger.ledger import Ledger
from site_agent.run.message_store import MessageStore

_MOST_RUNS = 20  # that are read for the centre's version


def probe(config: SiteConfig, token: str) -> Check:
    """Put, list and fetch a probe, and see that it can't be written over."""
    return check_probe(config.open_exchange(), config.name, token)


def clock(
    config: SiteConfig,
    token: str,
    now: Callable[[], float],
    arrival: Callable[[str], float] | None,
) -> Check:
    """Compare the clock with the exchange's and with the ledger's last line."""
    last = _last_entry(config)
    if last is not None and last > now() + SLOW:
        message = f"The clock is {last - now():.0f} s before the ledger's last line."
        return Check("clock", "fail", message, SET_IT)
    exchange = config.open_exchange()
    return compared_clock(exchange, config.exchange, config.name, token, now, arrival)


def anchor(config: SiteConfig, folder: Path) -> Check:
    """Compare the ledger with the heads that the site signed."""
    exchange = config.open_exchange()
    if not config.ledger.exists():  # it is not the doctor who makes one
        if not exchange.children(f"ledgers/{config.name}"):
            return Check("heads", "ok", "Nothing was spent, and nothing says otherwise.")
        message = f"{config.ledger} is missing, and the exchange says that there was one."
        return Check("heads", "warn", message, "Restore the ledger if this site had one.")
    ledger = Ledger(config.ledger)
    store = MessageStore(folder / STORE) if (folder / STORE).exists() else None
    agreeing = open_anchor(folder, config, load_identity(folder), store).check()
    if ledger.head().seq and not agreeing:
        message = "The exchange holds none of this site's signed heads of its ledger."
        return Check("heads", "warn", message, "It will after the next round, if none was deleted.")
    return Check("heads", "ok", f"{count(agreeing, 'signed head')} on the exchange agree.")


def announced(exchange: Exchange, known: list[Approval]) -> Check:
    """Compare the version with the one that the centre of an approved study announced last."""
    found = next(_versions(exchange, known), None)
    if found is None:
        return Check("version", "ok", f"This is {__version__}; no approved run says the centre's.")
    if found == __version__:
        return Check("version", "ok", f"The centre runs {found}, too.")
    message = f"The centre runs {found[:40]} and this site {__version__}."
    return Check("version", "warn", message, "Install the centre's version.")


def _versions(exchange: Exchange, known: list[Approval]) -> Iterator[str]:
    """Yield versions from the announcements of approved studies, newest numbers first."""
    names = {approval.study.study for approval in known}
    runs = [run for run in exchange.children("runs") if run.rpartition("-")[0] in names]
    for run in runs[: -_MOST_RUNS - 1 : -1]:
        try:
            message = exchange.get(Names(run).study(), MOST_ANNOUNCEMENT + OVERHEAD)
        except ExchangeError:
            continue
        for approval in known if message else []:
            version = _version(message or b"", approval, run)
            if version:
                yield version


def _version(message: bytes, approval: Approval, run: str) -> str:
    try:
        opened = unseal(
            message,
            approval.keys,
            run=run,
            kind=ANNOUNCEMENT,
            limit=MOST_ANNOUNCEMENT + OVERHEAD,
            sender=CENTRE,
        )
        return str(read_announcement(opened.body).get("version", ""))
    except ProtocolError:  # another consortium's, or forged
        return ""


def _last_entry(config: SiteConfig) -> float | None:
    """When the ledger's last line was written, in seconds since 1970, if it says so."""
    if not config.ledger.exists():
        return None
    entries = Ledger(config.ledger).entries()
    try:
        return datetime.fromisoformat(entries[-1].at).timestamp() if entries else None
    except ValueError:
        return None
