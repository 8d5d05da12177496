"""What a site brings to every run."""

from collections.abc import Callable
from dataclasses import dataclass

from consortium.exchange.base import Exchange
from consortium.membership.keys import Identity
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.ledger import Ledger
from site_agent.policy.policy import Policy
from site_agent.run.message_store import MessageStore
from site_agent.run.site_log import SiteLog


@dataclass(frozen=True)
class Site:
    """A site's belongings.

    Parameters
    ----------
    dataset : str
        Name of the data set in the ledger.
    anchor : LedgerAnchor
        Of the ledger, on the exchange.
    now : callable
        The time, for the ledger's readers.
    passed : callable
        Seconds on a clock that never goes back.
    """

    name: str
    identity: Identity
    dataset: str
    policy: Policy
    ledger: Ledger
    anchor: LedgerAnchor
    store: MessageStore
    exchange: Exchange
    now: Callable[[], str]
    passed: Callable[[], float]
    log: SiteLog
