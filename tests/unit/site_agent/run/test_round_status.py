"""Whether an answer comes too late: what is asked, and what nobody else can say."""

from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.engine.closing import end_notice
from consortium.engine.names import END, Names
from consortium.exchange.memory import MemoryExchange
from consortium.secagg import CENTRE, seal
from consortium.secagg.messages import UNMASK
from site_agent.run.outbox import Outbox
from site_agent.run.rounds import RoundStatus

RUN, NAMES = "small-0001", Names("small-0001")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
STAGE = SimpleNamespace(mechanism=SimpleNamespace(masked_entries=3), message_bytes=100, heard=0)
ASKED: Any = SimpleNamespace(number=1, stage=STAGE)


class Place:
    """A site's view of one round."""

    def __init__(self) -> None:
        self.exchange = MemoryExchange()
        keys = {CENTRE: KEY.public_key().public_bytes_raw()}
        context = SimpleNamespace(run=RUN, keys=keys)
        sizes = SimpleNamespace(request=lambda *_: 1000)
        site: Any = SimpleNamespace(exchange=self.exchange)
        outbox = Outbox(context, None, self.exchange)  # type: ignore[arg-type]
        self.status = RoundStatus(site, SimpleNamespace(context=context, sizes=sizes), outbox)  # type: ignore[arg-type]

    def post(self, name: str, kind: str, number: int, body: bytes = b"sites") -> None:
        self.exchange.put(name, seal(KEY, RUN, CENTRE, kind, number, body))

    def end(self) -> None:
        self.post(NAMES.end(), END, 0, end_notice())

    def close(self) -> None:
        self.post(NAMES.round(1, UNMASK), UNMASK, 1)

    def over(self) -> bool:
        return self.status.is_over(ASKED)


@pytest.mark.parametrize("how", ["end", "close"])
def test_what_ended_since_it_was_asked_is_seen_at_once(how: str) -> None:
    place = Place()
    assert not place.over()
    getattr(place, how)()
    assert place.over()


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_what_somebody_leaves_as_the_end_hides_no_closed_round(size: int) -> None:
    place = Place()
    place.exchange.put(NAMES.end(), bytes(size))
    place.close()
    assert place.over()


def test_what_somebody_leaves_as_the_request_closes_nothing() -> None:
    place = Place()
    place.exchange.put(NAMES.round(1, UNMASK), bytes(10))
    assert not place.over()
