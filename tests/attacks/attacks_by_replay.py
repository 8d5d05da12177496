"""Messages with good signatures in places that they were not meant for."""

from collections.abc import Callable

from consortium.engine.names import END, QUERY, START
from consortium.engine.run_context import RunContext, start_notice
from consortium.exchange import MemoryExchange
from consortium.secagg import CENTRE, seal
from consortium.study.reader import parse_study
from site_agent.run.message_store import MessageStore
from site_agent.run.outbox import Outbox
from tests.attacks.attack_kinds import Attack, Attacker, Stage, attack, nothing
from tests.support.secagg_wire import identity, public

_STUDY = (
    "study: small\nsites: [north, east, south, west]\n"
    "participants: {north: 10, east: 10, south: 10, west: 10}\nalgorithm: average\n"
    "privacy: {epsilon: 8, delta: 1.0e-5, colluding_sites: 0}\ndata: {detrend: none}\n"
)
_END = b'{"outcome": "complete"}'


def _post(stage: Stage, run: str) -> Outbox:
    study = parse_study(_STUDY)
    keys = {name: public(name) for name in (*study.sites, CENTRE)}
    context = RunContext(run, study, keys, "0" * 64, 10)
    return Outbox(context, MessageStore(stage.root / "store.sqlite"), MemoryExchange())


def _replay(
    attacker: Attacker, said: str, without: str
) -> Callable[[Callable[[Stage], bool]], Attack]:
    """Make an attack that the header of every envelope must stop."""
    return attack(
        attacker,
        guard="consortium.secagg.envelope:_check",
        without=without,
        stops=f"says {said}",
        instead=nothing,
    )


@_replay("exchange", "run 'small-0001' where 'small-0002' is due", "the new run ends at once")
def message_of_another_run(stage: Stage) -> bool:
    """Replaces the signed end of a run by that of an earlier one."""
    old = seal(identity(CENTRE), "small-0001", CENTRE, END, 0, _END)
    return _post(stage, "small-0002").signed(old, END, 0, 1 << 10) == _END


@_replay("exchange", "round '1' where 2 is due", "a question is answered a second time")
def message_of_another_round(stage: Stage) -> bool:
    """Replaces the query of round 2 by that of round 1."""
    old = seal(identity(CENTRE), "small-0001", CENTRE, QUERY, 1, b"query")
    return _post(stage, "small-0001").signed(old, QUERY, 2, 1 << 10) == b"query"


@_replay("exchange", "kind 'start' where 'end' is due", "a notice is taken for another")
def message_of_another_kind(stage: Stage) -> bool:
    """Replaces the run's end by the list of its sites."""
    body = start_notice(("north", "east"))
    other = seal(identity(CENTRE), "small-0001", CENTRE, START, 0, body)
    return _post(stage, "small-0001").signed(other, END, 0, 1 << 10) == body


@_replay("site", "sender 'east' where 'centre' is due", "any site can end or steer a run")
def site_that_speaks_as_the_centre(stage: Stage) -> bool:
    """Signs a run's end with its own key and posts it instead of the centre's."""
    own = seal(identity("east"), "small-0001", "east", END, 0, _END)
    return _post(stage, "small-0001").signed(own, END, 0, 1 << 10) == _END
