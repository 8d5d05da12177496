"""A hostile centre, or site, against the agents and the centre of a whole run."""

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from consortium.algorithms.base import Query
from consortium.errors import SiteError
from consortium.secagg import messages
from tests.attacks.attack_kinds import Stage, attack
from tests.support.forgery import (
    NAMES,
    ask,
    manifests,
    opened,
    pump,
    rounds_of,
    settle,
    sign,
    write,
)
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, conduct


def _unplanned(_real: object) -> Callable[..., Any]:
    return lambda plan, query, before: plan.stage(query.stage)


@attack(
    "hub",
    guard="site_agent.run.rounds:check_planned",
    without="a release that was not planned is made, and charged, repeatedly",
    stops="has had its 1 planned rounds",
    instead=_unplanned,
)
def more_rounds_than_planned(stage: Stage) -> bool:
    """Asks for the second moments again, in a round that was planned for another statistic."""
    text = STUDY.replace(
        "rounds: 2,", "rounds: 2, pca_share: 0.4,"
    )  # so that the price covers both
    local = opened(settle(stage.root / "place", text=text))
    for number in (1, 2):
        ask(local.place, Query("pca", "second_moment"), number)
        pump(local)
        if number == 1:
            closed = sign(local.place, "unmask", 1, _all_survive(local))
            write(local.place, NAMES.round(1, "unmask"), closed)
            pump(local)
    stage.said.append(local.said("north"))
    return 2 in rounds_of(local.place, "north")


def _all_survive(local: LocalConsortium) -> bytes:
    party = local.agents["north"]._runs["small-0001"].rounds._party  # type: ignore[union-attr]
    about = party._rounds[1].context
    return messages.encode(messages.Request(about, SITES, (), manifests(local.place, SITES, about)))


@attack(
    "site",
    guard="consortium.engine.mailbox:printable",
    without="the coordinator's terminal executes the codes of a site's refusal",
    stops="west takes no further part",
    instead=lambda real: lambda text, most: str(text),
)
def refusal_that_drives_a_terminal(stage: Stage) -> bool:
    """Refuses for a reason that consists of a terminal's control codes."""
    local = opened(settle(stage.root / "place"))
    body = msgspec.json.encode({"code": "data", "reason": "x\x1b[2J\x1b[31m"})
    write(local.place, NAMES.refusal("west"), sign(local.place, "refusal", 0, body, "west"))
    local.absent = set(SITES)
    with contextlib.suppress(SiteError):
        conduct(local.centre())
    stage.said.append(local.said("centre"))
    return "\x1b" in stage.said[0]
