"""Charges in a ledger as an agent makes them: a run's hold, its rounds and its release."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from site_agent.ledger.file import LedgerFile
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits

PEOPLE = ("01", "02")


def up_to(mu: float) -> LedgerLimits:
    """Limit nothing but the loss of all studies together, in either unit."""
    return LedgerLimits({"subject": mu, "timepoint": mu})


def whole_run(charge: Charge, loss: float) -> Charge:
    """Return the charge of a round's whole run."""
    return replace(
        charge, round=0, stage="", statistic="", mu=loss, query="", outsider=0.0, persons=""
    )


def held(
    ledger: Ledger,
    charge: Charge,
    people: Sequence[str] = PEOPLE,
    *,
    loss: float | None = None,
    limits: LedgerLimits | None = None,
) -> Charge:
    """Hold the loss of a round's run, and return the round's charge to the hold's participants.

    By default the run has no other round, and nothing is limited.
    """
    whole = whole_run(charge, charge.mu if loss is None else loss)
    group, _ = ledger.hold(whole, list(people), limits or up_to(1e9), "before")
    return replace(charge, persons=group)


def charged(
    ledger: Ledger, charge: Charge, people: Sequence[str] = PEOPLE, at: str = "now"
) -> Charge:
    """Charge the one round of a run, from reservation to release; return the charge."""
    charge = held(ledger, charge, people)
    assert ledger.reserve(charge, at)
    ledger.release(charge.run, charge.site, at)
    return charge


def write_lines(path: Path, charge: Charge, *events: str) -> None:
    """Add lines of a charge to a ledger as an earlier version wrote them, without a hold."""
    file = LedgerFile(path)
    for event in events:
        file.catch_up()
        file.append(charge, event, "then")
    file.close()
