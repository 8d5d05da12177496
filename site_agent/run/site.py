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
    """A site's belongings."""

    name: str
    identity: Identity
    dataset: str
    """Name of the data set in the ledger."""
    policy: Policy
    ledger: Ledger
    anchor: LedgerAnchor
    """Of the ledger, on the exchange."""
    store: MessageStore
    exchange: Exchange
    now: Callable[[], str]
    """The time, for the ledger's readers."""
    passed: Callable[[], float]
    """Seconds on a clock that never goes back."""
    log: SiteLog
