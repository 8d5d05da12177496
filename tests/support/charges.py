"""Limits for tests of the ledger that are about something else."""

from site_agent.ledger.ledger import Limits


def up_to(mu: float) -> Limits:
    """Nothing is limited but what all studies together may cost, in either unit."""
    return Limits({"subject": mu, "timepoint": mu})
