"""Where a run stands, at every step of a consortium's study, as the coordinator reads it."""

import io
import shutil
from itertools import cycle
from pathlib import Path

import pytest
from rich.console import Console

from consortium.base.lock import only_one
from consortium.coordinator.console_tables import show_status
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.run import run_study
from consortium.coordinator.run_folder import RunStatus, SiteCount, SiteStanding, run_status
from consortium.engine.clock import Clock
from consortium.engine.unit_counts import is_far_below
from consortium.errors import SiteError, ThresholdError
from consortium.study.slots import SHORTEST
from tests.support.finished_run import carry_out
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, build, conduct, limit

RUN = "small-0001"
TEXT = STUDY.replace("rounds: 2", "rounds: 1").replace("west]\n", "west]\nquorum: 3\n")


class Watched(LocalConsortium):
    """A consortium in which one agent works at a time, and every change is written down."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen: list[RunStatus] = []
        self.order = cycle(self.study.sites)

    def pump(self) -> None:
        self.look()
        name = next(self.order)
        if name not in self.absent:
            self.agent(name).round_trip()
        self.look()

    def look(self) -> RunStatus:
        files = self.place.files
        found = run_status(files.open_exchange(), RUN, self.study, files.out)
        if not self.seen or self.seen[-1] != found:
            self.seen.append(found)
        return found

    def steps(self) -> list[str]:
        """Steps in their order, each once."""
        return list(dict.fromkeys(each.step for each in self.seen))

    def states(self, step: str) -> list[dict[str, str]]:
        """Every site's states during a step, in their order."""
        there = [each for each in self.seen if each.step == step]
        return [{site.name: site.state for site in each.sites} for each in there]


class Dying(Watched):
    """A consortium whose centre is killed in its third second of waiting."""

    def pump(self) -> None:
        super().pump()
        if self.ticks.now > 2:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> DemoFolders:
    return build(tmp_path_factory.mktemp("standing") / "place", text=TEXT)


@pytest.fixture
def place(original: DemoFolders, tmp_path: Path) -> DemoFolders:
    target = tmp_path / "place"
    shutil.copytree(original.root, target)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(original.root), str(target)))
    return DemoFolders(target)


def test_every_step_is_told_in_its_order(place: DemoFolders) -> None:
    local = Watched(place)
    local.centre()  # makes the output folder
    local.look()
    conduct(local.centre())
    local.look()
    assert local.steps() == [
        "set-up (present)",
        "set-up (advertise)",
        "set-up (share)",
        "round 1 (contribution)",
        "round 1 (unmasking)",
        "round 2 (contribution)",
        "round 2 (unmasking)",
        "ended (complete)",
    ]
    for step in local.steps()[:-1]:
        states = local.states(step)
        assert set(states[0].values()) == {"awaited"}, step
        answered = [sum(state == "answered" for state in each.values()) for each in states]
        assert answered == sorted(answered), step
        assert answered[-1] >= 2, step  # the centre may go on with the last one's
    assert set(local.states("ended (complete)")[-1].values()) == {"answered"}
    assert not any(each.running for each in local.seen)


def test_what_was_last_heard_grows_with_the_run(place: DemoFolders) -> None:
    local = Watched(place)
    conduct(local.centre())
    heard = list(dict.fromkeys(each.sites[0].heard for each in local.seen))
    assert heard == [
        "never",
        "set-up (present)",
        "set-up (advertise)",
        "set-up (share)",
        "round 1 (contribution)",
        "round 1 (unmasking)",
        "round 2 (contribution)",
        "round 2 (unmasking)",
    ]


def test_a_site_that_is_waited_for_says_since_when_and_until_when(place: DemoFolders) -> None:
    local = Watched(place, absent={"west"})
    with only_one(place.files.out):
        centre = local.centre()
        centre.open()
    waits = [s for each in local.seen for s in each.sites if s.since is not None]
    assert {(site.name, site.state, site.heard) for site in waits} == {("west", "awaited", "never")}
    assert all(s.until is not None and s.since is not None for s in waits)
    (first, *_) = waits
    assert first.until is not None
    assert first.since is not None
    join = 4 + SHORTEST  # timing.join and one loading slot
    assert first.until - first.since == pytest.approx(join, abs=0.01)
    assert all(each.running for each in local.seen)


