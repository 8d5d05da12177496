"""A wire that replays, cuts, flips, mixes up and forges every message."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from consortium.errors import ProtocolError
from consortium.secagg import CENTRE, seal
from tests.support.secagg_wire import Consortium, Wire, identity, run, snapshot, step_of

TAKES_MESSAGE = {
    "receive_advertisement",
    "receive_keys",
    "receive_share",
    "receive_shares",
    "receive_contribution",
    "unmask",
    "receive_unmasking",
}


@dataclass
class HostileWire(Wire):
    """Before every delivery, delivers what a hostile exchange might instead."""

    other_run: list[bytes] = field(default_factory=list)
    forgeries: int = 0

    def call(self, who: str, method: str, *arguments: Any) -> Any:
        if method not in TAKES_MESSAGE:
            return super().call(who, method, *arguments)
        *first, message = arguments
        # Seen again as what it isn't, or by whom it isn't for, every earlier message is hostile.
        for forgery in (*self.forge(message), *self.log):
            if forgery != message:
                self.refused(who, method, *first, forgery)
        result = super().call(who, method, *arguments)
        if method != "unmask":
            self.refused(who, method, *arguments)
        return result

    def forge(self, message: bytes) -> list[bytes]:
        flips = range(0, 8 * len(message), max(1, len(message) // 3))
        flipped = [bytearray(message) for _ in flips]
        for data, bit in zip(flipped, flips, strict=True):
            data[bit // 8] ^= 1 << bit % 8
        cut = [message[: len(message) * part // 4] for part in range(4)]
        long = [message + b"\x00", message + bytes(10**6)]
        resigned = [
            seal(identity("s3"), "study-1", name, "keys", 0, b"") for name in ("s0", CENTRE)
        ]
        elsewhere = self.other_run[len(self.log) - 1 : len(self.log)]
        return [*map(bytes, flipped), *cut, *long, *resigned, *elsewhere]

    def refused(self, who: str, method: str, *arguments: Any) -> None:
        machine = self.hub if who == CENTRE else self.parties[who]
        before = snapshot(machine)
        with pytest.raises(ProtocolError):
            step_of(machine, method)(*arguments)
        assert snapshot(machine) == before
        self.forgeries += 1


def test_a_hostile_exchange_changes_nothing() -> None:
    honest = run(Wire())
    other = run(Wire(Consortium(run="study-2")))
    hostile = run(HostileWire(other_run=other.log))
    assert hostile.log == honest.log
    assert hostile.forgeries > 1000


def test_messages_of_another_run_are_refused_for_their_run_alone() -> None:
    """Same sites, same keys, same step: only the run's name differs."""
    other = Consortium(run="study-2")
    hub = Consortium().hub()
    with pytest.raises(ProtocolError, match="study-2"):
        hub.setup.receive_advertisement(other.party("s0").setup.advertise(b""))
