"""Which flow runs a study's run has on Prefect, kept on disk for a start after a kill."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from prefect.client.orchestration import get_client

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.errors import OutputError
from flows.runs import UNHEARD, bury, cancelled


def take_over(notes: Path, run: str, now: Sequence[UUID]) -> bool:
    """End on Prefect what a killed start of a run left there, and keep the ids of this start.

    Parameters
    ----------
    run : str
        Of the study.
    now : sequence of UUID
        The flow runs of this start.

    Returns
    -------
    bool
        Whether somebody cancelled what was left.
    """
    found = False
    with suppress(*DAMAGED, *UNHEARD), get_client(sync_client=True) as client:
        known = json.loads(notes.read_text(encoding="utf-8"))
        left = [UUID(each) for each in known[run]]
        found = cancelled(client, left)
        bury(client, left)
    with suppress(OutputError):  # what the run itself writes there will say so
        write_bytes(notes, json.dumps({run: [str(each) for each in now]}).encode())
    return found
