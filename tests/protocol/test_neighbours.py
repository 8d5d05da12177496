"""Agents that work from what their neighbours tell them, over a real exchange."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.neighbour_answers import broadcast_limit, encode_broadcast
from consortium.report.accounting import account
from consortium.secagg import OVERHEAD, messages
from consortium.secagg.envelope import read_unchecked
from consortium.secagg.messages import BROADCAST
from consortium.study.plan import make_plan
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.run.neighbours import NeighbourEvidence
from tests.support.cases import make_sites, make_study, shape_of
from tests.support.forgery import (
    NAMES,
    Mail,
    alter_reads,
    path_of,
    pump,
    rounds_of,
    settle,
    sign,
    write,
)
from tests.support.gossip_algorithm import RING, ROUNDS, TEXT, Gossip, register
from tests.support.local_consortium import SITES, LocalConsortium, conduct


@pytest.fixture
def gossip(monkeypatch: pytest.MonkeyPatch) -> type[Gossip]:
    return register(monkeypatch)


def place_of(tmp_path: Path, dropouts: int = 0) -> DemoFolders:
    return settle(tmp_path / "place", text=TEXT, dropouts=dropouts)


def check_heard(gossip: type[Gossip], said: list[np.ndarray]) -> None:
    """Every site was given its neighbours' released answers, and zeros for the others."""
    assert len(gossip.heard) == len(SITES) * ROUNDS
    for heard in gossip.heard:
        within = {heard.site, *RING[heard.site]}
        for earlier, answers in enumerate(heard.answers):
            expected = [said[earlier][s] if s in within else 0 * said[0][0] for s in range(4)]
            assert np.array_equal(answers, expected)


def test_sites_hear_what_their_neighbours_said(gossip: type[Gossip], tmp_path: Path) -> None:
    place = place_of(tmp_path)
    said = {
        name: np.frombuffer(raw) for name, raw in conduct(LocalConsortium(place).centre()).items()
    }
    check_heard(gossip, [said[f"round{number}"].reshape(4, -1) for number in range(ROUNDS)])
    for site in SITES:
        assert rounds_of(place, site) == rounds_of(place, site, "spend") == [1, 2, 3]


