"""One yes is for one run: another run of an approved study needs another yes."""

from pathlib import Path

import pytest
from village import SITES, Village, build, conduct

from consortium.errors import SiteError
from site_agent.approval import approve
from site_agent.ledger import LEDGER, Ledger


def _again(place) -> Village:
    """A centre that starts the same study in a new output folder."""
    place.errand.out.rename(place.root / "earlier")
    (place.errand.out).mkdir()
    return Village(place)


def test_a_second_run_needs_a_second_yes(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    first = conduct(Village(place).centre())
    village = _again(place)
    with pytest.raises(SiteError, match="takes no further part"):
        conduct(village.centre())
    assert "approved for 1 runs and had them" in village.said("north")
    for name in SITES:
        assert len(Ledger(place.site(name) / LEDGER).runs("small")) == 1
        approve(place.site(name), place.errand.study, place.errand.roster)
    third = _third(place)
    assert conduct(third.centre()) != first  # another run, another noise
    assert len(Ledger(place.site("north") / LEDGER).runs("small")) == 2


def _third(place) -> Village:
    place.errand.out.rename(place.root / "refused")
    place.errand.out.mkdir()
    return Village(place)


def test_an_agent_leaves_ended_runs_alone(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    village = Village(place)
    conduct(village.centre())
    for _ in range(3):
        village.pump()  # hears of the end
    later = Village(place)
    later.pump()
    later.pump()
    assert "takes part" not in later.said("north")
