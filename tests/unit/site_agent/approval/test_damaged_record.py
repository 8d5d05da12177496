"""Records of what is approved: each counts for its own study alone."""

from pathlib import Path

import pytest

from consortium.errors import SiteError
from site_agent.approval.approval import APPROVED
from tests.support.forgery import settle
from tests.support.local_consortium import LocalConsortium, conduct

DAMAGED = "is damaged, or of an earlier version. Remove it and approve"


def test_a_damaged_record_stops_its_own_study_alone(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    other = place.site("north") / APPROVED / "other.json"
    other.write_text("{")
    local = LocalConsortium(place)
    assert conduct(local.centre())
    assert local.said("north").count(f"{other} {DAMAGED}") == 1


def test_a_study_whose_own_record_is_damaged_is_not_begun(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    own = place.site("north") / APPROVED / "small.json"
    own.write_text("{")
    local = LocalConsortium(place)
    with pytest.raises(SiteError, match="north"):
        conduct(local.centre())
    assert f"{own} {DAMAGED}" in local.said("north")
