"""A centre that has lost its output folder opens no second run beside the one on the exchange."""

import shutil
from pathlib import Path

import pytest

from consortium.coordinator.open_runs import end_run, open_runs
from consortium.coordinator.run_folder import claim_run
from consortium.engine.centre import Centre
from consortium.engine.names import ANNOUNCEMENT, Names
from consortium.errors import ConsortiumError, OpenRunError, OutputError, StudyError
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.secagg import seal
from tests.support.forgery import settle
from tests.support.local_consortium import SITES, LocalConsortium, agree, conduct

RUN = "small-0001"


def _keys(local: LocalConsortium) -> dict[str, bytes]:
    return {"centre": load_identity(local.place.files.keys).public}


def _claim(local: LocalConsortium, out: Path, resumed: str | None = None) -> str:
    exchange = local.place.files.open_exchange()
    return claim_run(out, local.study, exchange, _keys(local), resumed).run


def _lose(local: LocalConsortium) -> Path:
    """Lose the output folder, and return an empty one in its place."""
    shutil.rmtree(local.place.files.out)
    local.place.files.out.mkdir()
    return local.place.files.out


def _begun(root: Path, absent: set[str], *, rounds: int = 2) -> tuple[LocalConsortium, Centre]:
    """A run with a number of finished rounds; some sites were absent in the first."""
    local = LocalConsortium(settle(root, dropouts=1))
    centre = local.centre()
    centre.open()
    for number in range(1, rounds + 1):
        local.absent = absent if number == 1 else set()
        centre.step()
    local.absent = set()
    return local, centre


def _charged(local: LocalConsortium) -> dict[str, list[tuple[str, int]]]:
    return {
        name: [
            (entry.charge.run, entry.charge.round)
            for entry in local.agent(name).site.ledger.entries()
            if entry.event == "spend"
        ]
        for name in SITES
    }


@pytest.mark.parametrize("absent", [set(), {"south"}])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_a_run_without_its_folder_is_resumed_from_the_exchange(
    absent: set[str], rounds: int, tmp_path: Path
) -> None:
    whole, centre = _begun(tmp_path / "whole", absent, rounds=3)
    result = centre.finish()
    expected = {name: array.tobytes() for name, array in result.arrays.items()}

    local, _ = _begun(tmp_path / "lost", absent, rounds=rounds)
    out = _lose(local)
    with pytest.raises(OpenRunError, match=f"{RUN} of the study 'small' is open"):
        _claim(local, out)
    assert _claim(local, out, RUN) == RUN
    local.absent = absent if rounds == 0 else set()
    again = local.centre()  # as the record says
    again.open()
    again.step()
    local.absent = set()
    again.step()
    again.step()
    assert {name: array.tobytes() for name, array in again.finish().arrays.items()} == expected
    assert local.place.files.open_exchange().children("runs") == [RUN]
    assert _charged(local) == _charged(whole)


def test_the_result_of_a_complete_run_is_made_again(tmp_path: Path) -> None:
    local = LocalConsortium(settle(tmp_path / "place", dropouts=1))
    expected = conduct(local.centre())
    out = _lose(local)
    assert _claim(local, out, RUN) == RUN
    before = _charged(local)
    assert conduct(local.centre()) == expected
    assert _charged(local) == before


def test_a_run_is_ended_by_its_coordinator_alone(tmp_path: Path) -> None:
    local, _ = _begun(tmp_path / "place", set())
    exchange, identity = local.place.files.open_exchange(), load_identity(local.place.files.keys)
    out = _lose(local)
    for run in ("small-0002", "other-0001", "../x", ""):
        with pytest.raises(StudyError, match="is not an open run"):
            end_run(exchange, "small", run, identity)
    with pytest.raises(StudyError, match="no run of it is open"):
        end_run(exchange, "small", RUN, load_identity(local.place.site("north")))
    end_run(exchange, "small", RUN, identity)
    assert open_runs(exchange, "small", _keys(local)) == []
    for _ in range(6):
        local.pump()
        local.ticks.now += 0.25
    assert f"{RUN} has ended: aborted" in local.said("north")
    with pytest.raises(OutputError, match="can't be resumed"):
        _claim(local, out, RUN)
    assert _claim(local, out) == "small-0002"


def test_what_others_write_there_holds_up_no_run(tmp_path: Path) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    exchange, files = local.place.files.open_exchange(), local.place.files
    site, centre = load_identity(local.place.site("north")).key, load_identity(files.keys).key
    local.centre()
    body = b'{"study": {}}'

    def announced(run: str, sender: str, key: object, of: str) -> None:
        message = seal(key=key, run=of, sender=sender, kind=ANNOUNCEMENT, round=0, body=body)  # type: ignore[arg-type]
        exchange.put(Names(run).study(), message)

    announced("small-0003", "north", site, "small-0003")
    announced("small-0004", "centre", site, "small-0004")
    announced("small-0005", "centre", centre, "small-0001")  # a copy of another run's
    exchange.put(Names("small-0006").study(), b"nonsense")
    exchange.put(Names("small-0007").study(), b"x" * (3 << 20))
    exchange.put(Names("small-0008").end(), b"nonsense")
    exchange.put("runs/smaller-0001/study", b"nonsense")
    assert open_runs(exchange, "small", _keys(local)) == []
    assert _claim(local, tmp_path / "new") == "small-0009"


def test_a_run_of_another_version_is_not_resumed(tmp_path: Path) -> None:
    local, _ = _begun(tmp_path / "place", set())
    files = local.place.files
    out = _lose(local)
    files.study.write_text(files.study.read_text().replace("epsilon: 8", "epsilon: 7"))
    agree(local.place, read_roster(files.roster))
    changed = LocalConsortium(local.place)
    with pytest.raises(StudyError, match="another version of the study"):
        _claim(changed, out, RUN)
    with pytest.raises(OpenRunError):  # nor is another opened beside it
        _claim(changed, out)


def test_a_folder_with_a_run_takes_no_other(tmp_path: Path) -> None:
    local, _ = _begun(tmp_path / "place", set())
    assert _claim(local, local.place.files.out, RUN) == RUN  # its own
    with pytest.raises(ConsortiumError, match="contains the run small-0001"):
        _claim(local, local.place.files.out, "small-0002")
