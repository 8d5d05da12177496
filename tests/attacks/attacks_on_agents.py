"""A hostile centre, or site, against the agents and the centre of a whole run."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from consortium.algorithms.base import Query
from consortium.errors import SiteError
from consortium.secagg import messages
from consortium.simulation.dataset import start_derivatives
from tests.attacks.attack_kinds import Stage, attack
from tests.support.forgery import (
    NAMES,
    ask,
    manifests,
    opened,
    path_of,
    pump,
    rounds_of,
    settle,
    sign,
    write,
)
from tests.support.local_consortium import SITES, LocalConsortium, build, conduct


def _unplanned(_real: object) -> Callable[..., Any]:
    return lambda plan, query, before: plan.stage(query.stage)


@attack(
    "hub",
    guard="site_agent.run.rounds:check_planned",
    without="a release that nobody planned is made, and charged, again and again",
    stops="has had its 1 planned rounds",
    instead=_unplanned,
)
def more_rounds_than_planned(stage: Stage) -> bool:
    """Asks for the second moments again, in a round that was planned for something else."""
    local = opened(settle(stage.root / "place"))
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


def _make_tables(folder: Path, subjects: int) -> None:
    labels = [f"{number:02d}" for number in range(subjects)]
    rows = [f"sub-{label}\t0.5\t-0.5\tpatient\tnegative\n" for label in labels]
    for site in SITES:
        start_derivatives(folder / site / "bids", "made-up tables", labels)
        text = "participant_id\ts1\ts2\tgroup\thiv\n" + "".join(rows)
        (folder / site / "bids" / "participants.tsv").write_text(text)


_ONE_PERSON = """\
study: small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {persons: {s1: {low: 0.5, high: 0.5}, group: {levels: [patient]}}}
features:
  - {name: scales, source: table, columns: {"s[1-2]": {low: -1, high: 1}}}
privacy: {epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: average
timing: {join: 4, answer: 4}
"""


def _anything_goes(_real: object) -> Callable[..., None]:
    return lambda *_asked: None


@attack(
    "hub",
    guard="site_agent.ledger.reader:check_sizes",
    without="the public number of a site's persons says whether one whom the rules describe is a "
    "patient there",
    stops="field 'fewest_subjects_chosen': the study asks for",
    instead=_anything_goes,
)
def study_of_a_single_person(stage: Stage) -> bool:
    """Has people approve a study whose rules fit one person, and reads how many there are."""
    local = LocalConsortium(
        build(stage.root / "place", text=_ONE_PERSON, subjects=1, make=_make_tables)
    )
    with contextlib.suppress(SiteError):
        local.centre().open()
    stage.said.append(local.said("north"))
    return path_of(local.place, NAMES.setup("advertise", "north")).exists()


@attack(
    "site",
    guard="consortium.engine.mailbox:printable",
    without="the coordinator's terminal does what a site's refusal tells it to do",
    stops="west takes no further part",
    instead=lambda real: lambda text, most: str(text),
)
def refusal_that_drives_a_terminal(stage: Stage) -> bool:
    """Refuses for a reason that is made of a terminal's control codes."""
    local = opened(settle(stage.root / "place"))
    body = msgspec.json.encode({"code": "data", "reason": "x\x1b[2J\x1b[31m"})
    write(local.place, NAMES.refusal("west"), sign(local.place, "refusal", 0, body, "west"))
    local.absent = set(SITES)
    with contextlib.suppress(SiteError):
        conduct(local.centre())
    stage.said.append(local.said("centre"))
    return "\x1b" in stage.said[0]
