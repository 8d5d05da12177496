"""A run may start with a quorum: whoever is not there is left out, told so, and not charged."""

from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.run_folder import claim_run, read_run
from consortium.engine.centre import Centre
from consortium.engine.mailbox import NOT_APPROVED
from consortium.errors import OutputError, SiteError, StudyError
from consortium.membership.consent import uncovered_sites
from consortium.membership.roster import read_roster
from consortium.study.plan import make_plan
from consortium.study.reader import parse_study
from site_agent.layout import ENDED
from tests.support.forgery import (
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
from tests.support.local_consortium import NOON, SITES, STUDY, LocalConsortium, conduct, limit
from tests.support.membership_files import consent

FOUR = STUDY.replace("rounds: 2", "rounds: 1")
QUORUM = FOUR.replace("west]\n", "west]\nquorum: 3\n")
THREE = QUORUM.replace(", west]", "]")
HERE = SITES[:3]


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The result of a study that never had a fourth site."""
    local = LocalConsortium(settle(tmp_path_factory.mktemp("three") / "place", text=THREE))
    assert local.study.sites == HERE
    return conduct(local.centre())


def _drive(centre: Centre) -> dict[str, bytes]:
    """Run the rounds of an open run; returns the result's arrays as bytes."""
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    return {name: array.tobytes() for name, array in centre.finish().arrays.items()}


def _started_with(place: DemoFolders) -> bytes:
    return path_of(place, NAMES.start()).read_bytes()


# -- a site is not there ------------------------------------------------------------------


def test_a_run_without_a_site_is_a_study_without_it(
    tmp_path: Path, of_three: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    local = LocalConsortium(place, absent={"west"})
    centre = local.centre()
    centre.open()
    assert local.ticks.now == pytest.approx(4, abs=0.5)  # timing.join, and no longer
    assert "starting without west" in local.said("centre")
    assert _drive(centre) == of_three
    assert [rounds_of(place, site) for site in SITES] == [[1, 2], [1, 2], [1, 2], []]


def test_the_site_that_comes_later_is_told_and_changes_nothing(
    tmp_path: Path, of_three: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    local = LocalConsortium(place, absent={"west"})
    centre = local.centre()
    centre.open()
    centre.step()
    local.absent = set()
    assert _drive(centre) == of_three
    pump(local)
    assert f"{RUN} has ended: left out" in local.said("west")
    assert local.agent("west").site.store.load(RUN, ENDED) is not None
    assert ledger(place, "west") == []
    assert refusal(place, "west", read_roster(place.files.roster).keys) is None
    assert not path_of(place, NAMES.setup("advertise", "west")).exists()
    later = LocalConsortium(place)
    pump(later)
    assert "takes part" not in later.said("west")  # left alone from now on


def test_all_are_there_and_nobody_waits(tmp_path: Path) -> None:
    local = LocalConsortium(settle(tmp_path / "place", text=QUORUM))
    local.centre().open()
    assert local.ticks.now < 1
    assert "without" not in local.said("centre")


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
    local = LocalConsortium(place, absent=absent)
    with pytest.raises(SiteError, match=f"^{named}"):
        local.centre().open()
    assert not path_of(place, NAMES.start()).exists()
    assert all(ledger(place, site) == [] for site in SITES)


def test_a_site_without_an_approval_is_asked_for_it(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=FOUR)
    consent(place, "north", "east", "south")
    local = LocalConsortium(place, absent={"south", "west"})
    centre, shown = local.centre(), list[str]()
    exchange, keys = place.files.open_exchange(), read_roster(place.files.roster).keys
    centre.on_absence(lambda: uncovered_sites(exchange, local.study, keys, NOON.date()))
    centre.on_wait(lambda waiting: shown.append(waiting.sites.get("west", "")))
    with pytest.raises(SiteError) as caught:
        centre.open()
    assert str(caught.value) == (
        "west has given no standing approval of this study. Ask it for one. south: not there "
        "within 4 s. Start the site's agent and run the study again. 2 of 4 needed sites are there."
    )
    assert shown[-1] == NOT_APPROVED
    consent(place, "west")
    later = LocalConsortium(place, absent={"west"})
    with pytest.raises(SiteError, match=r"west: not there within 4 s. Start the site's agent"):
        later.centre().open()


# -- a site refuses -----------------------------------------------------------------------


def test_a_site_that_refuses_is_left_out_at_once(
    tmp_path: Path, of_three: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    limit(place, "west", 1.0)
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    assert local.ticks.now < 1
    assert "west takes no further part (budget)" in local.said("centre")
    assert _drive(centre) == of_three
    assert ledger(place, "west") == []


def test_without_quorum_the_site_that_refuses_is_named_at_once(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=FOUR)
    limit(place, "west", 1.0)
    local = LocalConsortium(place)
    with pytest.raises(SiteError, match=r"west takes no further part \(budget\)"):
        local.centre().open()
    assert local.ticks.now < 1


def test_refusing_and_missing_are_told_apart(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    limit(place, "west", 1.0)
    local = LocalConsortium(place, absent={"south"})
    with pytest.raises(SiteError) as caught:
        local.centre().open()
    assert "west takes no further part (budget)" in str(caught.value)
    assert "south: not there within 4 s" in str(caught.value)


def test_a_refusal_that_somebody_else_wrote_leaves_nobody_out(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=QUORUM)
    write(place, NAMES.refusal("west"), sign(place, "refusal", 0, b"{}", who="east"))
    local = LocalConsortium(place)
    local.centre().open()
    assert "without" not in local.said("centre")


# -- restarts -----------------------------------------------------------------------------


class Forgetful(LocalConsortium):
    """A consortium whose agents are built anew after every message that anybody posted."""

    messages = 0

    def pump(self) -> None:
        found = sum(1 for _ in Path(self.place.files.exchange).rglob("*"))
        if found != self.messages:
            self.messages = found
            self.agents.clear()
        super().pump()


def test_everybody_restarts_between_every_step(
    tmp_path: Path, of_three: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = Mail(monkeypatch)
    place = settle(tmp_path / "place", text=QUORUM)
    local = Forgetful(place, absent={"west"})
    local.centre().open()
    started = _started_with(place)
    local.absent = set()  # too late
    while True:
        centre = local.centre()
        centre.open()
        assert centre.context.study.sites == HERE
        assert centre.session is not None
        if centre.session.pending is None:
            break
        centre.step()
    assert _drive(centre) == of_three
    assert _started_with(place) == started
    mail.check_said_once()
    assert [rounds_of(place, site) for site in SITES] == [[1, 2], [1, 2], [1, 2], []]


# -- what was agreed is carried out -------------------------------------------------------

FAINT = (
    FOUR.replace(": 10", ": 3")
    .replace("algorithm: ica", "algorithm: group_ica")
    .replace("{components: 2, rounds: 1, pca_solver: moment}", "{components: 4, replays: 10}")
)


def test_a_study_that_everybody_approved_is_carried_out_whatever_it_will_show(
    tmp_path: Path,
) -> None:
    centre = LocalConsortium(settle(tmp_path / "place", text=FAINT)).centre()
    assert conduct(centre)
    assert centre.session is not None
    plan = centre.session.plan
    with pytest.raises(StudyError, match=r"analysis\.anyway"):
        make_plan(plan.study, plan.shape)


def test_the_output_of_a_run_that_was_given_up_may_be_taken_by_the_study_that_was_mended(
    tmp_path: Path,
) -> None:
    place = settle(tmp_path / "place", text=FOUR)
    local = LocalConsortium(place)
    files, keys = place.files, {**read_roster(place.files.roster).sites, "centre": b""}
    keys["centre"] = read_roster(files.roster).centre
    centre = local.centre()
    first = read_run(files.out)
    mended = parse_study(files.study.read_text().replace("epsilon: 8", "epsilon: 7"))
    exchange = files.open_exchange()
    with pytest.raises(OutputError, match="is the output folder of another study"):
        claim_run(files.out, mended, exchange, keys)
    assert read_run(files.out) == first
    centre.abort(SiteError("west is not there. Ask it."))
    taken = claim_run(files.out, mended, exchange, keys)
    assert (taken.study, read_run(files.out)) == (mended.digest, taken)


def test_sites_that_lack_the_same_are_named_in_one_sentence(tmp_path: Path) -> None:
    place = settle(tmp_path / "place", text=FOUR)
    consent(place, "north", "east")
    local = LocalConsortium(place, absent={"south", "west"})
    centre = local.centre()
    exchange, keys = place.files.open_exchange(), read_roster(place.files.roster).keys
    centre.on_absence(lambda: uncovered_sites(exchange, local.study, keys, NOON.date()))
    with pytest.raises(SiteError) as caught:
        centre.open()
    assert str(caught.value).startswith("south, west: each has given no standing approval")
