"""Runs that have not ended at a site, and the privacy loss that the ledger reserves for each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consortium.base.formatting import count, number
from consortium.errors import printable
from consortium.privacy.gdp import compose
from site_agent.ledger.entries import LedgerEntry, standing_reservations
from site_agent.ledger.ledger import UNITS, Amount, amount_of
from site_agent.policy.policy import Policy


@dataclass(frozen=True)
class HeldRun:
    """A run that has not ended here: the loss that it holds, and the part that was charged."""

    study: str
    run: str
    unit: str
    since: str
    """Time of the hold."""
    held: Amount
    """The most that the whole run may cost each of its participants."""
    rounds: int
    """Number of rounds that were charged so far."""
    charged: Amount
    """Loss of these rounds, which is part of the hold."""
    delta: float
    """δ of both ε."""

    @property
    def sentence(self) -> str:
        """Reserved loss of a run, and the part of it that was charged."""
        rounds = (
            f"the {count(self.rounds, 'round')} charged so far come to "
            f"ε = {number(self.charged.epsilon)}"
            if self.rounds
            else "no round is charged so far"
        )
        return (
            f"Reserved for study {printable(self.study)}, run {printable(self.run)}, which has not "
            f"ended: at most ε = {number(self.held.epsilon)} at δ = {self.delta:g} for each "
            f"{UNITS.get(self.unit, self.unit)} of the run; {rounds}."
        )

    def as_json(self) -> dict[str, object]:
        """Return what ``status --json`` prints."""
        return {
            "study": self.study,
            "run": self.run,
            "unit": self.unit,
            "since": self.since,
            "delta": self.delta,
            "epsilon_reserved": self.held.epsilon,
            "rounds_charged": self.rounds,
            "epsilon_charged": self.charged.epsilon,
        }


def held_runs(entries: Sequence[LedgerEntry], policy: Policy) -> list[HeldRun]:
    """Return the runs with a hold, in the order of their holds.

    Parameters
    ----------
    entries : sequence of LedgerEntry
        All lines of a ledger.
    """
    holds: dict[tuple[str, str, str], LedgerEntry] = {}
    for entry in entries:
        if entry.event == "hold":
            holds[_run_of(entry)] = entry
        elif entry.event == "release":
            del holds[_run_of(entry)]
    charged = standing_reservations(entries)
    return [
        _held_run(hold, [each for each in charged if _run_of(each) == key], policy)
        for key, hold in holds.items()
    ]


def _run_of(entry: LedgerEntry) -> tuple[str, str, str]:
    charge = entry.charge
    return charge.site, charge.centre, charge.run


def _held_run(hold: LedgerEntry, rounds: Iterable[LedgerEntry], policy: Policy) -> HeldRun:
    losses = [each.charge.mu for each in rounds]
    whole = hold.charge
    return HeldRun(
        study=whole.study,
        run=whole.run,
        unit=whole.unit,
        since=hold.at,
        held=amount_of(whole.mu, policy),
        rounds=len(losses),
        charged=amount_of(compose(losses), policy),
        delta=policy.delta,
    )
