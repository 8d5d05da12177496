"""A site that hears its neighbours dies at every write it makes, and nobody can tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from gossip import ROUNDS, TEXT, register
from mischief import Mail, settle
from reaper import Plague, check_ledgers, conduct_mortally, copy_place
from village import Village, conduct

from consortium.demo import Place
from consortium.engine.hearing import BROADCAST
from site_agent.neighbours import Neighbours

REST = 20
"""Places that pass between two deaths of one run; a round has a dozen."""


def die_everywhere(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Play runs until east has died at every place; returns how many there are."""
    register(monkeypatch)
    source = settle(root / "place", text=TEXT).root
    unbroken = conduct(Village(copy_place(source, root / "unbroken")).centre())
    plague, struck = Plague("east", REST), -1
    while struck < len(plague.struck):
        struck = len(plague.struck)
        place = copy_place(source, root / str(struck))
        with monkeypatch.context() as patch:
            plague.watch(patch)
            mail = Mail(patch)
            found = conduct_mortally(place, plague)
        assert found == unbroken, f"east died {list(plague.struck)[struck:]}"
        check(place, mail)
        shutil.rmtree(place.root)
    return struck


def check(place: Place, mail: Mail) -> None:
    """Each round was charged once and answered once, to the centre and to the neighbours."""
    check_ledgers(place, ROUNDS)
    mail.check_said_once()
    assert sum(f"/{BROADCAST}/east" in name for name in mail.sent) == ROUNDS


def test_death_at_every_write_of_a_site_that_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = die_everywhere(tmp_path, monkeypatch)
    assert places > 50, "too few places to die were tried"


def test_a_site_that_forgets_what_it_told_its_neighbours_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Neighbours, "kept", lambda neighbours, number: None)
    with pytest.raises(AssertionError, match="east died"):
        die_everywhere(tmp_path, monkeypatch)
