"""Whole questions to a site: from a hostile centre, and with answers of hostile neighbours."""

import random
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import yaml

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Case, Query
from consortium.engine.names import Names
from consortium.engine.neighbour_answers import collect_answers, encode_broadcast, read_broadcast
from consortium.engine.queries import decode_query, encode_query, sketch_query
from consortium.engine.run_context import RunContext
from consortium.engine.session import check_planned, own_answers
from consortium.exchange.memory import MemoryExchange
from consortium.secagg import CENTRE, seal
from consortium.secagg.messages import BROADCAST
from consortium.simulation.simulation import Simulation
from consortium.study.plan import Plan, Stage
from consortium.study.reader import parse_study
from site_agent.run.message_store import MessageStore
from site_agent.run.neighbours import Neighbours
from site_agent.run.outbox import Outbox
from tests.long.fuzz_mutations import MSGPACK, Make, mutant
from tests.long.fuzz_run import CONTEXT, RUN, key_of, public_of
from tests.long.fuzz_targets import Target
from tests.support.cases import SITES, sites_for, study_of

_NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 7.0, 1e-9, 1e9, -1e9, 1e17, 1e154, -1e154, 5e-324),
    *(1e300, 1.7e308, -1.7e308, float("nan"), float("inf")),
)


def study_text(name: str, case: Case) -> str:
    """The study of an example, with all that it leaves to defaults."""
    return yaml.safe_dump(study_of(name, case).model_dump(mode="json", exclude_none=True))


@dataclass
class Asked:
    """A study as a site knows it, and everything that its centre asked in an honest run."""

    algorithm: str
    case: Case

    def __post_init__(self) -> None:
        self.sites = sites_for(self.case)
        simulation = Simulation(parse_study(study_text(self.algorithm, self.case)), self.sites, 1)
        session, self.queries = simulation.session, list[bytes]()
        while session.pending is not None:
            self.queries.append(encode_query(session.pending)[0])
            simulation.step()
        self.plan: Plan = simulation.plan
        self.told = [
            own_answers(self.plan.stage(done.stage).mechanism, done.values, done.survivors)
            for done in session.rounds
            if self.plan.stage(done.stage).release.released == "each"
        ]

    def answer(self, data: bytes) -> None:
        """Judge a question as an agent does, and answer it."""
        stage = check_planned(self.plan, sketch_query(data), ())
        query = decode_query(data, lambda _, size: bytes(min(size, 1 << 16)))
        if stage.release.neighbours:
            query = replace(
                query, neighbour_answers=collect_answers(self.plan, stage, 0, self.told)
            )
        self.compute(query, stage)

    def compute(self, query: Query, stage: Stage) -> None:
        """Work out the site's answer, which keeps to its bound whatever it was asked."""
        plan, bound = self.plan.analysis, stage.mechanism.bound
        local = plan.statistics[query.statistic]
        found = np.asarray(local(plan, self.sites[0], query, bound), dtype=np.float64)
        if found.size != stage.release.entries:
            raise AssertionError(f"{found.size} numbers")
        if not np.linalg.norm(found) <= bound.norm * (1 + 1e-6):
            raise AssertionError(f"norm {np.linalg.norm(found)}")


def misnumbered(bodies: list[bytes]) -> Make:
    """Make questions of the planned form with other numbers; one of four is out of form, too."""
    loose = mutant(bodies, MSGPACK, 0.8)

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.25:
            return loose(rng)
        tree = msgspec.msgpack.decode(rng.choice(bodies))
        said = [each for each in tree["arguments"].values() if "data" in each]
        for _ in range(rng.choice((1, 1, 2, 3)) if said else 0):
            changed = rng.choice(said)
            changed["data"] = _overwritten(changed["data"], rng)
        return msgspec.msgpack.encode(tree)

    return make


