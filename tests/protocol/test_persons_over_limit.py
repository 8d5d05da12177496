"""A study goes on without participants who have no budget left; its plan does not change."""

from dataclasses import replace
from pathlib import Path

from site_agent.data.bids import labels_in
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.policy.policy import Policy
from tests.support.charges import up_to
from tests.support.forgery import settle
from tests.support.local_consortium import LocalConsortium, conduct

EARLIER = Charge(
    *("/another/folder", "earlier", "earlier-0001", 1, "pca", "second_moment", "subject", 9.0),
    *("5a" * 32, "ce" * 32, "9e" * 32, 1.0),
)


def _spend_one(root: Path) -> tuple[LocalConsortium, str]:
    """One of east's persons took part in a dear study, under another path."""
    place = settle(root / "place")
    first = labels_in(place.dataset("east"))[0]
    book = Ledger(place.site("east") / LEDGER)
    book.reserve(replace(EARLIER, persons=book.enroll([first])), up_to(9), "before")
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
