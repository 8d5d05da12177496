"""A site's flow run, for a site whose owner runs a Prefect; others call the agent itself.

The site tells its Prefect, and listens to nothing that it says. Prefect's engine would: it takes
states from the API's answers, waits as long as they ask, and unpickles a result from wherever they
point. So the run is shown as Prefect shows any, but the agent's work is not in its hands.

Who tells is a process of its own, which outlives an agent that is killed and says so.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID

from prefect import State
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)
from prefect.states import Completed, Crashed, Failed, Running

from consortium.errors import ConfigurationError

_FLOW = "site-agent"
_COMPLETED, _FAILED = "completed", "failed"
_ANSWER = 15.0  # s; who does not answer in that is told no more
_PATIENCE = 30.0  # s, for the last word of a process that a busy machine may still be starting
_DEAF = {PREFECT_CLIENT_MAX_RETRIES: 0}  # nor waits as long as asked
_STRICT = {"follow_redirects": False, "timeout": _ANSWER}


def agent_as_flow(site: str, work: Callable[[], None]) -> None:
    """Let an agent work, shown as a flow run on the site's own Prefect.

    Raises ConfigurationError if no Prefect server is named.

    Parameters
    ----------
    site : str
        Shown by Prefect; nothing else is, an error's text neither.
    work : callable
        The agent's own installed code; what it raises is raised here.
    """
    url = PREFECT_API_URL.value()
    if not url:
        raise ConfigurationError(
            "site.yaml asks for a Prefect and none is named; set PREFECT_API_URL or prefect: false."
        )
    # Not from the folder that it is started in: there may be flows of somebody else.
    teller = subprocess.Popen(  # noqa: S603 - this very file
        [sys.executable, "-P", "-m", "flows.site", site],
        env={**os.environ, "PREFECT_API_URL": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    last = _FAILED
    try:
        work()
        last = _COMPLETED
    finally:
        with suppress(OSError, subprocess.TimeoutExpired):
            teller.communicate(last, timeout=_PATIENCE)
        teller.kill()
        teller.wait()


def _states() -> Iterator[State[None]]:
    """What becomes of the agent: it writes one word, or none if it is killed."""
    yield Running()
    states: dict[str, State[None]] = {_COMPLETED: Completed(), _FAILED: Failed()}
    yield states.get(sys.stdin.read(), Crashed(message="The agent was killed."))


def _tell(site: str, states: Iterator[State[None]]) -> None:
    """Hand states over; a Prefect that is away or talks nonsense is told no more."""
    with (
        suppress(Exception),  # whatever the API answered, the site's work goes on
        temporary_settings(_DEAF),
        get_client({**_STRICT}, sync_client=True) as client,
    ):
        run = None
        for state in states:
            run = _record(client, site, run, state)


def _record(client: SyncPrefectClient, site: str, run: UUID | None, state: State[None]) -> UUID:
    if run is None:
        flow = str(client.create_flow_from_name(_FLOW))
        new = {"flow_id": flow, "name": site, "parameters": {"site": site}}
        answer = client.request("POST", "/flow_runs/", json={**new, "state": {"type": "PENDING"}})
        run = UUID(answer.json()["id"])
    said = {"type": state.type.value, "name": state.name, "message": state.message}
    request = {"state": said, "force": True}
    client.request("POST", "/flow_runs/{id}/set_state", path_params={"id": run}, json=request)
    return run


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # meant for the agent, whose last word is awaited
    _tell(sys.argv[1], _states())
