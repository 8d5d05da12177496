"""The relay as an algorithm of vantage6 4: ``central`` at the coordinator's node, ``sync`` at each.

A node mounts its folder as a database of type ``folder`` with the label ``exchange``. Every tick is
a container at every site, so a site waits long for files to send before it ends.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from typing import Any

from vantage6.algorithm.tools.decorators import algorithm_client
from vantage6.algorithm.tools.util import info

from cape_relay.folder import RelayError, folder_of
from cape_relay.sync import Hub, Message, answer

MOST = 8 << 20
"""Bytes of files in one message: they travel through a server's data base."""


@algorithm_client
def central(
    client: Any,
    only: Sequence[str],
    last: str,
    wait: float = 60.0,
    hours: float = 24.0,
    organizations: Sequence[Any] | None = None,
) -> str:
    """Ask all other organizations until the study's last message has been carried to each.

    Parameters
    ----------
    client : AlgorithmClient
    only : sequence of str
        Beginnings of the names that are carried.
    last : str
        Pattern of the name after which nothing is expected.
    wait : float
        Seconds that a party may wait for something to send.
    hours : float
        Time after which it ends in any case.
    organizations : sequence of int, optional
        Numbers of the organizations that take part (default: all others of the collaboration).

    Returns
    -------
    str
        Summary of the moved messages, in a line.

    Raises
    ------
    RelayError
        If a name has two contents, or a folder can't be used.
    """
    hub = Hub(folder_of(str(client.organization_id), only), last, MOST)
    found = organizations or [each["id"] for each in client.organization.list()]
    sites = [each for each in found if each != client.organization_id]
    end = time.monotonic() + 3600 * hours
    while time.monotonic() < end and not hub.over(map(str, sites)):
        asked = encoded(hub.request(min(wait, _FEW)))
        given = {"method": "sync", "kwargs": {"asked": asked, "only": list(only), "wait": wait}}
        task = client.task.create(input_=given, organizations=sites, name="sync")
        for said in client.wait_for_results(task_id=task["id"]):
            _take(hub, said)
    info(hub.summary())
    return hub.summary()


@algorithm_client
def sync(client: Any, asked: Any, only: Sequence[str], wait: float = 60.0) -> dict[str, Any]:
    """Write received messages to the site's folder, and return its new ones."""
    site = str(client.organization_id)
    try:
        said = answer(folder_of(site, only), decoded(asked), wait, most=MOST)
        return {"site": site, **encoded(said)}
    except RelayError as error:
        return {"site": site, "fault": str(error)}


_FEW = 2.0  # s that the coordinator's side waits: a tick is over when the sites have something


def _take(hub: Hub, said: Any) -> None:
    if not isinstance(said, Mapping):  # the container failed: it is asked again
        return
    site = str(said.get("site"))
    if "fault" in said:
        raise RelayError(f"organization {site}: {said['fault']}")
    hub.take(site, decoded(said))


def encoded(message: Message) -> dict[str, Any]:
    """Return a message in a form for JSON, which is a third larger."""
    files = {name: base64.b64encode(data).decode() for name, data in message["files"].items()}
    return {"files": files, "listing": message["listing"]}


def decoded(said: Any) -> dict[str, Any]:
    """Undo `encoded`. A malformed message stays malformed, and is rejected by its reader.

    Raises
    ------
    RelayError
        If a file is not in base64.
    """
    try:
        files = {
            name: base64.b64decode(text, validate=True) for name, text in said["files"].items()
        }
        return {"files": files, "listing": said["listing"]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RelayError(
            "The message over vantage6 is not a message of the relay. Have all nodes allow the "
            "same image."
        ) from error
