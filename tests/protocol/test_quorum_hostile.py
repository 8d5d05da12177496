"""A hostile centre's word who takes part: a site starts once, as its study allows, or never."""

from pathlib import Path

import pytest

from consortium.engine.names import ANNOUNCEMENT, START
from consortium.engine.run_context import start_notice
from consortium.errors import SiteError
from consortium.membership.roster import read_roster
from tests.support.forgery import (
    NAMES,
    RUN,
    Mail,
    ledger,
    path_of,
    pump,
    refusal,
    settle,
    sign,
    write,
)
from tests.support.local_consortium import SITES, STUDY, LocalConsortium

HERE = SITES[:3]
QUORUM = STUDY.replace("rounds: 2", "rounds: 1").replace("west]\n", "west]\nquorum: 3\n")


def _announced(root: Path) -> LocalConsortium:
    """Every site has said that it is there; the start is the test's."""
    place = settle(root / "place", text=QUORUM)
    local = LocalConsortium(place)
    body = local.centre().context.announcement
    write(place, NAMES.study(), sign(place, ANNOUNCEMENT, 0, body))
    pump(local, 3)
    assert all(path_of(place, NAMES.present(site)).exists() for site in SITES)
    return local


def _start(local: LocalConsortium, sites: tuple[str, ...]) -> None:
    write(local.place, NAMES.start(), sign(local.place, START, 0, start_notice(sites)))


def _joined(local: LocalConsortium, site: str) -> bool:
    return path_of(local.place, NAMES.setup("advertise", site)).exists()


WRONG = {
    "a foreign name": ("north", "east", "stranger", "west"),
    "the centre itself": ("centre", "north", "east", "west"),
    "fewer than the quorum": ("north", "west"),
    "nobody else": ("west",),
    "another order": ("west", "north", "east"),
    "a site twice": ("north", "north", "east", "west"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_start_that_the_study_does_not_allow_is_refused(wrong: str, tmp_path: Path) -> None:
    local = _announced(tmp_path)
    _start(local, WRONG[wrong])
    pump(local, 3)
    told = refusal(local.place, "west", read_roster(local.place.files.roster).keys)
    assert told is not None
    assert told["code"] == "study"
    assert not _joined(local, "west")
    assert ledger(local.place, "west") == []


def test_a_start_without_a_site_ends_its_part(tmp_path: Path) -> None:
    local = _announced(tmp_path)
    _start(local, HERE)
    pump(local, 3)
    assert f"{RUN} has ended: left out" in local.said("west")
    _start(local, SITES)  # it can't be called back
    local.agents.clear()
    pump(local, 3)
    assert not _joined(local, "west")
    assert _joined(local, "north")


@pytest.mark.parametrize("restart", [False, True])
def test_a_site_that_starts_with_some_never_goes_on_with_others(
    restart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, mail = _announced(tmp_path), Mail(monkeypatch)
    _start(local, SITES)
    pump(local, 3)
    assert all(_joined(local, site) for site in SITES)
    _start(local, ("north", "east", "west"))
    if restart:
        local.agents.clear()
    with pytest.raises(SiteError, match="no sound 'advertise' message"):
        local.centre().open()
    assert len(mail.sent[NAMES.setup("advertise", "west")]) == 1
    assert all(ledger(local.place, site) == [] for site in SITES)


@pytest.mark.parametrize("fault", ["not JSON", "no list", "signed by a site", "of another kind"])
def test_a_start_that_is_none_is_waited_over(fault: str, tmp_path: Path) -> None:
    local = _announced(tmp_path)
    place, body = local.place, start_notice(SITES)
    message = {
        "not JSON": sign(place, START, 0, b"\xff{"),
        "no list": sign(place, START, 0, b'{"sites": "north"}'),
        "signed by a site": sign(place, START, 0, body, who="east"),
        "of another kind": sign(place, ANNOUNCEMENT, 0, body),
    }[fault]
    write(place, NAMES.start(), message)
    pump(local, 3)
    assert not _joined(local, "west")
    _start(local, SITES)
    pump(local, 3)
    assert _joined(local, "west")
