"""Sites whose disks take longer than any deadline: nothing is asked, and nothing spent, before."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.clock import WAITING, read_waiting
from consortium.engine.names import Names
from consortium.errors import ConsortiumError, SiteError
from consortium.study.slots import SHORTEST
from site_agent.run.charges import Charges
from tests.support.forgery import (
    NAMES,
    ledger,
    path_of,
    rounds_of,
    settle,
    sign,
    write,
)
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, conduct

SLOW = 5.0  # s for a person's scans, where timing.join and timing.answer are 4 s
QUORUM = STUDY.replace("data:", "quorum: 3\ndata:", 1)


@dataclass
class SlowDisks(LocalConsortium):
    """Each person's scans take some seconds of the virtual clock, by site."""

    seconds: dict[str, float] = field(default_factory=dict)
    _works: list[tuple[Iterator[object], float, str]] = field(default_factory=list)
    _at_work: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.drive = self._queue

    def _queue(self, work: Iterator[object]) -> None:
        due = self.ticks.now + self.seconds.get(self._at_work, 0.0)
        self._works.append((work, due, self._at_work))
        self._read()

    def _read(self) -> None:
        """Do every piece of work whose time has come."""
        for work, due, name in self._works[:]:
            at = due
            while at <= self.ticks.now:
                if next(work, self) is self:
                    break
                at += self.seconds.get(name, 0.0)
            else:
                self._works[self._works.index((work, due, name))] = work, at, name
                continue
            self._works.remove((work, due, name))

    def pump(self) -> None:
        self._read()
        for name in self.study.sites:
            if name not in self.absent:
                self._at_work = name
                self.agent(name).round_trip()


def _everybody(seconds: float) -> dict[str, float]:
    return dict.fromkeys(SITES, seconds)


def test_scans_that_take_longer_than_any_deadline_cost_one_run_and_no_more(tmp_path: Path) -> None:
    local = SlowDisks(settle(tmp_path / "place"), seconds=_everybody(SLOW))
    conduct(local.centre())
    assert local.ticks.now > 3 * SLOW
    for site in SITES:
        assert rounds_of(local.place, site) == rounds_of(local.place, site, "spend") == [1, 2, 3]
    assert {line.charge.run for line in ledger(local.place, "north")} == {"small-0001"}


def test_the_centre_shows_who_is_loading_and_until_when(tmp_path: Path) -> None:
    local = SlowDisks(settle(tmp_path / "place"), seconds={"west": SLOW})
    shown: list[tuple[dict[str, str], float]] = []
    pump = local.pump

    def look() -> None:
        waiting = read_waiting(local.place.files.out) if local.ticks.now > 2 else None
        if waiting is not None and waiting.step == "present":
            shown.append((dict(waiting.sites), waiting.deadlines["west"] - waiting.since))
        pump()

    local.ticks.others = look
    conduct(local.centre())
    assert ({"west": "loading its data"}, pytest.approx(3600, abs=1)) in shown
    assert not (local.place.files.out / WAITING).exists()
    assert local.said("centre").count("west is loading its data") == 1


def test_the_sites_log_says_how_far_it_has_come(tmp_path: Path) -> None:
    local = SlowDisks(settle(tmp_path / "place"), seconds={"west": 4 * SLOW})
    conduct(local.centre())
    assert "small: loading 2 of 3" in local.said("west")
    assert "small: ready for a run, with 3 participants" in local.said("west")


def test_a_disk_slower_than_ready_costs_nothing_and_not_the_yes(tmp_path: Path) -> None:
    text = STUDY.replace("answer: 4", "answer: 4, ready: 8")
    local = SlowDisks(settle(tmp_path / "place", text=text), seconds={"west": SLOW})
    centre = local.centre()
    with pytest.raises(SiteError, match=r"west: still loading after 8 s. Nothing was asked") as end:
        conduct(centre)
    centre.abort(end.value)
    local.ticks.now += 1.0  # the end is looked for now and then
    local.pump()
    assert all(ledger(local.place, site) == [] for site in SITES)
    assert "no answer was sent, and nothing is charged" in local.said("north")
    local.seconds.clear()  # the cache holds what was read
    conduct(local.centre())
    assert rounds_of(local.place, "west") == [1, 2, 3]


