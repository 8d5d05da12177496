"""Crashes: a machine built again from what was stored says the same."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from consortium.errors import ProtocolError, ThresholdError
from consortium.secagg import CENTRE
from tests.support.secagg_wire import Consortium, Wire, context, run, snapshot, step_of, vectors


@dataclass
class CrashingWire(Wire):
    """Builds each machine again, from its stored messages, before every single step."""

    history: list[tuple[str, str, tuple[Any, ...], Any]] = field(default_factory=list)

    def call(self, who: str, method: str, *arguments: Any) -> Any:
        steps = [step for step in self.history if step[0] == who]
        if who == CENTRE:
            self.hub = rebuilt_hub(self.consortium, steps)
        else:
            self.parties[who] = rebuilt_party(self.consortium, who, steps)
        result = super().call(who, method, *arguments)
        self.history.append((who, method, arguments, result))
        return result


Steps = list[tuple[str, str, tuple[Any, ...], Any]]


def rebuilt_party(consortium: Consortium, who: str, steps: Steps) -> Any:
    party = consortium.party(who)
    requests = {args[0]: args[1] for _, method, args, _ in steps if method == "unmask"}
    for _, method, args, result in steps:
        if method in ("receive_keys", "receive_shares"):
            assert step_of(party, method)(*args) == result
        if method == "contribute":
            party.restore(args[0], args[1], True, requests.get(args[0]))
            with pytest.raises(ProtocolError):
                party.contribute(*args)
    return party


def rebuilt_hub(consortium: Consortium, steps: Steps) -> Any:
    hub = consortium.hub()
    posted = {args[0]: result for _, method, args, result in steps if method == "request"}
    # The exchange returns a step's messages in another order than they came in.
    gathered = sorted(steps, key=lambda step: STEP_ORDER.index(step[1]))
    for _, method, args, result in _reversed_within(gathered):
        assert _same(step_of(hub, method)(*args), result)
        if method == "open" and args[0] in posted:
            hub.restore(args[0], posted[args[0]])
    return hub


STEP_ORDER = [
    "receive_advertisement",
    "keys",
    "receive_share",
    "shares",
    "open",
    "receive_contribution",
    "request",
    "receive_unmasking",
    "sum",
]


def _reversed_within(steps: Steps) -> Steps:
    return [step for name in STEP_ORDER for step in reversed(steps) if step[1] == name]


def _same(one: Any, other: Any) -> bool:
    return bool(snapshot(one) == snapshot(other))


def test_machines_that_crash_before_every_step_say_the_same() -> None:
    assert run(CrashingWire()).log == run(Wire()).log


def test_a_rebuilt_hub_waits_for_all_that_it_had_posted() -> None:
    """The minimum would do for a new request, but not for the one that was posted."""
    wire = Wire(Consortium(count=5)).set_up()
    wire.contribute(1, vectors(wire.parties, 8))
    posted = wire.hub.request(1)
    rebuilt = Wire(Consortium(count=5)).set_up()
    rebuilt.hub.open(1, context(1), 8, 32)
    rebuilt.hub.restore(1, posted)
    for data in wire.log[-5:-1]:
        rebuilt.hub.receive_contribution(data)
    with pytest.raises(ThresholdError, match="s4"):
        rebuilt.hub.request(1)
    rebuilt.hub.receive_contribution(wire.log[-1])
    assert rebuilt.hub.request(1) == posted


def test_a_hub_that_crashed_keeps_to_the_list_it_posted() -> None:
    """A contribution that came after the request was posted must not change the request."""
    wire = Wire().set_up()
    values = vectors(wire.parties, 8)
    wire.contribute(1, values, missing=["s2"])
    request = wire.hub.request(1)
    late = wire.parties["s2"].contribute(1, context(1), values["s2"])
    hub = wire.consortium.hub()
    stored = wire.log
    for data in stored[:4]:
        hub.setup.receive_advertisement(data)
    for data in stored[5:9]:
        hub.setup.receive_share(data)
    hub.open(1, context(1), 8, 32)
    hub.restore(1, request)
    with pytest.raises(ProtocolError, match="posted as lost"):
        hub.receive_contribution(late)
    for data in stored[13:15]:
        hub.receive_contribution(data)
    with pytest.raises(ProtocolError, match="s3"):
        hub.request(1)
    hub.receive_contribution(stored[15])
    with pytest.raises(ProtocolError, match="before them"):
        hub.restore(1, request)
    assert hub.request(1) == request
