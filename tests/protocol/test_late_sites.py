"""A site that missed a round is awaited less in the next ones, until it answers again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from consortium.errors import SiteError
from consortium.exchange import DirectoryExchange
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


class LateView(DirectoryExchange):
    """A share that shows one site's first contribution a round too late, and keeps a clock."""

    clock = staticmethod(lambda _name, stored: stored)

    def get(self, name: str, limit: int) -> bytes | None:
        return None if name.endswith("00001/contribution/south") else super().get(name, limit)

    def stored_at(self, name: str) -> float | None:
        stored = super().stored_at(name)
        return None if stored is None else self.clock(name, stored)


@pytest.mark.parametrize(
    ("clock", "wait"),
    [
        (lambda _name, stored: stored, 4),
        (lambda _name, stored: stored + 1e9, 4),  # a clock that is wrong is wrong for both
        (lambda name, stored: stored + 1e9 * name.endswith("south"), 1),  # lies: south is late
        (lambda name, stored: stored - 1e9 * name.endswith("south"), 4),  # lies: south was early
        (lambda _name, _stored: None, 1),
    ],
)
def test_a_site_is_late_by_the_exchanges_clock_and_not_by_the_centres_look(
    clock: Callable[[str, float], float], wait: float, tmp_path: Path
) -> None:
    text = STUDY.replace("answer: 4", "answer: 4, late: 1")
    local = LocalConsortium(settle(tmp_path / "place", dropouts=1, text=text))
    centre = local.centre()
    centre.open()
    view = LateView(Path(local.place.files.exchange))
    view.clock = clock  # type: ignore[method-assign]
    centre._mail.exchange = view
    assert len(centre.step().survivors) == 3
    local.absent = {"south"}
    before = local.ticks.now
    assert len(centre.step().survivors) == 3
    assert local.ticks.now - before == pytest.approx(wait, abs=0.5)
    assert ("in time by the exchange's clock" in local.said("centre")) == (wait == 4)
