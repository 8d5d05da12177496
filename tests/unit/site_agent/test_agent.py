"""An agent meets runs: of what was approved, as often as it was, and no other."""

import shutil
from datetime import date
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import SiteError
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import sign_study
from site_agent.approval.approval import Terms, approve
from site_agent.config import SiteConfig
from site_agent.layout import APPROVED
from site_agent.policy.policy import Policy
from tests.support.forgery import ledger
from tests.support.local_consortium import (
    SITES,
    LocalConsortium,
    build,
    conduct,
    limit,
    say_yes,
)


def _again(place: DemoFolders, name: str) -> LocalConsortium:
    """A centre that starts the same study in a new output folder."""
    place.files.out.rename(place.root / name)
    return LocalConsortium(place)


def _runs(place: DemoFolders, site: str) -> set[str]:
    return {line.charge.run for line in ledger(place, site)}


def test_a_second_run_needs_a_second_yes(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    for name in SITES:
        limit(place, name, 50.0)
    first = conduct(LocalConsortium(place).centre())
    local = _again(place, "earlier")
    second = local.centre()
    with pytest.raises(SiteError, match="takes no further part") as ended:
        conduct(second)
    second.abort(ended.value)
    assert "approved for 1 run and had as many" in local.said("north")
    for name in SITES:
        assert _runs(place, name) == {"small-0001"}
        say_yes(place, name, runs=2)
    third = _again(place, "refused")
    assert conduct(third.centre()) != first  # another run, another noise
    assert len(_runs(place, "north")) == 2


def test_an_agent_leaves_ended_runs_alone(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    local = LocalConsortium(place)
    conduct(local.centre())
    for _ in range(3):
        local.pump()  # hears of the end
    later = LocalConsortium(place)
    later.pump()
    later.pump()
    assert "takes part" not in later.said("north")


class _LateDecision(LocalConsortium):
    """A consortium in which west approves once its agent has seen the announced run."""

    def pump(self) -> None:
        super().pump()
        undecided = not (self.place.site("west") / APPROVED / "small.json").exists()
        if undecided and "small-0001 is not approved here" in self.said("west"):
            say_yes(self.place, "west")


def test_a_site_that_approves_after_the_announcement_joins_the_run(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    shutil.rmtree(place.site("west") / APPROVED)
    local = _LateDecision(place)
    assert conduct(local.centre())
    assert "small-0001 is not approved here" in local.said("west")
    assert _runs(place, "west") == {"small-0001"}


def _meet(place: DemoFolders) -> LocalConsortium:
    """Let everybody look at a run whose centre is not answered by all."""
    local = LocalConsortium(place)
    with pytest.raises(SiteError):
        conduct(local.centre())
    assert all(_runs(place, site) == set() for site in SITES)
    return local


def test_a_comment_that_changed_after_the_yes_is_refused_at_the_meeting(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    files = place.files
    files.study.write_text(files.study.read_text() + "# one character more\n")
    sign_study(files.study, read_roster(files.roster), load_identity(files.keys).key)
    for name in ("north", "east", "south"):
        say_yes(place, name)
    local = _meet(place)
    assert "is not the one that was approved here" in local.said("west")
    assert "takes part" in local.said("north")


def test_an_edited_record_refuses_the_run(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    (record,) = (place.site("west") / "approved").glob("*.json")
    record.write_text(record.read_text().replace('"runs": 1', '"runs": 9'))
    assert "is not signed with this site's key" in _meet(place).said("west")


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        (Terms(until=date(2026, 11, 20)), "ended on 2026-11-20"),
        (Terms(epsilon=7.9), "approved for ε = 7.9 in all, and another run could make it 8"),
    ],
)
def test_a_run_beyond_the_terms_is_refused(terms: Terms, reason: str, tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    folder, files = place.site("west"), place.files
    approve(folder, "west", load_identity(folder), files.study, files.roster, terms)
    assert reason in _meet(place).said("west")


def _after_a_first_run(tmp_path: Path) -> LocalConsortium:
    """Agents at work, who may answer a second run."""
    place = build(tmp_path / "place")
    for name in SITES:
        limit(place, name, 50.0)
    local = LocalConsortium(place)
    conduct(local.centre())
    local.pump()
    for name in SITES:
        say_yes(place, name, runs=2)
    place.files.out.rename(place.root / "earlier")
    return local


def _stand(local: LocalConsortium) -> None:
    """Let a changed file stand for long enough to count."""
    local.pump()
    local.ticks.clock().pause(2.0)


def test_a_policy_that_changed_counts_in_the_next_run(tmp_path: Path) -> None:
    local = _after_a_first_run(tmp_path)
    Policy(statistics=("power",)).save(local.place.site("north"))
    _stand(local)
    with pytest.raises(SiteError, match=r"north takes no further part \(privacy\)"):
        conduct(local.centre())
    assert "site.yaml and policy.yaml changed" in local.said("north")
    assert "field 'statistics'" in local.said("north")


def test_a_run_under_way_keeps_the_policy_that_it_began_with(tmp_path: Path) -> None:
    local = LocalConsortium(build(tmp_path / "place"))
    centre = local.centre()
    centre.open()
    centre.step()
    Policy(statistics=("power",)).save(local.place.site("north"))
    _stand(local)
    while centre.session is not None and centre.session.pending is not None:
        centre.step()
    assert centre.finish().arrays


@pytest.mark.parametrize(
    "text", ["subject: {study: secret-4711}", "a: &b [secret-4711", "hours: 1"]
)
def test_a_broken_policy_refuses_runs_and_tells_nothing_of_it(tmp_path: Path, text: str) -> None:
    local = _after_a_first_run(tmp_path)
    (local.place.site("north") / "policy.yaml").write_text(text)
    _stand(local)
    centre = local.centre()
    with pytest.raises(SiteError, match=r"north takes no further part \(configuration\)") as told:
        conduct(centre)
    centre.abort(told.value)
    assert "policy.yaml" in local.said("north")
    assert "no run begins here until this is fixed" in local.said("north")
    for crossed in (str(told.value), local.said("centre")):
        assert "secret" not in crossed
        assert "policy.yaml" not in crossed
    assert _runs(local.place, "north") == {"small-0001"}
    limit(local.place, "north", 50.0)  # mended
    _stand(local)
    local.place.files.out.rename(local.place.root / "refused")
    assert conduct(local.centre())


def test_a_policy_that_is_gone_does_not_leave_the_defaults(tmp_path: Path) -> None:
    local = _after_a_first_run(tmp_path)
    (local.place.site("north") / "policy.yaml").unlink()
    _stand(local)
    with pytest.raises(SiteError, match=r"north takes no further part \(configuration\)"):
        conduct(local.centre())
    assert "policy.yaml is missing" in local.said("north")


def test_no_run_begins_while_a_file_is_being_written(tmp_path: Path) -> None:
    local = _after_a_first_run(tmp_path)
    (local.place.site("north") / "policy.yaml").write_text("")  # an editor's first step
    local.pump()
    assert "changed; new runs" not in local.said("north")
    limit(local.place, "north", 50.0)
    assert conduct(local.centre())
    assert "changed; new runs" in local.said("north")


def test_another_exchange_waits_for_a_new_agent(tmp_path: Path) -> None:
    local = _after_a_first_run(tmp_path)
    folder = local.place.site("north")
    other = SiteConfig.load(folder).model_copy(update={"ledger": tmp_path / "fresh.sqlite"})
    other.save(folder)
    _stand(local)
    with pytest.raises(SiteError, match=r"north takes no further part \(configuration\)"):
        conduct(local.centre())
    assert "field 'ledger' has changed since the agent was started" in local.said("north")
    assert not (tmp_path / "fresh.sqlite").exists()