def test_with_a_quorum_a_loading_site_is_waited_for_and_an_absent_one_is_not(
    tmp_path: Path,
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    local = SlowDisks(place, seconds={"east": SLOW}, absent={"west"})
    centre = local.centre()
    centre.open()
    assert centre.context.study.sites == ("north", "east", "south")


def test_a_site_of_unusable_scans_answers_like_any_other(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    for scan in place.dataset("south").rglob("*_bold.nii.gz"):
        scan.write_bytes(scan.read_bytes()[:-200])
    local = LocalConsortium(place)
    centre = local.centre()
    conduct(centre)
    assert centre.session is not None
    assert "with 0 participants" in local.said("south")
    assert _messages(place, "south") == _messages(place, "north")
    book = local.agent("south").site.ledger
    assert [entry.event for entry in book.entries()].count("spend") == len(centre.session.rounds)
    assert book.most_charged("subject") == 0.0


def _messages(place: DemoFolders, site: str) -> list[tuple[str, int]]:
    """Names and sizes of a site's messages; sites check different numbers of rounds at the end."""
    found = (path for path in (place.root / "exchange" / "runs").rglob(f"{site}*"))
    found = (path for path in found if path.parent.name != "attestation")
    return sorted((p.parent.relative_to(place.root).as_posix(), p.stat().st_size) for p in found)


def _late_after(moment: str, local: LocalConsortium, patch: pytest.MonkeyPatch) -> None:
    """Let the centre give the run up while west computes, or between its charge and its answer."""
    centre, real = local.centre(), getattr(Charges, moment)

    def slow(self: Charges, *args: object, **kwargs: object) -> object:
        done = real(self, *args, **kwargs)
        if self._site.name == "west":
            centre.abort(SiteError("west: no sound answer to round 1 within 4 s."))
        return done

    patch.setattr(Charges, moment, slow)
    with pytest.raises(ConsortiumError):
        conduct(centre)
    local.ticks.pause(2 * SHORTEST)


def test_a_site_that_computes_past_the_end_of_the_run_is_charged_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    _late_after("noise_key", local, monkeypatch)
    assert ledger(local.place, "west") == []
    assert not path_of(local.place, NAMES.round(1, "contribution", "west")).exists()
    assert "sent nothing and is charged nothing" in local.said("west")
    assert "no answer was sent, and nothing is charged" in local.said("north")


def test_what_another_leaves_in_the_place_of_a_closing_keeps_nobody_from_answering(
    tmp_path: Path,
) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    forged = sign(place, "unmask", 1, b"closed", "east")  # well signed, and not by the centre
    asked, pump = path_of(place, NAMES.round(1, "query")), local.pump

    def meddle() -> None:
        if asked.exists():
            write(place, NAMES.round(1, "unmask"), forged)
        pump()

    local.ticks.others = meddle
    with pytest.raises(ConsortiumError):  # the centre's own closing has no place any more
        conduct(local.centre())
    for site in SITES:
        assert path_of(place, NAMES.round(1, "contribution", site)).exists(), site


def test_a_charge_whose_answer_was_never_sent_is_taken_back_and_the_yes_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    _late_after("reserve", local, monkeypatch)
    monkeypatch.undo()
    assert "the answer to round 1 was sent and stays charged" in local.said("north")
    site = local.agent("west").site
    events = [line.event for line in ledger(local.place, "west")]
    assert events == ["reserve", "void"]
    assert site.ledger.total(site.dataset, "subject") == 0.0
    assert site.ledger.outsider_total("subject") == 0.0
    assert not path_of(local.place, NAMES.round(1, "contribution", "west")).exists()
    again = LocalConsortium(local.place)
    with pytest.raises(SiteError, match="north takes no further part"):  # its yes is used up
        conduct(again.centre())
    assert path_of(local.place, Names("small-0002").present("west")).exists()
    assert not path_of(local.place, Names("small-0002").present("north")).exists()


def test_a_charge_before_a_stop_is_told_though_no_answer_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    centre, real = local.centre(), Charges.reserve

    def stopped(self: Charges, *args: object, **kwargs: object) -> bool:
        done = real(self, *args, **kwargs)  # type: ignore[arg-type]
        if self._site.name == "west":
            centre.abort(SiteError("west: no sound answer to round 1 within 4 s."))
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Charges, "reserve", stopped)
    with pytest.raises(KeyboardInterrupt):
        conduct(centre)
    monkeypatch.undo()
    local.agents.clear()
    for _ in range(12):
        local.agent("west").round_trip()
        local.ticks.now += SHORTEST
    assert [line.event for line in ledger(local.place, "west")] == ["reserve"]
    assert "no answer to round 1 was sent, which stays charged" in local.said("west")
    assert "charged nothing" not in local.said("west")
    assert "nothing is charged" not in local.said("west")


@pytest.mark.parametrize("seed", range(12))
def test_no_sequence_of_slow_machines_charges_for_what_was_not_sent(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disks, computing and noise take any time; what is charged is what lies on the exchange."""
    draw = random.Random(seed)
    text = STUDY.replace("answer: 4", f"answer: 4, late: 1, ready: {draw.choice([6, 30])}")
    place = settle(tmp_path / "place", text=text, dropouts=draw.choice([0, 1]))
    local = SlowDisks(place, seconds={site: draw.choice([0.0, 1.0, SLOW]) for site in SITES})
    centre = local.centre()
    ended = False

    def slowly(moment: str) -> None:
        real = getattr(Charges, moment)

        def slow(self: Charges, *args: object, **kwargs: object) -> object:
            nonlocal ended
            done = real(self, *args, **kwargs)
            if draw.random() < 0.15 and not ended:  # so slow that the centre gave up meanwhile
                ended = True
                centre.abort(SiteError("too slow"))
            return done

        monkeypatch.setattr(Charges, moment, slow)

    slowly("noise_key")
    slowly("reserve")
    try:
        conduct(centre)
    except ConsortiumError as error:
        centre.abort(error)
    local.pump()
    for site in SITES:
        void = rounds_of(place, site, "void")
        charged = [number for number in rounds_of(place, site) if number not in void]
        sent = [
            n for n in (1, 2, 3) if path_of(place, NAMES.round(n, "contribution", site)).exists()
        ]
        assert charged == sent, site
