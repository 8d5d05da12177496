"""The command line of a site: ``site-agent``."""

from consortium.base.command_line import run_program

# Each module adds its commands. The headings of the help have this order.
# isort: off
from site_agent.commands import members
from site_agent.commands import studies
from site_agent.commands import agent
from site_agent.commands import bids_app
from site_agent.commands.program import app, out
# isort: on

__all__ = ["agent", "app", "bids_app", "main", "members", "studies"]


def main() -> None:
    """Run the command line `site-agent`: an expected error is one sentence and exit code 1."""
    run_program("site-agent", app, out)
