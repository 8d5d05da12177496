"""What studies have cost here, in the terminal, and what somebody's exported ledger shows."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from consortium.errors import LedgerError
from site_agent.ledger.export import verify_export
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.totals import accounts, studies
from site_agent.policy.policy import Policy


def print_accounts(ledger: Ledger, policy: Policy, out: Console) -> None:
    """Show every study's cost and what is left to whoever was charged most."""
    table = Table("study", "unit", "runs", "rounds", "ε", "μ", "last")
    for row in studies(ledger.entries(), policy):
        cost = f"{row.cost.epsilon:.3f}", f"{row.cost.mu:.4f}"
        table.add_row(row.study, row.unit, str(row.runs), str(row.reserved), *cost, row.last)
    out.print(table)
    for account in accounts(ledger, policy):
        out.print(
            f"Unit {account.unit}, whoever was charged most: ε = {account.spent.epsilon:.3f} of "
            f"{account.allowed.epsilon:g} spent at δ = {policy.delta:g} (against outsiders "
            f"{account.outsider.epsilon:.3f}); one more study of ε = {account.left.epsilon:.3f} "
            "would use it up.",
            soft_wrap=True,
        )


def verify_file(path: Path) -> str:
    """Check an exported ledger, whoever's it is; returns what was checked, in a sentence.

    Raises
    ------
    LedgerError
        If it can't be read, is not such a file, or was changed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"{path} can't be read ({error.strerror}); check the path.") from error
    return verify_export(data).sentence
