"""A site that hears its neighbours dies at every write it makes, and nobody can tell."""

from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.secagg.messages import BROADCAST
from site_agent.run.neighbours import Neighbours
from tests.protocol.deaths import Deaths, check_ledgers, die_everywhere
from tests.support.forgery import Mail, settle
from tests.support.gossip_algorithm import ROUNDS, TEXT, register

REST = 20
"""Places that pass between two deaths of one run; a round has a dozen."""


def play(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let east die everywhere in runs of the gossip."""
    register(monkeypatch)
    source = settle(root / "place", text=TEXT).root
    return die_everywhere(source, root, Deaths("east", REST), check)


def check(place: DemoFolders, mail: Mail) -> None:
    """Each round was charged once, and told to the neighbours."""
    check_ledgers(place, ROUNDS)
    assert sum(f"/{BROADCAST}/east" in name for name in mail.sent) == ROUNDS


@pytest.mark.long
def test_death_at_every_write_of_a_site_that_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = play(tmp_path, monkeypatch)
    assert places > 50, "too few places to die were tried"


def test_a_site_that_forgets_what_it_told_its_neighbours_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Neighbours, "kept", lambda neighbours, number: None)
    with pytest.raises(AssertionError, match="east died"):
        play(tmp_path, monkeypatch)
