"""A second copy of a site's folder at work, or one put back from a backup."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consortium.algorithms.base import Array, Query
from consortium.errors import CopyError
from consortium.secagg import messages
from site_agent.layout import LEDGER, STORE
from site_agent.run import rounds
from tests.attacks.attack_kinds import Stage, always, attack, nothing
from tests.support.forgery import NAMES, ask, manifests, opened, path_of, pump, settle, sign, write
from tests.support.local_consortium import SITES, LocalConsortium

_FROM_THE_START = 12  # looks at the exchange, for an agent that was built again
_QUERY = Query("pca", "second_moment")


def _stop(local: LocalConsortium) -> None:
    """End north's agent, with its files closed."""
    agent = local.agents.pop("north")
    agent.site.store.close()
    agent.site.ledger.close()


def _put_back(source: Path, folder: Path, *names: str) -> None:
    """Put files of a site's folder back as they were."""
    for name in names:
        for file in folder.glob(f"{name}*"):
            file.unlink()
        for file in source.glob(f"{name}*"):
            shutil.copy(file, folder)


def _unmask(local: LocalConsortium, lost: str | None) -> None:
    """Write the hub's request for round 1 over the one before."""
    survivors = tuple(site for site in SITES if site != lost)
    party = local.agents["east"]._runs["small-0001"].rounds._party  # type: ignore[union-attr]
    about = party._rounds[1].context
    shown = manifests(local.place, survivors, about)
    body = messages.Request(about, survivors, (lost,) if lost else (), shown)
    request = sign(local.place, "unmask", 1, messages.encode(body))
    write(local.place, NAMES.round(1, "unmask"), request)


@attack(
    "exchange",
    guard="site_agent.run.outbox:Outbox._check_copy",
    without="two lists of survivors are answered: the difference of two sums is one site's vector",
    stops="contains another answer signed with this site's key",
    instead=nothing,
)
def copy_asked_for_another_list(stage: Stage) -> bool:
    """Shows a copy of a site's folder another list of survivors, and deletes the first answer."""
    local = opened(settle(stage.root / "place", dropouts=1))
    local.absent = {"west"}
    folder, copy = local.place.site("north"), stage.root / "copy"
    ask(local.place, _QUERY)
    pump(local)
    _stop(local)
    shutil.copytree(folder, copy)
    _unmask(local, "west")
    pump(local, _FROM_THE_START)
    said = path_of(local.place, NAMES.round(1, "unmasking", "north"))
    first = said.read_bytes()
    _stop(local)
    _put_back(copy, folder, STORE, LEDGER)
    local.absent = {"east", "south", "west"}
    _unmask(local, None)
    with contextlib.suppress(CopyError):
        pump(local, _FROM_THE_START)
    said.unlink()
    _stop(local)
    with _heard(stage):  # a restart changes nothing
        pump(local, _FROM_THE_START)
    return said.exists() and said.read_bytes() != first


@contextlib.contextmanager
def _heard(stage: Stage) -> Iterator[None]:
    try:
        yield
    except CopyError as error:
        stage.said.append(str(error))


def _another_processors(real: Callable[..., Array]) -> Callable[..., Array]:
    """Compute every number a last digit larger."""
    return lambda *args: np.nextafter(real(*args), 0.0)


@attack(
    "exchange",
    guard="site_agent.run.charges:Charges.commit",
    without="one round is answered with two noises, and their difference reveals data",
    stops="is charged in the ledger, but its answer is no longer stored here",
    instead=always(True),
)
def store_put_back_on_another_processor(stage: Stage) -> bool:
    """Sends a query again to a site with restored messages, on another processor."""
    local = opened(settle(stage.root / "place"))
    folder, backup = local.place.site("north"), stage.root / "backup"
    _stop(local)
    shutil.copytree(folder, backup)
    ask(local.place, _QUERY)
    pump(local, _FROM_THE_START)
    said = path_of(local.place, NAMES.round(1, "contribution", "north"))
    first = said.read_bytes()
    _stop(local)
    _put_back(backup, folder, STORE)
    said.unlink()
    with pytest.MonkeyPatch.context() as patch:
        real: Any = rounds.local_statistic
        patch.setattr(rounds, "local_statistic", _another_processors(real))
        pump(local, _FROM_THE_START)
    stage.said.append(local.said("north"))
    return said.exists() and said.read_bytes() != first
