"""What studies have cost here, in the terminal, and what somebody's exported ledger shows."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from consortium.base.formatting import number, percent
from consortium.errors import LedgerError
from consortium.privacy.gdp import ADDS_UP, TWO_READERS
from site_agent.config import SiteConfig
from site_agent.ledger.export import verify_export
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.totals import accounts, studies
from site_agent.policy.policy import Policy


def print_accounts(ledger: Ledger, policy: Policy, out: Console) -> None:
    """Show every study's cost and what is left to whoever was charged most."""
    table = Table("study", "unit", "runs", "rounds", "ε", "of the budget", "last")
    allowed = {account.unit: account.allowed.mu for account in accounts(ledger, policy)}
    for row in studies(ledger.entries(), policy):
        share = (row.cost.mu / allowed[row.unit]) ** 2 if row.reserved else 0.0
        cost = number(row.cost.epsilon), percent(share)
        table.add_row(row.study, row.unit, str(row.runs), str(row.reserved), *cost, row.last)
    out.print(table)
    for line in budget(ledger, policy):
        out.print(line, soft_wrap=True)


def budget(ledger: Ledger, policy: Policy) -> tuple[str, ...]:
    """Say what is spent and left in each unit, at which δ, and why ε don't add up and are two."""
    sentences = [account.sentence for account in accounts(ledger, policy)]
    return (*sentences, f"All ε are at δ = {policy.delta:g}. {ADDS_UP} {TWO_READERS}")


def budget_sentences(folder: Path) -> tuple[str, ...]:
    """The same of a site's folder; of a ledger that can't be read, why."""
    try:
        ledger = _ledger_of(folder)
        return ("nothing is spent yet",) if ledger is None else budget(ledger, Policy.load(folder))
    except LedgerError as error:
        return (str(error),)


def budget_json(folder: Path) -> list[dict[str, object]] | None:
    """The same for a script; empty without a ledger, None of one that can't be read."""
    try:
        ledger = _ledger_of(folder)
        found = accounts(ledger, Policy.load(folder)) if ledger else []
    except LedgerError:
        return None
    return [
        {
            "unit": each.unit,
            "epsilon_allowed": each.allowed.epsilon,
            "epsilon_spent": each.spent.epsilon,
            "epsilon_left": each.left.epsilon,
            "used": each.used,
            "more_like_the_last": each.more,
        }
        for each in found
    ]


def _ledger_of(folder: Path) -> Ledger | None:
    path = SiteConfig.load(folder).ledger
    return Ledger(path) if path.exists() else None


def verify_file(path: Path) -> str:
    """Check an exported ledger, whoever's it is; returns what was checked, in a sentence.

    Raises LedgerError if it can't be read, is not such a file, or was changed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"{path} can't be read ({error.strerror}); check the path.") from error
    return verify_export(data).sentence
