"""A run may start with a quorum: whoever is not there is left out, told so, and not charged."""

from __future__ import annotations

from pathlib import Path

import pytest
from mischief import (
    NAMES,
    RUN,
    Mail,
    ledger,
    path_of,
    pump,
    refusal,
    rounds_of,
    settle,
    sign,
    write,
)
from village import SITES, STUDY, Village, conduct, limit

from consortium.demo import Place
from consortium.engine.centre import Centre
from consortium.engine.setting import start_notice
from consortium.engine.wire import ANNOUNCEMENT, START
from consortium.errors import SiteError
from consortium.roster import load_roster
from site_agent.agent import ENDED

FOUR = STUDY.replace("rounds: 2", "rounds: 1")
QUORUM = FOUR.replace("west]\n", "west]\nquorum: 3\n")
THREE = QUORUM.replace(", west]", "]")
HERE = SITES[:3]


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The result of a study that never had a fourth site."""
    village = Village(settle(tmp_path_factory.mktemp("three") / "place", text=THREE))
    assert village.study.sites == HERE
    return conduct(village.centre())


def _drive(centre: Centre) -> dict[str, bytes]:
    """Run the rounds of an open run; returns the result's arrays as bytes."""
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    return {name: array.tobytes() for name, array in centre.finish().arrays.items()}


def _started_with(place: Place) -> bytes:
    return path_of(place, NAMES.start()).read_bytes()


# -- a site is not there ------------------------------------------------------------------


