"""A site whose cluster goes away in the middle of a run, and comes back."""

from pathlib import Path

import pytest

from consortium.algorithms.base import Query
from site_agent.engines.remote import LostError, Processes, RemoteEngine
from tests.support.forgery import NAMES, ask, opened, path_of, pump, rounds_of, settle
from tests.support.local_consortium import LocalConsortium

QUERY = Query("pca", "second_moment")
FROM_THE_START = 12  # looks at the exchange, for a run that is taken up again


class _Cluster:
    """Processes that can't be reached while it is away."""

    def __init__(self) -> None:
        self.away = False

    def start(self) -> Processes:
        if self.away:
            raise LostError("nobody is there")
        return Processes(1)


def _answered(local: LocalConsortium) -> bool:
    return path_of(local.place, NAMES.round(1, "contribution", "north")).exists()


def test_a_round_is_computed_again_once_the_cluster_is_back_and_charged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = _Cluster()
    engine = RemoteEngine("dask", cluster.start)
    monkeypatch.setattr("site_agent.agent.open_engine", lambda _config: engine)
    local = opened(settle(tmp_path / "place"))
    local.absent = {"east", "south", "west"}
    engine.close()
    cluster.away = True
    ask(local.place, QUERY)
    pump(local, FROM_THE_START)
    assert "engine dask can't be used now (nobody is there). Nothing is charged" in (
        local.said("north")
    )
    assert not _answered(local)
    assert rounds_of(local.place, "north") == []
    assert not path_of(local.place, NAMES.refusal("north")).exists()
    cluster.away = False
    pump(local, FROM_THE_START)
    assert _answered(local)
    assert rounds_of(local.place, "north") == [1]
    engine.close()
