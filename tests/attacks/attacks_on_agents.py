"""A hostile centre, or site, against the agents and the centre of a whole run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
from attack_kinds import Stage, attack
from mischief import NAMES, ask, opened, pump, rounds_of, settle, sign, write
from village import SITES, Village, conduct

from consortium.algorithms.base import Query
from consortium.errors import SiteError
from consortium.secagg import messages


def _unplanned(_real: object) -> Callable[..., Any]:
    return lambda plan, query, before: plan.stage(query.stage)


@attack(
    "hub",
    guard="site_agent.attendance:check_planned",
    without="a release that nobody planned is made, and charged, again and again",
    stops="has had its 1 planned rounds",
    instead=_unplanned,
)
def more_rounds_than_planned(stage: Stage) -> bool:
    """Asks for the second moments again, in a round that was planned for something else."""
    village = opened(settle(stage.root / "place"))
    for number in (1, 2):
        ask(village.place, Query("pca", "second_moment"), number)
        pump(village)
        if number == 1:
            closed = sign(village.place, "unmask", 1, _all_survive(village))
            write(village.place, NAMES.round(1, "unmask"), closed)
            pump(village)
    stage.said.append(village.said("north"))
    return 2 in rounds_of(village.place, "north")


def _all_survive(village: Village) -> bytes:
    party = village.agents["north"]._runs["small-0001"]._party  # type: ignore[union-attr]
    return messages.encode(messages.Request(party._rounds[1].context, SITES, ()))


@attack(
    "site",
    guard="consortium.engine.mailbox:_legible",
    without="the coordinator's terminal does what a site's refusal tells it to do",
    stops="west takes no further part",
    instead=lambda real: str,
)
def refusal_that_drives_a_terminal(stage: Stage) -> bool:
    """Refuses for a reason that is made of a terminal's control codes."""
    village = opened(settle(stage.root / "place"))
    body = msgspec.json.encode({"code": "data", "reason": "x\x1b[2J\x1b[31m"})
    write(village.place, NAMES.refusal("west"), sign(village.place, "refusal", 0, body, "west"))
    village.absent = set(SITES)
    with contextlib.suppress(SiteError):
        conduct(village.centre())
    stage.said.append(village.said("centre"))
    return "\x1b" in stage.said[0]
