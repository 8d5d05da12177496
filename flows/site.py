"""A site's flow run, for a site whose owner runs a Prefect; others call the agent itself.

The site tells its Prefect, and listens to nothing that it says. Prefect's engine would: it takes
states from the API's answers, waits as long as they ask, and unpickles a result from wherever they
point. So the run is shown as Prefect shows any, but the agent's work is not in its hands.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from uuid import UUID

from prefect import State
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)
from prefect.states import Completed, Failed, Running

from consortium.errors import ConfigurationError

_FLOW = "site-agent"
_PATIENCE = 10.0  # s, for the last word
_DEAF = {PREFECT_CLIENT_MAX_RETRIES: 0}  # nor waits as long as asked
_STRICT = {"follow_redirects": False, "timeout": _PATIENCE}


def attend(site: str, work: Callable[[], None]) -> None:
    """Let an agent work, shown as a flow run on the site's own Prefect.

    Parameters
    ----------
    site : str
        Shown by Prefect; nothing else is, an error's text neither.
    work : callable
        The agent's own installed code; what it raises is raised here.

    Raises
    ------
    ConfigurationError
        If no Prefect server is named.
    """
    if not PREFECT_API_URL.value():
        raise ConfigurationError(
            "site.yaml asks for a Prefect and none is named; set PREFECT_API_URL or prefect: false."
        )
    states: queue.Queue[State[None] | None] = queue.Queue()
    context = contextvars.copy_context()  # Prefect's settings are in it
    teller = threading.Thread(target=context.run, args=(_tell, site, states), daemon=True)
    teller.start()
    states.put(Running())
    try:
        work()
    except BaseException:
        states.put(Failed())
        raise
    else:
        states.put(Completed())
    finally:
        states.put(None)
        teller.join(_PATIENCE)


def _tell(site: str, states: queue.Queue[State[None] | None]) -> None:
    """Hand states over until None; a Prefect that is away or talks nonsense is told no more."""
    try:
        with temporary_settings(_DEAF), get_client({**_STRICT}, sync_client=True) as client:
            run = None
            while (state := states.get()) is not None:
                run = _record(client, site, run, state)
    except Exception:  # whatever the API answered, the site's work goes on
        return


def _record(client: SyncPrefectClient, site: str, run: UUID | None, state: State[None]) -> UUID:
    if run is None:
        flow = str(client.create_flow_from_name(_FLOW))
        new = {"flow_id": flow, "name": site, "parameters": {"site": site}}
        answer = client.request("POST", "/flow_runs/", json={**new, "state": {"type": "PENDING"}})
        run = UUID(answer.json()["id"])
    told = {"state": {"type": state.type.value, "name": state.name}, "force": True}
    client.request("POST", "/flow_runs/{id}/set_state", path_params={"id": run}, json=told)
    return run
