"""Attestations that came after the end: fetched by anybody, counted by their own signatures."""

import shutil
from pathlib import Path

import pytest

from consortium.coordinator.evidence import digests_of
from consortium.coordinator.late_evidence import fetch_late
from consortium.coordinator.verify import Checkup
from consortium.errors import ConfigurationError
from consortium.exchange import DirectoryExchange, MemoryExchange
from tests.support.finished_run import STUDY, Finished, publish
from tests.support.local_consortium import LocalConsortium, build

ATTESTED = "evidence/attestation"


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run whose two last sites come back when it is over."""
    local = LocalConsortium(build(tmp_path_factory.mktemp("late"), text=STUDY))
    centre = local.centre()
    centre.open()
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    local.absent = {"south", "west"}
    publish(local, centre)
    local.absent = set()
    for _ in range(12):
        local.ticks.pause(0.1)
    return Finished(local.place.files.out, Path(local.place.files.exchange))


def test_what_came_late_is_added_and_counts(late: Finished, tmp_path: Path) -> None:
    found = late.copy(tmp_path)
    verdict = Checkup(found.out).run()
    assert verdict.code == 2, verdict.lines()
    before = digests_of(found.out)
    told = fetch_late(found.out, DirectoryExchange(found.exchange))
    assert (told.added, told.missing, told.refused) == (("south", "west"), (), ())
    after = digests_of(found.out)
    assert after.keys() - before.keys() == {f"{ATTESTED}/south", f"{ATTESTED}/west"}
    assert {name: after[name] for name in before} == before
    verdict = Checkup(found.out).run()
    assert verdict.code == 0, verdict.lines()
    assert "west: came after the result was published" in "\n".join(verdict.lines())
    again = fetch_late(found.out, DirectoryExchange(found.exchange))
    assert again.lines() == ["The folder already has the attestations of all sites."]


def test_a_site_that_is_away_still_is_named(late: Finished, tmp_path: Path) -> None:
    found = late.copy(tmp_path)
    told = fetch_late(found.out, MemoryExchange())
    assert told.lines() == ["No attestation of south, west. Ask them to start again."]


def test_no_other_file_may_come_late(late: Finished, tmp_path: Path) -> None:
    found = late.copy(tmp_path)
    for name in ("harbour", "south.txt"):
        shutil.copyfile(found.out / ATTESTED / "north", found.out / ATTESTED / name)
    said = "\n".join(Checkup(found.out).run().lines())
    assert said.count("is not among the files that the centre published") == 2


def test_a_late_attestation_of_anothers_is_a_contradiction(late: Finished, tmp_path: Path) -> None:
    found = late.copy(tmp_path)
    shutil.copyfile(found.out / ATTESTED / "north", found.out / ATTESTED / "south")
    assert Checkup(found.out).run().code == 1


def test_a_folder_of_nothing_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="must be the output folder of a run"):
        fetch_late(tmp_path, MemoryExchange())