def test_a_dead_centres_deadline_is_not_shown(place: DemoFolders) -> None:
    local = Dying(place, absent={"west"})
    centre = local.centre()
    with only_one(place.files.out), pytest.raises(KeyboardInterrupt):
        centre.open()
    with only_one(place.files.out):
        assert local.look().sites[3].until is not None
    found = local.look()
    assert not found.running
    assert found.sites[3] == SiteStanding("west", "never", "awaited")


def test_who_is_left_out_is_told_as_soon_as_the_run_starts(place: DemoFolders) -> None:
    local = Watched(place, absent={"west"})
    conduct(local.centre())
    for step in local.steps()[1:]:
        assert {each["west"] for each in local.states(step)} == {"left out"}, step
        assert all(state["north"] != "left out" for state in local.states(step))


def test_who_refused_is_told(place: DemoFolders) -> None:
    limit(place, "west", 1.0)
    local = Watched(place)
    conduct(local.centre())
    found = local.look()
    assert {site.name: site.state for site in found.sites} == {
        **dict.fromkeys(SITES[:3], "answered"),
        "west": "refused",
    }


def test_who_went_away_in_a_round_is_awaited(place: DemoFolders) -> None:
    local = Watched(place)
    centre = local.centre()
    centre.open()
    local.absent = {"south"}
    with pytest.raises((SiteError, ThresholdError)) as caught:
        centre.step()
    states = {site.name: site for site in local.look().sites}
    assert states["south"].state == "awaited"
    assert states["south"].heard == "set-up (share)"
    assert states["north"].heard == "round 1 (contribution)"
    centre.abort(caught.value)
    assert local.look().step == "ended (given up)"


def test_who_never_came_is_missing_when_the_run_was_given_up(place: DemoFolders) -> None:
    local = Watched(place)
    centre = local.centre()
    local.absent = {"south", "west"}
    with pytest.raises(SiteError) as caught:
        centre.open()
    centre.abort(caught.value)
    states = {site.name: (site.heard, site.state) for site in local.look().sites}
    assert states["south"] == ("never", "missing")
    assert states["north"] == ("set-up (present)", "answered")


def test_a_table_for_people() -> None:
    sites = (
        SiteStanding("north", "round 3 (contribution)", "answered"),
        SiteStanding("east", "never", "awaited", 1_700_000_000.0, 1_700_000_600.0),
    )
    for running, said in ((True, "the centre is at work"), (False, "not running. Start it with")):
        out = io.StringIO()
        found = RunStatus(RUN, "round 3 (contribution)", False, running, sites)
        show_status(found, Console(file=out, width=160))
        text = out.getvalue()
        assert said in text
        assert "2023-11-1" in text
        assert text.count("round 3 (contribution)") == 2


def test_estimated_numbers_are_shown_from_the_first_round_on(place: DemoFolders) -> None:
    local = Watched(place)
    centre = local.centre()
    centre.open()
    assert all(site.count is None for site in local.look().sites)
    centre.step()
    for site in local.look().sites:
        assert site.count is not None
        assert site.count.nominal == 10
        assert site.count.deviation > 0
        assert abs(site.count.units - 3) < 6 * site.count.deviation + 1


@pytest.mark.parametrize(("units", "said"), [(4, True), (6, False)])
def test_a_site_with_clearly_too_few_participants_is_named(units: int, said: bool) -> None:
    count = SiteCount(units, 2.0, 20, few=is_far_below(units, 2.0, 24))
    out = io.StringIO()
    sites = (SiteStanding("north", "round 1 (contribution)", "answered", count=count),)
    found = RunStatus(RUN, "round 1 (contribution)", False, True, sites)
    show_status(found, Console(file=out, width=160))
    assert f"{units} ± 2" in out.getvalue()
    assert ("far below the nominal" in out.getvalue()) == said


def test_a_finished_run_that_is_repeated_says_so_and_changes_nothing(place: DemoFolders) -> None:
    local = LocalConsortium(place)
    out = carry_out(local)
    for _ in range(20):
        local.pump()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    said = io.StringIO()
    report = run_study(place.files, Clock(), Console(file=said, width=200))
    assert report.study == "small"
    assert "small-0001 is finished" in said.getvalue()
    assert "nothing is computed or charged" in said.getvalue()
    assert before == {p: p.stat().st_mtime_ns for p in before}


def test_a_site_in_set_up_names_the_sites_that_are_awaited(place: DemoFolders) -> None:
    local = Dying(place, absent={"west"})
    with pytest.raises(KeyboardInterrupt):
        local.centre().open()
    (awaited,) = {local.agent(name)._runs[RUN].awaited for name in SITES[:3]}
    assert awaited == "the centre (start; it waits for west)"
