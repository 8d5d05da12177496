"""The command line of the coordinator: ``consortium``."""

from consortium.base.command_line import run_program

# Each adds its commands; the headings of the help come in this order.
# isort: off
from consortium.coordinator.commands import members
from consortium.coordinator.commands import studies
from consortium.coordinator.commands import results
from consortium.coordinator.commands.program import app, out
# isort: on

__all__ = ["app", "main", "members", "results", "studies"]


def main() -> None:
    """Run the command line `consortium`: an expected error is one sentence and exit code 1."""
    run_program("consortium", app, out)