def test_a_run_without_a_site_is_a_study_without_it(
    tmp_path: Path, of_three: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    village = Village(place, absent={"west"})
    centre = village.centre()
    centre.open()
    assert village.ticks.now == pytest.approx(4, abs=0.5)  # timing.join, and no longer
    assert "starting without west" in village.said("centre")
    assert _drive(centre) == of_three
    assert [rounds_of(place, site) for site in SITES] == [[1, 2], [1, 2], [1, 2], []]


def test_the_site_that_comes_later_is_told_and_changes_nothing(
    tmp_path: Path, of_three: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    village = Village(place, absent={"west"})
    centre = village.centre()
    centre.open()
    centre.step()
    village.absent = set()
    assert _drive(centre) == of_three
    pump(village)
    assert f"{RUN} has ended: left out" in village.said("west")
    assert village.agent("west").site.store.load(RUN, ENDED) is not None
    assert ledger(place, "west") == []
    assert refusal(place, "west", load_roster(place.errand.roster)) is None
    assert not path_of(place, NAMES.setup("advertise", "west")).exists()
    later = Village(place)
    pump(later)
    assert later.said("west") == ""  # left alone from now on


def test_all_are_there_and_nobody_waits(tmp_path: Path) -> None:
    village = Village(settle(tmp_path / "place", text=QUORUM))
    village.centre().open()
    assert village.ticks.now < 1
    assert "without" not in village.said("centre")


@pytest.mark.parametrize(
    ("text", "absent", "named"),
    [
        (QUORUM, {"south", "west"}, "south, west: not there within 4 s"),
        (FOUR, {"west"}, "west: not there within 4 s"),
        (QUORUM, set(SITES), "north, east, south, west: not there within 4 s"),
    ],
)
def test_too_few_are_named(text: str, absent: set[str], named: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=text)
    village = Village(place, absent=absent)
    with pytest.raises(SiteError, match=f"^{named}"):
        village.centre().open()
    assert not path_of(place, NAMES.start()).exists()
    assert all(ledger(place, site) == [] for site in SITES)


# -- a site refuses -----------------------------------------------------------------------


def test_a_site_that_refuses_is_left_out_at_once(
    tmp_path: Path, of_three: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    limit(place, "west", 1.0)
    village = Village(place)
    centre = village.centre()
    centre.open()
    assert village.ticks.now < 1
    assert "west takes no further part (budget)" in village.said("centre")
    assert _drive(centre) == of_three
    assert ledger(place, "west") == []


def test_without_quorum_the_site_that_refuses_is_named_at_once(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=FOUR)
    limit(place, "west", 1.0)
    village = Village(place)
    with pytest.raises(SiteError, match=r"west takes no further part \(budget\)"):
        village.centre().open()
    assert village.ticks.now < 1


def test_refusing_and_missing_are_told_apart(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    limit(place, "west", 1.0)
    village = Village(place, absent={"south"})
    with pytest.raises(SiteError) as caught:
        village.centre().open()
    assert "west takes no further part (budget)" in str(caught.value)
    assert "south: not there within 4 s" in str(caught.value)


def test_a_refusal_that_somebody_else_wrote_leaves_nobody_out(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    write(place, NAMES.refusal("west"), sign(place, "refusal", 0, b"{}", who="east"))
    village = Village(place)
    village.centre().open()
    assert "without" not in village.said("centre")


# -- restarts -----------------------------------------------------------------------------


class Forgetful(Village):
    """A village whose agents are built anew after every message that anybody posted."""

    messages = 0

    def pump(self) -> None:
        found = sum(1 for _ in Path(self.place.errand.exchange).rglob("*"))
        if found != self.messages:
            self.messages = found
            self.agents.clear()
        super().pump()


def test_everybody_restarts_between_every_step(
    tmp_path: Path, of_three: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = Mail(monkeypatch)
    place = settle(tmp_path / "place", text=QUORUM)
    village = Forgetful(place, absent={"west"})
    village.centre().open()
    started = _started_with(place)
    village.absent = set()  # too late
    while True:
        centre = village.centre()
        centre.open()
        assert centre.setting.study.sites == HERE
        assert centre.session is not None
        if centre.session.pending is None:
            break
        centre.step()
    assert _drive(centre) == of_three
    assert _started_with(place) == started
    mail.check_said_once()
    assert [rounds_of(place, site) for site in SITES] == [[1, 2], [1, 2], [1, 2], []]


# -- a hostile centre ---------------------------------------------------------------------


def _announced(root: Path) -> Village:
    """Every site has said that it is there; the start is the test's."""
    place = settle(root / "place", text=QUORUM)
    village = Village(place)
    body = village.centre().setting.announcement
    write(place, NAMES.study(), sign(place, ANNOUNCEMENT, 0, body))
    pump(village, 2)
    assert all(path_of(place, NAMES.present(site)).exists() for site in SITES)
    return village


def _start(village: Village, sites: tuple[str, ...]) -> None:
    write(village.place, NAMES.start(), sign(village.place, START, 0, start_notice(sites)))


def _joined(village: Village, site: str) -> bool:
    return path_of(village.place, NAMES.setup("advertise", site)).exists()


WRONG = {
    "a foreign name": ("north", "east", "stranger", "west"),
    "the centre itself": ("centre", "north", "east", "west"),
    "fewer than the quorum": ("north", "west"),
    "nobody else": ("west",),
    "another order": ("west", "north", "east"),
    "a site twice": ("north", "north", "east", "west"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_start_that_the_study_does_not_allow_is_refused(wrong: str, tmp_path: Path) -> None:
    village = _announced(tmp_path)
    _start(village, WRONG[wrong])
    pump(village, 3)
    told = refusal(village.place, "west", load_roster(village.place.errand.roster))
    assert told is not None
    assert told["code"] == "study"
    assert not _joined(village, "west")
    assert ledger(village.place, "west") == []


def test_a_start_without_a_site_ends_its_part(tmp_path: Path) -> None:
    village = _announced(tmp_path)
    _start(village, HERE)
    pump(village, 3)
    assert f"{RUN} has ended: left out" in village.said("west")
    _start(village, SITES)  # it can't be called back
    village.agents.clear()
    pump(village, 3)
    assert not _joined(village, "west")
    assert _joined(village, "north")


@pytest.mark.parametrize("restart", [False, True])
def test_a_site_that_starts_with_some_never_goes_on_with_others(
    restart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    village, mail = _announced(tmp_path), Mail(monkeypatch)
    _start(village, SITES)
    pump(village, 3)
    assert all(_joined(village, site) for site in SITES)
    _start(village, ("north", "east", "west"))
    if restart:
        village.agents.clear()
    with pytest.raises(SiteError, match="no sound 'advertise' message"):
        village.centre().open()
    assert len(mail.sent[NAMES.setup("advertise", "west")]) == 1
    assert all(ledger(village.place, site) == [] for site in SITES)


@pytest.mark.parametrize("fault", ["not JSON", "no list", "signed by a site", "of another kind"])
def test_a_start_that_is_none_is_waited_over(fault: str, tmp_path: Path) -> None:
    village = _announced(tmp_path)
    place, body = village.place, start_notice(SITES)
    message = {
        "not JSON": sign(place, START, 0, b"\xff{"),
        "no list": sign(place, START, 0, b'{"sites": "north"}'),
        "signed by a site": sign(place, START, 0, body, who="east"),
        "of another kind": sign(place, ANNOUNCEMENT, 0, body),
    }[fault]
    write(place, NAMES.start(), message)
    pump(village, 3)
    assert not _joined(village, "west")
    _start(village, SITES)
    pump(village, 3)
    assert _joined(village, "west")


# -- a site that misses a round -----------------------------------------------------------


def test_a_late_site_is_awaited_less_until_it_answers_again(tmp_path: Path) -> None:
    text = STUDY.replace("rounds: 2", "rounds: 4").replace("answer: 4", "answer: 4, late: 1")
    village = Village(settle(tmp_path / "place", dropouts=1, text=text))
    centre = village.centre()
    centre.open()
    waits, survivors = [], []
    for absent in ({"south"}, {"south"}, set(), {"south"}, set()):
        village.absent = absent
        before = village.ticks.now
        survivors.append(len(centre.step().survivors))
        waits.append(village.ticks.now - before)
    assert survivors == [3, 3, 4, 3, 4]
    assert waits[0] == pytest.approx(4, abs=0.5)
    assert waits[1] == pytest.approx(1, abs=0.3)
    assert waits[2] < 0.5
    assert waits[3] == pytest.approx(4, abs=0.5)
    assert waits[4] < 0.5


def test_two_late_sites_are_two_too_many(tmp_path: Path) -> None:
    text = STUDY.replace("answer: 4", "answer: 4, late: 1")
    village = Village(settle(tmp_path / "place", dropouts=1, text=text))
    centre = village.centre()
    centre.open()
    village.absent = {"south"}
    centre.step()
    village.absent = {"south", "west"}
    before = village.ticks.now
    with pytest.raises(SiteError, match="south, west: no sound answer to round 2"):
        centre.step()
    assert village.ticks.now - before == pytest.approx(4, abs=0.5)  # west was not late before
