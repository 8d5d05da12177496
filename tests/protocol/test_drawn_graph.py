"""Centre and agents within a drawn graph, all of them restarted after each round."""

from pathlib import Path

import pytest

from consortium.secagg.graph import Neighbourhood
from consortium.study import masking
from tests.protocol.deaths import Deaths, check_ledgers, die_everywhere
from tests.support.forgery import settle
from tests.support.local_consortium import SITES, STUDY, LocalConsortium

GRAPH = Neighbourhood(holders=2, threshold=2, hidden=0, failure=2.0**-60)
"""Two holders each keep four sites together; without a plan's floor, as no site colludes here."""


@pytest.mark.parametrize("boost", ["exact", "10000"])
def test_a_run_within_a_graph_ends_as_any_other(
    boost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "plan_neighbourhood", lambda *_: GRAPH)
    local = LocalConsortium(settle(tmp_path / "place", boost=boost, dropouts=0))
    centre = local.centre()
    plan = centre.open()
    assert centre.context.roster.holders == plan.masking.holders == 2
    assert centre._sizes.holders == 2
    while centre.session is not None and centre.session.pending is not None:
        assert centre.step().survivors == tuple(range(len(SITES)))
        local.agents.clear()  # everybody is started again from what is stored
        centre = local.centre()
        assert centre.open() == plan
    assert centre.finish().arrays
    assert all(f"answered round {plan.rounds}" in local.said(site) for site in SITES)


@pytest.mark.parametrize("victim", ["east", pytest.param("centre", marks=pytest.mark.long)])
def test_death_at_every_write_within_a_graph(
    victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "plan_neighbourhood", lambda *_: GRAPH)
    text = STUDY.replace("rounds: 2", "rounds: 1")
    source, deaths = settle(tmp_path / "place", text=text).root, Deaths(victim, 3)
    places = die_everywhere(source, tmp_path, deaths, lambda place, _: check_ledgers(place, 2))
    assert places > (40 if victim == "east" else 20), "too few places to die were tried"
