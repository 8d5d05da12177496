"""A site that missed a round is awaited less in the next ones, until it answers again."""

from pathlib import Path

import pytest

from consortium.errors import SiteError
from tests.support.forgery import settle
from tests.support.local_consortium import STUDY, LocalConsortium


def test_a_late_site_is_awaited_less_until_it_answers_again(tmp_path: Path) -> None:
    text = STUDY.replace("rounds: 2", "rounds: 4").replace("answer: 4", "answer: 4, late: 1")
    local = LocalConsortium(settle(tmp_path / "place", dropouts=1, text=text))
    centre = local.centre()
    centre.open()
    waits, survivors = [], []
    for absent in ({"south"}, {"south"}, set(), {"south"}, set()):
        local.absent = absent
        before = local.ticks.now
        survivors.append(len(centre.step().survivors))
        waits.append(local.ticks.now - before)
    assert survivors == [3, 3, 4, 3, 4]
    assert waits[0] == pytest.approx(4, abs=0.5)
    assert waits[1] == pytest.approx(1, abs=0.3)
    assert waits[2] < 0.5
    assert waits[3] == pytest.approx(4, abs=0.5)
    assert waits[4] < 0.5


def test_two_late_sites_are_two_too_many(tmp_path: Path) -> None:
    text = STUDY.replace("answer: 4", "answer: 4, late: 1")
    local = LocalConsortium(settle(tmp_path / "place", dropouts=1, text=text))
    centre = local.centre()
    centre.open()
    local.absent = {"south"}
    centre.step()
    local.absent = {"south", "west"}
    before = local.ticks.now
    with pytest.raises(SiteError, match="south, west: no sound answer to round 2"):
        centre.step()
    assert local.ticks.now - before == pytest.approx(4, abs=0.5)  # west was not late before
