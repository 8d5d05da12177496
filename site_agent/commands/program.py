"""The program that commands are added to, and their common arguments."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import Terminal, program

out = Terminal()
app = program(
    "A hospital's agent, which takes part in approved studies. Begin a site with init and join. "
    "Check and approve each study. Run the agent with start.",
    out,
)
Folder = Annotated[
    Path, typer.Option("--folder", "-f", help="The site's own folder.", envvar="SITE_FOLDER")
]
StudyFile = Annotated[Path, typer.Argument(help="Study file; its signature is next to it.")]
RosterFile = Annotated[Path, typer.Option(help="Roster file, from the coordinator.")]
# Headings of the help.
ONCE = "Becoming a member"
STUDIES = "A study"
DAILY = "The agent"
ALONE = "Without a consortium"


def now() -> datetime:
    """Return the time for a command, in the machine's zone."""
    return datetime.now().astimezone()
