"""A study goes on without participants who have no budget left; its plan does not change."""

import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from consortium.engine.centre import Centre
from consortium.errors import SiteError, StudyError
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from site_agent import agent
from site_agent.approval.withdrawal import take_back
from site_agent.data.bids import labels_in
from site_agent.layout import APPROVED, LEDGER, STORE
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.policy.policy import Policy
from tests.support.charges import charged
from tests.support.forgery import pump, refusal, settle
from tests.support.local_consortium import LocalConsortium, agree, conduct, limit

EARLIER = Charge(
    *("/another/folder", "earlier", "earlier-0001", 1, "pca", "second_moment", "subject", 9.0),
    *("5a" * 32, "ce" * 32, "9e" * 32, 1.0),
)


def _spend_one(root: Path) -> tuple[LocalConsortium, str]:
    """One of east's persons took part in a dear study, under another path."""
    place = settle(root / "place")
    first = labels_in(place.dataset("east"))[0]
    book = Ledger(place.site("east") / LEDGER)
    charged(book, EARLIER, [first])
    book.close()
    return LocalConsortium(place), first


def test_a_study_goes_on_without_who_has_no_budget_left(tmp_path: Path) -> None:
    local, first = _spend_one(tmp_path)
    centre = local.centre()
    conduct(centre)
    assert centre.session is not None
    assert centre.session.plan.shape.subjects == (10, 10, 10, 10)
    assert "with 2 participants" in local.said("east")
    book = local.agent("east").site.ledger
    stay = [label for label in labels_in(local.place.dataset("east")) if label != first]
    assert book.total("", "subject", [first]) == 9.0
    assert 0 < book.total("", "subject", stay) < 9.0


def test_who_is_left_out_stays_so_after_a_restart(tmp_path: Path) -> None:
    local, _ = _spend_one(tmp_path)
    policy = Policy()
    tight = policy.subject.model_copy(update={"study": 8.0, "total": 8.0})
    policy.model_copy(update={"subject": tight}).save(local.place.site("east"))
    centre = local.centre()
    centre.open()
    centre.step()
    local.agents.clear()  # everybody has been charged by now, and none is left out anew
    while centre.session is not None and centre.session.pending is not None:
        centre.step()
    assert centre.finish().arrays


def _centre(local: LocalConsortium, number: int) -> Centre:
    """The centre of one of several runs of a study."""
    files, context = local.place.files, local.centre().context
    out = local.place.root / f"out-{number}"
    out.mkdir()
    return Centre(
        replace(context, run=f"small-{number:04d}"),
        load_identity(files.keys).key,
        files.open_exchange(),
        out,
        local.ticks.clock(),
        lambda line: local.log.append(("centre", line)),
    )


def _two_runs(root: Path, *, spent: bool) -> tuple[LocalConsortium, dict[str, int]]:
    """Two runs that are set up before either asks a question, where east has the budget for one.

    Returned are the sizes of all that east puts on the exchange, by name.
    """
    place = settle(root / "place")
    agree(place, read_roster(place.files.roster), runs=2)
    limit(place, "east", 8.0)
    book = Ledger(place.site("east") / LEDGER)
    group = labels_in(place.dataset("east")) if spent else ["of-another-data-set"]
    charged(book, EARLIER, group)
    book.close()
    local = LocalConsortium(place)
    centres = [_centre(local, number) for number in (1, 2)]
    for centre in centres:
        centre.open()
    for centre in centres:
        while centre.session is not None and centre.session.pending is not None:
            centre.step()
        assert centre.finish().arrays
    files = (path for path in place.files.exchange.rglob("*") if path.is_file())
    own = (path for path in files if "east" in path.parts)
    return local, {str(p.relative_to(place.files.exchange)): p.stat().st_size for p in own}


def test_runs_that_are_set_up_together_are_alike_whoever_has_budget_left(tmp_path: Path) -> None:
    """The first run holds its loss before the second is set up, which then has nobody."""
    local, sizes = _two_runs(tmp_path / "first", spent=False)
    said = local.said("east")
    assert "takes part in small-0001 with 3 participants" in said
    assert "takes part in small-0002 with 0 participants" in said
    local, with_nobody = _two_runs(tmp_path / "second", spent=True)
    assert "takes part in small-0001 with 0 participants" in local.said("east")
    assert sizes == with_nobody


