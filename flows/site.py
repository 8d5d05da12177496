"""A site's flow run, for a site with its own Prefect; others call the agent itself.

The site reports to its Prefect, and ignores its answers. Prefect's engine would obey them: it takes
states from the API's answers, waits as long as they ask, and unpickles a result from wherever they
point. So the run is shown as any other, but Prefect does not control the agent's work.

A separate process reports, which outlives a killed agent and reports its end.
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
_COMPLETED = "completed"
_FAILED = "failed"
_ANSWER = 15.0  # s; a server that does not answer in time gets no further report
_PATIENCE = 30.0  # s, for the last word of a process that a busy machine may still be starting
_DEAF = {PREFECT_CLIENT_MAX_RETRIES: 0}  # and no wait as long as the API requests
_STRICT = {"follow_redirects": False, "timeout": _ANSWER}


def agent_as_flow(site: str, work: Callable[[], None]) -> None:
    """Run an agent, shown as a flow run on the site's own Prefect.

    Raises ConfigurationError if no Prefect server is named.

    Parameters
    ----------
    site : str
        Name of the site, the only thing that Prefect shows. Not even an error's text is shown.
    work : callable
        The agent's own installed code; its errors are raised here.
    """
    url = PREFECT_API_URL.value()
    if not url:
        raise ConfigurationError(
            "site.yaml asks for a Prefect and none is named. Set PREFECT_API_URL or prefect: false."
        )
    # Not from the working directory, which may contain another package named flows.
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
    """Yield the states of the agent, which writes one word, or none if it is killed."""
    yield Running()
    states: dict[str, State[None]] = {_COMPLETED: Completed(), _FAILED: Failed()}
    yield states.get(sys.stdin.read(), Crashed(message="The agent was killed."))


def _tell(site: str, states: Iterator[State[None]]) -> None:
    """Send states; a Prefect that is absent or faulty gets no further report."""
    with (
        suppress(Exception),  # whatever the API answered, the site's work continues
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
        signal.signal(each, signal.SIG_IGN)  # meant for the agent, whose last word is expected
    _tell(sys.argv[1], _states())
