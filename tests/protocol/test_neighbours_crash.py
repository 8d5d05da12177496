"""A site that hears its neighbours dies at every write it makes, and nobody can tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from gossip import ROUNDS, TEXT, register
from mischief import Mail, settle
from reaper import Plague, check_ledgers, conduct_mortally, copy_place
from village import Village, conduct

from consortium.engine.hearing import BROADCAST

REST = 20
"""Places that pass between two deaths of one run; a round has a dozen."""


def test_death_at_every_write_of_a_site_that_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch)
    source = settle(tmp_path / "place", text=TEXT).root
    unbroken = conduct(Village(copy_place(source, tmp_path / "unbroken")).centre())
    plague, struck = Plague("east", REST), -1
    while struck < len(plague.struck):
        struck = len(plague.struck)
        place = copy_place(source, tmp_path / str(struck))
        with monkeypatch.context() as patch:
            plague.watch(patch)
            mail = Mail(patch)
            found = conduct_mortally(place, plague)
        died = list(plague.struck)[struck:]
        assert found == unbroken, f"east died {died}"
        check_ledgers(place, ROUNDS)
        mail.check_said_once()
        assert sum(f"/{BROADCAST}/east" in name for name in mail.sent) == ROUNDS
        shutil.rmtree(place.root)
    assert struck > 50, "too few places to die were tried"