def test_the_end_of_a_run_leaves_what_its_rounds_cost(tmp_path: Path) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    centre = local.centre()
    centre.open()
    book = Ledger(local.place.site("east") / LEDGER)
    people = labels_in(local.place.dataset("east"))
    assert centre.session is not None
    held = book.total("", "subject", people)
    assert held == pytest.approx(centre.session.plan.promised_mu)
    centre.step()
    assert book.total("", "subject", people) == held
    centre.abort(StudyError("enough"))
    pump(local)
    (charge,) = [e.charge for e in book.entries() if e.event == "reserve"]
    assert book.total("", "subject", people) == charge.mu < held


def test_a_run_that_ended_before_the_site_was_present_is_released(tmp_path: Path) -> None:
    """The site was stopped after it held the loss and before it stored any message."""
    local = LocalConsortium(settle(tmp_path / "place"))
    centre = local.centre()
    centre.open()
    local.agents.pop("east").site.store.close()
    for file in local.place.site("east").glob(f"{STORE}*"):
        file.unlink()
    book = Ledger(local.place.site("east") / LEDGER)
    people = labels_in(local.place.dataset("east"))
    centre.abort(StudyError("enough"))
    assert book.total("", "subject", people) > 0
    pump(local)
    assert book.total("", "subject", people) == 0.0


def test_an_agent_that_starts_again_releases_a_run_that_ended_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped before the release, and the run is no longer on the exchange."""
    local = LocalConsortium(settle(tmp_path / "place"))
    centre = local.centre()
    centre.open()
    book = Ledger(local.place.site("east") / LEDGER)
    people = labels_in(local.place.dataset("east"))
    with monkeypatch.context() as patch:
        patch.setattr(agent, "release", lambda *_: None)
        centre.abort(StudyError("enough"))
        pump(local)
    local.agents.clear()
    shutil.rmtree(local.place.files.exchange / "runs")
    assert book.total("", "subject", people) > 0
    local.agent("east")._begin()
    assert book.total("", "subject", people) == 0.0


@pytest.mark.parametrize("running", [True, False])
def test_a_withdrawal_releases_a_run_whose_end_is_never_heard(
    tmp_path: Path, running: bool
) -> None:
    """The coordinator removes a run from the exchange that was set up and never ended."""
    local = LocalConsortium(settle(tmp_path / "place"))
    local.centre().open()
    if not running:
        local.agents.clear()
    book = Ledger(local.place.site("east") / LEDGER)
    people = labels_in(local.place.dataset("east"))
    shutil.rmtree(local.place.files.exchange / "runs")
    pump(local)
    assert book.total("", "subject", people) > 0
    assert take_back(local.place.site("east"), "small", date(2026, 11, 21)) is None
    assert book.total("", "subject", people) == 0.0
    pump(local)
    assert book.total("", "subject", people) == 0.0


BEFORE = {"present": "", "advertise": "present", "share": "advertise"}
"""Each message of a site's set-up, and the one before it."""


@pytest.mark.parametrize("message", BEFORE)
def test_a_withdrawal_is_noticed_before_the_next_message_of_set_up(
    tmp_path: Path, message: str
) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    folder, run = local.place.site("east"), local.place.files.exchange / "runs" / "small-0001"
    book, withdrawn = Ledger(folder / LEDGER), []
    people = labels_in(local.place.dataset("east"))

    def work() -> None:
        before = run / BEFORE[message] / "east"
        ready = before.exists() if BEFORE[message] else book.total("", "subject", people) > 0
        if ready and not withdrawn:
            assert not (run / message / "east").exists()
            assert take_back(folder, "small", date(2026, 11, 21)) is None
            withdrawn.append(local.ticks.now)
        local.pump()

    local.ticks.others = work
    centre = local.centre()
    with suppress(SiteError):  # unless it goes on without the site
        centre.open()
    pump(local)
    assert withdrawn
    assert not (run / message / "east").exists()
    assert refusal(local.place, "east", centre.context.keys) is not None
    assert not (run / "00001" / "contribution" / "east").exists()
    assert book.total("", "subject", people) == 0.0


def test_nothing_is_released_while_an_approval_cannot_be_read(tmp_path: Path) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    local.centre().open()
    book = Ledger(local.place.site("east") / LEDGER)
    people = labels_in(local.place.dataset("east"))
    held = book.total("", "subject", people)
    (local.place.site("east") / APPROVED / "small.json").write_text("{")
    local.agents.clear()
    local.agent("east")._begin()
    assert book.total("", "subject", people) == held > 0