def _overwritten(data: bytes, rng: random.Random) -> bytes:
    """Some of the numbers of an array, or all of them, are others."""
    values = np.frombuffer(data, "<f8").copy()
    if rng.random() < 0.2:
        values *= rng.choice(_NUMBERS[2:15])
    for _ in range(rng.choice((0, 1, 2, 9))):
        values[rng.randrange(values.size)] = rng.choice(_NUMBERS)
    return values.tobytes()


def query_targets(folder: Path) -> list[Target]:
    """Questions of every analysis, and neighbours' answers."""
    return [_question_target(name) for name in REGISTRY] + _neighbour_targets(folder)


def _question_target(name: str) -> Target:
    """Questions of all examples of an analysis, each behind a byte that says of which."""
    asked = [Asked(name, case) for case in REGISTRY[name].cases]
    makes = [misnumbered(each.queries) for each in asked]

    def make(rng: random.Random) -> bytes:
        number = rng.randrange(len(asked))
        return bytes([number]) + makes[number](rng)

    return Target(f"question of {name}", 60_000, make, lambda data: asked[data[0]].answer(data[1:]))


class Hearing:
    """A site with two neighbours, of whom one means harm."""

    def __init__(self, folder: Path) -> None:
        self.asked = asked = Asked("admm", REGISTRY["admm"].cases[0])
        study = asked.plan.study
        keys = {name: public_of(name) for name in (*SITES, CENTRE)}
        self.context = RunContext(RUN, study, keys, "0" * 64, 5, "1" * 64)
        self.store = MessageStore(folder / "hearing.sqlite")
        self.stage = asked.plan.stages[0]
        self.query = decode_query(asked.queries[-1], lambda _, size: bytes(size))
        own = encode_broadcast(CONTEXT, self.vector, self.stage.mechanism.lattice.bits)
        self.store.save(RUN, f"1/{BROADCAST}", self.sealed(own, SITES[0]))

    @cached_property
    def vector(self) -> Array:
        """An answer as it travels."""
        lattice = self.stage.mechanism.lattice
        return np.arange(self.stage.release.entries, dtype=lattice.dtype)

    def sealed(self, body: bytes, site: str) -> bytes:
        """Sign an answer as a site does."""
        return seal(key_of(site), RUN, site, BROADCAST, 1, body)

    def hear(self, message: bytes) -> None:
        """Fetch a neighbour's answer from the exchange, and answer what follows from it."""
        exchange, names = MemoryExchange(), Names(RUN)
        exchange.put(names.round(1, BROADCAST, SITES[1]), message)
        post = Outbox(self.context, self.store, exchange)
        neighbours = Neighbours(self.asked.plan, 0, key_of(SITES[0]), post, lambda _: None)
        neighbours.note(1, self.stage, CONTEXT)
        heard = neighbours.collect(self.stage)
        self.asked.compute(replace(self.query, neighbour_answers=heard), self.stage)

    def bodies(self, loose: Make) -> Make:
        """Answers with other numbers, or malformed ones."""

        def make(rng: random.Random) -> bytes:
            if rng.random() < 0.5:
                return loose(rng)
            vector = np.frombuffer(rng.randbytes(self.vector.nbytes), self.vector.dtype)
            shifted, bits = (
                vector >> rng.randrange(8 * vector.itemsize),
                self.stage.mechanism.lattice.bits,
            )
            return encode_broadcast(CONTEXT, shifted, bits)

        return make


def _neighbour_targets(folder: Path) -> list[Target]:
    hearing = Hearing(folder)
    mechanism = hearing.stage.mechanism
    loose = mutant([encode_broadcast(CONTEXT, hearing.vector, mechanism.lattice.bits)], MSGPACK)
    bodies = hearing.bodies(loose)
    signed: Make = lambda rng: hearing.sealed(bodies(rng), SITES[1])  # noqa: E731
    return [
        Target(
            "neighbour's answer",
            500_000,
            loose,
            lambda data: read_broadcast(data, CONTEXT, mechanism, 1),
        ),
        Target("neighbour's answer, signed", 60_000, signed, hearing.hear),
    ]
