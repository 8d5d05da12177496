"""Sites that vanish: the run goes on where the study allows it, and the report's μ is exact."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from consortium.engine.centre import Centre
from consortium.errors import BudgetError, SiteError, StudyError, ThresholdError
from consortium.privacy.mechanism import Mechanism
from consortium.report.accounting import account
from consortium.study.plan import Plan
from consortium.study.reader import parse_study
from tests.support.forgery import NAMES, path_of, pump, rounds_of, settle
from tests.support.local_consortium import SITES, STUDY, LocalConsortium

BOOSTS = ("exact", "10000")


def direct_loss(mechanism: Mechanism, present: tuple[int, ...], site: int) -> float:
    """μ of one site from the full covariance of all that the worst coalition sees."""
    noise = mechanism.noise
    delta = mechanism.sensitivities[site]
    worst = 0.0
    others = [s for s in present if s != site]
    for colluders in combinations(others, mechanism.colluding):
        honest = [s for s in present if s not in colluders]
        local = np.array([noise.local[s] ** 2 for s in honest])
        correlated = np.array([noise.correlated[s] ** 2 for s in honest])
        place = honest.index(site)
        if mechanism.exact:  # the coalition sees the honest sites' sum
            information = 1.0 / local.sum()
        else:  # every message, and the sum of the honest ê
            count = len(honest)
            view = np.zeros((count + 1, count + 1))
            view[:count, :count] = np.diag(local + correlated)
            view[:count, count] = view[count, :count] = correlated
            view[count, count] = correlated.sum()
            information = float(np.linalg.inv(view)[place, place])
        worst = max(worst, delta * float(np.sqrt(information)))
    return worst


def _drive(centre: Centre) -> list[tuple[str, ...]]:
    assert centre.session is not None
    survivors = []
    while centre.session.pending is not None:
        survivors.append(tuple(SITES[s] for s in centre.step().survivors))
    centre.finish()
    return survivors


def _opened(root: Path, boost: str, dropouts: int) -> tuple[LocalConsortium, Centre, Plan]:
    local = LocalConsortium(settle(root, boost=boost, dropouts=dropouts))
    centre = local.centre()
    plan = centre.open()
    pump(local, 2)
    return local, centre, plan


def _check_report(centre: Centre, plan: Plan) -> None:
    assert centre.session is not None
    rounds = centre.session.rounds
    report = account(plan, rounds, 24)
    for index, record in enumerate(report.sites):
        squares = 0.0
        for done in rounds:
            mechanism = plan.stage(done.stage).mechanism
            if index in done.survivors:
                squares += direct_loss(mechanism, done.survivors, index) ** 2
            else:
                squares += float(mechanism.coalition()[index]) ** 2
        assert record.mu_coalition == pytest.approx(np.sqrt(squares), rel=1e-6)
        assert record.mu_coalition <= plan.promised_mu * (1 + 1e-9)
    assert report.guarantees.coalition.mu == max(s.mu_coalition for s in report.sites)


@pytest.mark.parametrize("boost", BOOSTS)
def test_one_site_misses_a_round_and_comes_back(boost: str, tmp_path: Path) -> None:
    local, centre, plan = _opened(tmp_path / "place", boost, 1)
    centre.step()
    local.absent = {"south"}
    centre.step()
    local.absent = set()
    survivors = _drive(centre)
    assert centre.session is not None
    assert [d.survivors for d in centre.session.rounds] == [(0, 1, 2, 3), (0, 1, 3), (0, 1, 2, 3)]
    assert survivors == [SITES]
    pump(local)
    assert rounds_of(local.place, "south") == [1, 3]
    assert rounds_of(local.place, "north") == [1, 2, 3]
    _check_report(centre, plan)


@pytest.mark.parametrize("boost", BOOSTS)
@pytest.mark.parametrize("number", [1, 2])
def test_one_site_is_gone_for_good(boost: str, number: int, tmp_path: Path) -> None:
    local, centre, plan = _opened(tmp_path / "place", boost, 1)
    for _ in range(number - 1):
        centre.step()
    local.absent = {"west"}
    assert _drive(centre) == [SITES[:3]] * (4 - number)
    assert rounds_of(local.place, "west") == list(range(1, number))
    _check_report(centre, plan)


class Leaving(LocalConsortium):
    """A consortium that one site leaves as soon as its first contribution is posted."""

    def pump(self) -> None:
        super().pump()
        if path_of(self.place, NAMES.round(1, "contribution", "east")).exists():
            self.absent = {"east"}


@pytest.mark.parametrize("boost", BOOSTS)
def test_gone_between_contribution_and_unmasking(boost: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place", boost=boost, dropouts=1)
    local = Leaving(place)
    centre = local.centre()
    plan = centre.open()
    assert _drive(centre) == [SITES, *[("north", "south", "west")] * 2]
    assert not path_of(place, NAMES.round(1, "unmasking", "east")).exists()
    assert rounds_of(place, "east") == [1]
    _check_report(centre, plan)


def test_too_many_gone_between_contribution_and_unmasking(tmp_path: Path) -> None:
    class Emptying(LocalConsortium):
        def pump(self) -> None:
            super().pump()
            if path_of(self.place, NAMES.round(1, "contribution", "west")).exists():
                self.absent = {"east", "west"}

    local = Emptying(settle(tmp_path / "place", dropouts=1))
    centre = local.centre()
    centre.open()
    with pytest.raises(ThresholdError, match=r"^east, west: .* round 1 "):
        centre.step()


@pytest.mark.parametrize("kind", ["present", "advertise", "share"])
def test_gone_during_set_up_stops_and_names_it(kind: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place", dropouts=1)
    local = LocalConsortium(place)

    def leave() -> None:
        local.pump()
        last = {"advertise": NAMES.present("west"), "share": NAMES.setup("advertise", "west")}
        if kind in last and path_of(place, last[kind]).exists():
            local.absent = {"west"}

    local.ticks.others = leave
    local.absent = {"west"} if kind == "present" else set()
    said = "not there" if kind == "present" else f"no sound '{kind}' message"
    with pytest.raises(SiteError, match=f"^west: {said} within 4 s"):
        local.centre().open()
    assert all(rounds_of(place, site) == [] for site in SITES)


@pytest.mark.parametrize("boost", BOOSTS)
def test_none_may_be_missing(boost: str, tmp_path: Path) -> None:
    local, centre, _ = _opened(tmp_path / "place", boost, 0)
    centre.step()
    local.absent = {"south"}
    with pytest.raises(SiteError, match=r"^south: no sound answer to round 2 within 4 s") as caught:
        centre.step()
    assert centre.session is not None
    assert len(centre.session.rounds) == 1
    centre.abort(caught.value)
    pump(local)
    assert "has ended: aborted" in local.said("north")


def test_session_stops_where_survivors_are_too_few_for_the_promise(tmp_path: Path) -> None:
    _, centre, _ = _opened(tmp_path / "place", "exact", 0)
    session = centre.session
    assert session is not None
    entries = session.stage.mechanism.entries
    with pytest.raises(BudgetError, match="round 1 of 'pca'"):
        session.accept(np.zeros(entries), (0, 1))
    assert session.rounds == []


def test_more_dropouts_than_the_threshold_allows_is_a_study_error(tmp_path: Path) -> None:
    text = STUDY.replace("BOOST", "exact").replace("DROPOUTS", "2")
    assert parse_study(text)
    with pytest.raises(StudyError, match="dropouts must be at most 1 with"):
        _opened(tmp_path / "place", "exact", 2)
