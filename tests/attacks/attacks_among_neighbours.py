"""Attacks on what sites say to each other, for analyses without a centre."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

from consortium.algorithms.base import Query
from consortium.engine.neighbour_answers import encode_broadcast
from consortium.engine.run_context import RunContext
from consortium.exchange import MemoryExchange
from consortium.secagg import CENTRE, seal
from consortium.secagg.messages import BROADCAST
from consortium.study.plan import make_plan
from site_agent.layout import STORE
from site_agent.run.message_store import MessageStore
from site_agent.run.neighbours import Neighbours
from site_agent.run.outbox import Outbox
from tests.attacks.attack_kinds import Stage, always, attack
from tests.support.cases import PLAIN, make_feature_sites, make_feature_study, shape_of
from tests.support.forgery import NAMES, ask, opened, path_of, pump, settle
from tests.support.gossip_algorithm import TEXT, register
from tests.support.secagg_wire import identity, public

_FROM_THE_START = 12  # looks at the exchange, for an agent that was built again
_RUN, _QUESTION, _OTHER = "small-0001", bytes(32), b"o" * 32


@dataclass(frozen=True)
class _Ear:
    """North after round 1 of ADMM; what lies on the exchange as east's answer is the attacker's."""

    neighbours: Neighbours
    stage: Any
    exchange: MemoryExchange
    place: str

    def believes(self, sender: str, question: bytes) -> bool:
        """Whether north takes an answer of ones to a question for east's."""
        mechanism = self.stage.mechanism
        ones = np.ones(mechanism.entries, mechanism.lattice.dtype)
        body = encode_broadcast(question, ones, mechanism.lattice.bits)
        self.exchange.put(self.place, seal(identity(sender), _RUN, sender, BROADCAST, 1, body))
        return bool(self.neighbours.collect(self.stage).answers[0, 1].any())


def _ear(stage: Stage) -> _Ear:
    study = make_feature_study("admm", PLAIN, {"target": "y", "rounds": 3})
    plan = make_plan(study, shape_of(make_feature_sites(PLAIN, persons=(300,) * 4)))
    keys = {name: public(name) for name in (*study.sites, CENTRE)}
    exchange = MemoryExchange()
    post = Outbox(
        RunContext(_RUN, study, keys, "0" * 64, 10),
        MessageStore(stage.root / "store.sqlite"),
        exchange,
    )
    neighbours = Neighbours(plan, 0, identity("north"), post, stage.said.append)
    neighbours.note(1, plan.stages[0], _QUESTION)
    return _Ear(neighbours, plan.stages[0], exchange, post.names.round(1, BROADCAST, "east"))


def _gullible(_real: object) -> Callable[..., bytes]:
    return lambda post, message, *_, **__: msgspec.msgpack.decode(message)[5]


@attack(
    "site",
    guard="site_agent.run.outbox:Outbox.signed",
    without="neighbours use numbers that their sender never sent",
    stops="as east's answer to round 1 is ignored: .* says sender 'west' where 'east' is due",
    instead=_gullible,
)
def answer_in_a_neighbours_name(stage: Stage) -> bool:
    """Replaces another site's answer to its neighbours by its own."""
    return _ear(stage).believes("west", _QUESTION)


def _to_whatever(real: Callable[..., Any]) -> Callable[..., Any]:
    def read(body: bytes, _context: bytes, mechanism: Any, site: int) -> Any:
        return real(body, msgspec.msgpack.decode(body)["context"], mechanism, site)

    return read


@attack(
    "hub",
    guard="site_agent.run.neighbours:read_broadcast",
    without="an answer to one question is used as the answer to another",
    stops="as east's answer to round 1 is ignored: A broadcast answers another question",
    instead=_to_whatever,
)
def other_question_to_a_neighbour(stage: Stage) -> bool:
    """Sends a site another query than its neighbours, which then receive its answer."""
    return _ear(stage).believes("east", _OTHER)


@attack(
    "exchange",
    guard="site_agent.run.charges:Charges.commit",
    without="a round is answered twice, with two noises, for one charge",
    stops="is charged in the ledger, but its answer is no longer stored here",
    instead=always(True),
)
def neighbour_kept_from_a_restored_site(stage: Stage) -> bool:
    """Sends a query again to a site with restored messages, and hides a neighbour's answer."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        local = opened(settle(stage.root / "place", text=TEXT))
        place, store = local.place, local.place.site("north") / STORE
        ask(place, Query("talk", "gossip"), 1)
        pump(local)
        local.agents.pop("north").site.store.close()
        backup = shutil.copy(store, stage.root / "backup.sqlite")
        ask(place, Query("talk", "gossip"), 2)
        pump(local, _FROM_THE_START)
        said = path_of(place, NAMES.round(2, BROADCAST, "north"))
        first = said.read_bytes()
        local.agents.pop("north").site.store.close()
        for file in store.parent.glob(f"{STORE}*"):
            file.unlink()
        shutil.copy(backup, store)
        answer = NAMES.round(2, "contribution", "north")
        for taken in (answer, NAMES.round(1, BROADCAST, "east")):
            path_of(place, taken).unlink()
        said.unlink()
        pump(local, _FROM_THE_START)
        stage.said.append(local.said("north"))
    with contextlib.suppress(FileNotFoundError):
        return said.read_bytes() != first
    return False
