"""The program that commands are added to, and what several of them take."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from consortium.base.command_line import Terminal, program

out = Terminal()
app = program(
    "A hospital's agent: takes part in the studies that its people approved. A site begins "
    "with init and join; each study is looked at and approved; the agent itself is start.",
    out,
)
Folder = Annotated[
    Path, typer.Option("--folder", "-f", help="The site's own folder.", envvar="SITE_FOLDER")
]
StudyFile = Annotated[Path, typer.Argument(help="Study file; its signature lies beside it.")]
RosterFile = Annotated[Path, typer.Option(help="Roster file, from the coordinator.")]
# Headings of the help.
ONCE, STUDIES, DAILY = "Becoming a member", "A study", "The agent"
ALONE = "Without a consortium"


def now() -> datetime:
    """Return the time, in the machine's zone."""
    return datetime.now().astimezone()