def test_sites_that_start_again_before_every_round_say_the_same(
    gossip: type[Gossip], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail, local = Mail(monkeypatch), LocalConsortium(place_of(tmp_path))
    centre = local.centre()
    centre.open()
    said = []
    for _ in range(ROUNDS):
        local.agents.clear()
        said.append(centre.step())
    assert centre.session is not None
    weights = np.array(centre.session.plan.stages[0].mechanism.weights)
    check_heard(gossip, [done.values.reshape(4, -1) / weights[:, None] for done in said])
    pump(local)
    mail.check_said_once()
    told = [name for name in mail.sent if f"/{BROADCAST}/" in name]
    assert len(told) == len(SITES) * ROUNDS
    assert all(len(mail.sent[name]) == 1 for name in told)
    assert rounds_of(local.place, "north", "spend") == [1, 2, 3]


def listed(place: DemoFolders) -> list[tuple[int, str, str, int]]:
    """What stands in the released manifests: round, hearer, speaker, round of the answer."""
    found = []
    for number in range(1, ROUNDS + 1):
        message = path_of(place, NAMES.round(number, messages.RELEASE)).read_bytes()
        release = messages.decode(messages.Release, read_unchecked(message).body, "centre")
        for site, data in zip(release.survivors, release.manifests, strict=True):
            body = messages.decode(messages.Manifest, read_unchecked(data).body, site)
            found += [(number, site, each.site, each.round) for each in body.heard]
    return found


DUE = [
    (number + 1, site, SITES[other], number)
    for number in range(1, ROUNDS)
    for site, others in zip(SITES, RING, strict=True)
    for other in others
]
"""That each site lists each neighbour's answer once, in the round after."""


def test_what_was_heard_is_listed_once(gossip: type[Gossip], tmp_path: Path) -> None:
    local = LocalConsortium(place_of(tmp_path))
    conduct(local.centre())
    assert sorted(listed(local.place)) == sorted(DUE)


def test_who_starts_again_before_every_round_lists_the_same(
    gossip: type[Gossip], tmp_path: Path
) -> None:
    local = LocalConsortium(place_of(tmp_path))
    centre = local.centre()
    centre.open()
    for _ in range(ROUNDS):
        local.agents.clear()
        centre.step()
    assert sorted(listed(local.place)) == sorted(DUE)


def test_a_manifest_lists_no_more_than_has_room(gossip: type[Gossip]) -> None:
    """The oldest first; the rest stands in the manifests that follow."""
    (stage,) = make_plan(make_study(), shape_of(make_sites())).stages
    heard = [messages.Heard("east", n, bytes(32), bytes(64)) for n in range(1, 10)]
    found = NeighbourEvidence("north", None, None).due(stage, heard)  # type: ignore[arg-type]
    assert [each.round for each in found] == [1, 2, 3, 4]


def meddled(gossip: type[Gossip], place: DemoFolders, message: bytes) -> str:
    """North's log after another message stands where east's answer to round 1 was."""
    local, name = LocalConsortium(place), NAMES.round(1, BROADCAST, "east")
    centre = local.centre()
    centre.open()

    def meddle() -> None:
        local.agent("east").round_trip()
        if path_of(place, name).exists():
            write(place, name, message)
        for site in ("north", "south", "west"):
            local.agent(site).round_trip()

    local.ticks.others = meddle
    for _ in range(ROUNDS):
        centre.step()
    assert rounds_of(place, "north") == [1, 2, 3]  # nobody can hold it up
    (north,) = [h for h in gossip.heard if h.site == 0 and len(h.answers) == 2]
    assert not north.answers[0, 1].any()  # left out
    assert north.answers[1, 1].any()
    assert local.said("north").count("The message on the exchange as east's answer to round 1") == 1
    return local.said("north")


def test_an_answer_that_its_site_did_not_sign_is_not_believed(
    gossip: type[Gossip], tmp_path: Path
) -> None:
    place = place_of(tmp_path)
    forged = sign(
        place, BROADCAST, 1, encode_broadcast(bytes(32), np.zeros(6, np.uint32), 32), who="west"
    )
    assert "sender" in meddled(gossip, place, forged)


def test_an_answer_to_another_question_is_not_believed(
    gossip: type[Gossip], tmp_path: Path
) -> None:
    place = place_of(tmp_path)
    other = sign(
        place, BROADCAST, 1, encode_broadcast(bytes(32), np.zeros(6, np.uint32), 32), who="east"
    )
    assert "another question" in meddled(gossip, place, other)


def test_an_answer_without_end_is_not_read(gossip: type[Gossip], tmp_path: Path) -> None:
    assert "/broadcast/east must have at most" in meddled(
        gossip, place_of(tmp_path), bytes(1 << 20)
    )


def test_an_answer_with_the_longest_names_is_read(gossip: type[Gossip], tmp_path: Path) -> None:
    (stage,) = make_plan(make_study(), shape_of(make_sites())).stages
    vector = np.zeros(stage.mechanism.entries, stage.mechanism.lattice.dtype)
    body = encode_broadcast(bytes(32), vector, stage.mechanism.lattice.bits)
    message = sign(place_of(tmp_path), BROADCAST, 1, body, who="east")
    longer = 2 * 63 + len("-0001") - len("small-0001") - len("east")
    assert len(message) + longer <= broadcast_limit(stage) + OVERHEAD


def test_an_answer_that_is_kept_back_is_made_up_for_by_the_one_before(
    gossip: type[Gossip], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = NAMES.round(2, BROADCAST, "east")
    alter_reads(monkeypatch, lambda name, data, _: None if name == hidden else data)
    conduct(LocalConsortium(place_of(tmp_path)).centre())
    last = {heard.site: heard.answers for heard in gossip.heard if len(heard.answers) == 2}
    assert np.array_equal(last[0][1, 1], last[0][0, 1])  # north has east's first answer twice
    assert not np.array_equal(last[1][1, 1], last[1][0, 1])  # east knows its own


def test_neighbours_go_on_without_a_lost_site(gossip: type[Gossip], tmp_path: Path) -> None:
    local = LocalConsortium(place_of(tmp_path, dropouts=1))
    centre = local.centre()
    centre.open()
    centre.step()
    local.absent.add("east")
    centre.step()
    done = centre.step()
    assert done.survivors == (0, 2, 3)
    last = [heard for heard in gossip.heard if heard.site == 0][-1]
    assert np.array_equal(last.answers[1, 1], last.answers[0, 1])
    # What it may have told its neighbours lies open: whoever reads the exchange may have it.
    assert centre.session is not None
    plan, turns = centre.session.plan, [tuple({*range(4)} - {lost}) for lost in range(4)]
    entries = plan.stages[0].mechanism.entries
    done = replace(done, values=np.zeros(4 * entries))
    some = [replace(done, survivors=left, values=np.zeros(3 * entries)) for left in turns]
    report = account(plan, some, 24)
    whole = account(plan, [replace(done, survivors=(0, 1, 2, 3))] * 4, 24)
    assert report.guarantees.outsider.mu >= whole.guarantees.outsider.mu - 1e-12


def test_an_answer_that_comes_late_is_heard_later(
    gossip: type[Gossip], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = NAMES.round(1, BROADCAST, "east")
    alter_reads(monkeypatch, lambda name, data, seen: None if name == late and seen < 2 else data)
    said = {
        k: np.frombuffer(raw)
        for k, raw in conduct(LocalConsortium(place_of(tmp_path)).centre()).items()
    }
    last = {heard.site: heard.answers for heard in gossip.heard if len(heard.answers) == 2}
    assert np.array_equal(last[0][0, 1], said["round0"].reshape(4, -1)[1])


def test_a_site_that_dies_between_charge_and_answer_pays_once(
    gossip: type[Gossip], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, died, real = LocalConsortium(place_of(tmp_path)), [], Ledger.reserve

    def reserve(ledger: Ledger, charge: Charge, at: str) -> bool:
        done = real(ledger, charge, at)
        if charge.round == 2 and "north" in str(ledger.path) and not died:
            died.append("north")
            raise KeyboardInterrupt
        return done

    def pump() -> None:
        for name in SITES:
            try:
                local.agent(name).round_trip()
            except KeyboardInterrupt:
                del local.agents[name]

    monkeypatch.setattr(Ledger, "reserve", reserve)
    local.ticks.others = pump
    conduct(local.centre())
    for _ in range(12):
        pump()
    assert died
    assert rounds_of(local.place, "north") == rounds_of(local.place, "north", "spend")
    assert rounds_of(local.place, "north") == [1, 2, 3]
