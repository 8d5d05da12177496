"""Sites that tell one neighbour this and another that, and who would hide or invent it."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.evidence import keep_evidence
from consortium.coordinator.verify import Checkup
from consortium.engine.round_messages import RoundMessages
from consortium.secagg import Party
from consortium.secagg.envelope import read_unchecked
from consortium.secagg.messages import BROADCAST, Broadcast, decode, encode
from site_agent.run.neighbours import NeighbourEvidence, Neighbours
from tests.attacks.attack_kinds import Stage, always, attack
from tests.support.forgery import NAMES, path_of, settle, sign
from tests.support.gossip_algorithm import TEXT, register
from tests.support.local_consortium import SITES, LocalConsortium, conduct

Change = Callable[[pytest.MonkeyPatch, DemoFolders], None]
NORTH, EAST = SITES.index("north"), SITES.index("east")


def _told(stage: Stage, change: Change, missing: int = 0) -> list[str]:
    """Play a run among neighbours; the exit code that a reader gets, and what it is told."""
    place = settle(stage.root / "place", text=TEXT, dropouts=missing)
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        change(patch, place)
        local = LocalConsortium(place)
        centre = local.centre()
        conduct(centre)
        assert centre.session is not None
        rounds, plan = len(centre.session.rounds), centre.session.plan
        keep_evidence(place.files.out, centre.releases, place.files.study, plan, rounds)
        patch.setattr(Checkup, "_compare_files", lambda *_, **__: set())  # no maps were published
        verdict = Checkup(place.files.out).run()
    stage.said += verdict.lines()
    return [str(verdict.code), *verdict.lines()]


def _north_is_told_otherwise(patch: pytest.MonkeyPatch, place: DemoFolders) -> None:
    """East signs two answers to round 1; whenever north looks, the exchange shows the second."""
    true = Neighbours._fetch

    def fetch(ears: Neighbours, asked: Any, other: int) -> None:
        path = path_of(place, NAMES.round(1, BROADCAST, "east"))
        shown = (ears.site, asked.number, other) == (NORTH, 1, EAST)
        if not (shown and path.exists()):
            true(ears, asked, other)
            return
        said = path.read_bytes()
        body = decode(Broadcast, read_unchecked(said).body, "east")
        vector = (np.frombuffer(body.vector, np.uint8) + np.uint8(1)).tobytes()
        other_body = encode(msgspec.structs.replace(body, vector=vector))
        path.write_bytes(sign(place, BROADCAST, 1, other_body, "east"))
        true(ears, asked, other)
        path.write_bytes(said)

    patch.setattr(Neighbours, "_fetch", fetch)


@attack(
    "site",
    guard="site_agent.run.neighbours:NeighbourEvidence.due",
    without="a neighbour uses an answer that no other party received, and no reader learns of it",
    stops="east signed 2 different answers to round 1, one to centre, south; another to north",
    instead=always(()),
)
def neighbour_told_another_thing(stage: Stage) -> bool:
    """Sends one neighbour another answer than all others, with the exchange's help."""
    return _told(stage, _north_is_told_otherwise)[0] == "0"


@attack(
    "site",
    guard="consortium.verification.equivocation:_differ",
    without="a site's published answer is not the one from which its neighbours' answers follow",
    stops="east signed 2 different answers to round 1, one to centre; another to north, south",
    instead=always(False),
)
def centre_told_another_thing(stage: Stage) -> bool:
    """Sends its neighbours one answer, and signs another for the centre."""

    def change(patch: pytest.MonkeyPatch, _place: DemoFolders) -> None:
        true = Party.contribute

        def contribute(party: Party, number: int, context: bytes, *given: Any, **more: Any) -> Any:
            masked, opened = given
            if party.name == "east":
                opened = opened + np.uint8(1)
            return true(party, number, context, masked, opened, **more)

        patch.setattr(Party, "contribute", contribute)

    return _told(stage, change)[0] == "0"


@attack(
    "hub",
    guard="site_agent.run.neighbours:NeighbourEvidence._is_released",
    without="the centre excludes the site that received another answer, and the proof is lost",
    stops="east signed 2 different answers to round 1, one to centre, south; another to north",
    instead=always(True),
)
def hearer_left_out_of_the_round(stage: Stage) -> bool:
    """Excludes from round 2 the one site that received another answer in round 1."""

    def change(patch: pytest.MonkeyPatch, place: DemoFolders) -> None:
        _north_is_told_otherwise(patch, place)
        true = RoundMessages.places

        def places(messages: RoundMessages, number: int, kind: str) -> dict[str, str]:
            found = true(messages, number, kind)
            return {s: p for s, p in found.items() if (s, number) != ("north", 2)}

        patch.setattr(RoundMessages, "places", places)

    return _told(stage, change, missing=1)[0] == "0"


@attack(
    "site",
    guard="consortium.verification.equivocation:has_signed",
    without="an honest site is named as one that sent two answers",
    stops=(
        "north lists in round 2 that it received an answer of east to round 1, "
        ".* north is dishonest"
    ),
    instead=always(True),
)
def hearsay_of_its_own_making(stage: Stage) -> bool:
    """Lists an answer that its neighbour never sent."""

    def change(patch: pytest.MonkeyPatch, _place: DemoFolders) -> None:
        true = NeighbourEvidence.due

        def due(hearsay: NeighbourEvidence, *given: Any) -> Any:
            listed = true(hearsay, *given)
            if hearsay.name != "north":
                return listed
            return tuple(msgspec.structs.replace(each, body=bytes(32)) for each in listed)

        patch.setattr(NeighbourEvidence, "due", due)

    return any("east signed 2 different" in line for line in _told(stage, change))
