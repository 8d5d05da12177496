"""Limits for tests of the ledger that are about something else."""

from site_agent.ledger.ledger import LedgerLimits


def up_to(mu: float) -> LedgerLimits:
    """Nothing is limited but what all studies together may cost, in either unit."""
    return LedgerLimits({"subject": mu, "timepoint": mu})
