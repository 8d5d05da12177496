"""A run over a platform that nobody trusts: the same result, or a stop that names a message."""

import functools
import hashlib
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cape_relay import Message, RelayError

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import ConsortiumError
from tests.protocol.relayed import (
    HUB,
    Delays,
    Drops,
    Everything,
    Forges,
    Kills,
    Relayed,
    Reorders,
    Repeats,
    Trouble,
)
from tests.support.forgery import ledger
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, build, conduct, limit

PATIENT = STUDY.replace("{join: 4, answer: 4}", "{join: 60, answer: 60}")
Result = dict[str, bytes]
"""Arrays of a run's result, by name."""
Charged = list[list[tuple[int, str]]]


@functools.cache
def in_peace() -> tuple[Result, Charged]:
    """Result and charges where all parties share one folder."""
    place = build(Path(tempfile.mkdtemp()) / "place", text=PATIENT)
    return conduct(LocalConsortium(place).centre()), charges(place)


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    return build(tmp_path / "place", text=PATIENT)


def charges(place: DemoFolders) -> Charged:
    return [[(e.charge.round, e.event) for e in ledger(place, site)] for site in SITES]


def check_the_same(local: Relayed) -> None:
    """Run the study, and compare it with the run over a shared folder."""
    assert (conduct(local.centre()), charges(local.place)) == in_peace()
    listings = local.settled()
    differ = {name for each in listings for name, _ in each.items() ^ listings[0].items()}
    assert differ == set()
    assert len(listings[0]) > 60


@pytest.mark.parametrize(
    "kind",
    [
        lambda draw: Trouble(),
        pytest.param(Reorders, marks=pytest.mark.long),
        pytest.param(Drops, marks=pytest.mark.long),
        pytest.param(Repeats, marks=pytest.mark.long),
        pytest.param(Delays, marks=pytest.mark.long),
        functools.partial(Kills, whom=SITES),
        functools.partial(Kills, whom=(HUB,)),
        Everything,
    ],
    ids=["peace", "reorders", "drops", "repeats", "delays", "sites-die", "hub-dies", "everything"],
)
def test_what_a_platform_loses_repeats_or_delays_changes_nothing(
    kind: Callable[[random.Random], Trouble], place: DemoFolders
) -> None:
    trouble = kind(random.Random(7))
    local = Relayed(place, trouble=trouble)
    check_the_same(local)
    assert (local.killed > 0) == isinstance(trouble, Kills | Everything)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_other_mixtures_of_troubles_change_nothing(seed: int, place: DemoFolders) -> None:
    check_the_same(Relayed(place, trouble=Everything(random.Random(seed))))


NEW = "runs/small-0001/present/stranger"
CONTRIBUTION = "00001/contribution/north"


def _other_bytes(message: Message, name: str) -> None:
    message["files"][name] += b"!"


def _other_bytes_listed(message: Message, name: str) -> None:
    _other_bytes(message, name)
    message["listing"][name] = hashlib.sha256(message["files"][name]).hexdigest()


def _escape(message: Message, name: str) -> None:
    message["files"]["../../site.yaml"] = b"bytes"
    message["listing"]["../../site.yaml"] = hashlib.sha256(b"bytes").hexdigest()


def _not_listed(message: Message, name: str) -> None:
    message["files"][NEW] = b"bytes"


def _invented(message: Message, name: str) -> None:
    _not_listed(message, name)
    message["listing"][NEW] = hashlib.sha256(b"bytes").hexdigest()


def _relabelled(message: Message, name: str) -> None:
    """Say what one site said under the next one's name, before that one speaks."""
    other = name.replace("north", "east")
    message["files"][other] = message["files"].pop(name)
    message["listing"][other] = message["listing"].pop(name)


@pytest.mark.parametrize(
    ("forge", "named"),
    [
        (_other_bytes, CONTRIBUTION),
        (_other_bytes_listed, CONTRIBUTION),
        (_escape, r"\.\./\.\./site\.yaml"),
        (_not_listed, NEW),
        (_relabelled, "00001/contribution/east"),
    ],
)
def test_a_forged_message_stops_the_relay_and_is_named(
    forge: Callable[[Message, str], None], named: str, place: DemoFolders
) -> None:
    trouble = Forges(CONTRIBUTION, forge)
    with pytest.raises(RelayError, match=named):
        conduct(Relayed(place, trouble=trouble).centre())
    assert trouble.over


def test_a_message_that_nobody_asked_for_changes_nothing(place: DemoFolders) -> None:
    trouble = Forges(CONTRIBUTION, _invented)
    check_the_same(Relayed(place, trouble=trouble))
    assert trouble.over


def test_a_ledger_at_its_limit_refuses_whatever_the_platform_carries(place: DemoFolders) -> None:
    limit(place, "north", 1.0)
    local = Relayed(place)
    with pytest.raises(ConsortiumError, match="north"):
        conduct(local.centre())
    assert charges(place)[0] == []
    assert "runs/small-0001/refusal/north" in local.settled()[0]
