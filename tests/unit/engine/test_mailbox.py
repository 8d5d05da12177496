"""The centre's post: which places are read, whatever lists say."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consortium.engine.clock import WaitFile, Waiting
from consortium.engine.mailbox import AwaitedMessages, Mailbox
from consortium.errors import ExchangeError
from consortium.exchange.memory import MemoryExchange
from tests.support.local_consortium import Ticks

SITES = [f"s{number}" for number in range(12)]
FOLDER = "runs/small-0001/rounds/1/contributions"
PLACES = {site: f"{FOLDER}/{site}" for site in SITES}


class Lying(MemoryExchange):
    """An exchange whose lists are another's."""

    def __init__(self, listed: list[str] | None) -> None:
        super().__init__()
        self.listed, self.lists, self.reads = listed, 0, 0

    def children(self, prefix: str) -> list[str]:
        self.lists += 1
        if self.listed is None:
            raise ExchangeError("no lists today. Try again.")
        return self.listed

    def get(self, name: str, limit: int) -> bytes | None:
        self.reads += 1
        return super().get(name, limit)


def mailbox(exchange: MemoryExchange, folder: Path, ticks: Ticks | None = None) -> Mailbox:
    clock = (ticks or Ticks()).clock()
    timing = SimpleNamespace(answer=5.0, late=1.0)
    study = SimpleNamespace(sites=SITES, timing=timing)
    context = SimpleNamespace(run="small-0001", study=study)
    made: Any = Mailbox(context, None, exchange, clock, WaitFile(folder, clock.now), lambda _: None)  # type: ignore[arg-type]
    made.notices.look = lambda **_: None
    return made


def collected(exchange: MemoryExchange, folder: Path) -> set[str]:
    for site, place in PLACES.items():
        exchange.put(place, site.encode())
    wanted = AwaitedMessages.within(5.0, "round 1", PLACES, 10, bytes.decode)
    return set(mailbox(exchange, folder).collect(wanted))


@pytest.mark.parametrize("listed", [[], None, [f"flood{n}" for n in range(1000)]])
def test_a_list_that_hides_messages_keeps_nobody_out(
    listed: list[str] | None, tmp_path: Path
) -> None:
    assert collected(Lying(listed), tmp_path) == set()


def test_a_folder_that_was_flooded_is_not_listed_again(tmp_path: Path) -> None:
    exchange = Lying([f"flood{n}" for n in range(1000)])
    wanted = AwaitedMessages.within(2.0, "round 1", PLACES, 10, bytes.decode)
    assert set(mailbox(exchange, tmp_path).collect(wanted)) == set(SITES)
    assert exchange.lists == 1


def test_of_many_messages_only_those_there_are_read(tmp_path: Path) -> None:
    exchange = Lying(SITES[:2])
    box = mailbox(exchange, tmp_path)
    assert box._there(PLACES) == [PLACES["s0"], PLACES["s1"]]
    assert exchange.reads == 0


@pytest.mark.parametrize("sites", [1, 7, 12])
def test_a_centre_that_slept_past_the_deadline_loses_nobody(sites: int, tmp_path: Path) -> None:
    exchange, ticks = MemoryExchange(), Ticks()
    places = {site: PLACES[site] for site in SITES[:sites]}
    box = mailbox(exchange, tmp_path, ticks)

    def oversleep(_: Waiting) -> None:
        for site, place in places.items():
            exchange.put(place, site.encode())
        ticks.now += 600.0

    box.wait_file.listen(oversleep)
    assert box.collect(AwaitedMessages.within(5.0, "round 1", places, 10, bytes.decode)) == []
    assert ticks.now > 600.0


class Away(MemoryExchange):
    """An exchange that nobody can reach for a while; sites answer soon after its return."""

    def __init__(self, ticks: Ticks, until: float) -> None:
        super().__init__()
        self.ticks, self.until = ticks, until

    def get(self, name: str, limit: int) -> bytes | None:
        if 1.0 < self.ticks.now < self.until:
            raise ExchangeError("The exchange is away. Try again.")
        if name in PLACES.values() and self.ticks.now > self.until + 0.5:
            return name.rpartition("/")[2].encode()
        return super().get(name, limit)


def test_an_exchange_that_is_away_at_the_deadline_loses_nobody(tmp_path: Path) -> None:
    ticks = Ticks()
    box = mailbox(Away(ticks, until=8.0), tmp_path, ticks)
    assert box.collect(AwaitedMessages.within(5.0, "round 1", PLACES, 10, bytes.decode)) == []


def test_an_exchange_that_stays_away_ends_the_wait_without_a_loss(tmp_path: Path) -> None:
    ticks = Ticks()
    box = mailbox(Away(ticks, until=1e9), tmp_path, ticks)
    with pytest.raises(ExchangeError, match="away"):
        box.collect(AwaitedMessages.within(5.0, "round 1", PLACES, 10, bytes.decode))
    assert ticks.now < 20.0
