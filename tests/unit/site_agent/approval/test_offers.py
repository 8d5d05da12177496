"""Study files that wait for a decision."""

import os
import shlex
import shutil
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.roster import Roster
from site_agent.approval.folder import SiteFolder
from site_agent.approval.offers import read_offers
from site_agent.layout import STUDIES
from tests.support.command_line import enter
from tests.support.inbox_client import receive_study
from tests.support.membership_files import PLAIN, give_scans, papers, publish

Town = tuple[DemoFolders, Roster]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return papers(tmp_path)


def test_a_study_waits_until_exactly_it_is_approved(town: Town) -> None:
    place, members = town
    folder = place.site("east")
    assert read_offers(SiteFolder.open(folder)) == ()
    give_scans(place)
    receive_study(place)
    (offer,) = read_offers(SiteFolder.open(folder))
    assert (offer.is_waiting, offer.is_approved, offer.trouble) == (True, False, "")
    command = shlex.split(offer.command(folder))
    assert enter(*command, "--yes").code == 0  # as it is copied from the page
    (offer,) = read_offers(SiteFolder.open(folder))
    assert (offer.is_waiting, offer.is_approved) == (False, True)
    place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 9"))
    publish(place, members)
    receive_study(place)
    (offer,) = read_offers(SiteFolder.open(folder))
    assert (offer.is_waiting, offer.is_approved) == (True, False)
    assert offer.approval is not None
    assert enter("site-agent", "withdraw", "small", "-f", folder).code == 0
    (offer,) = read_offers(SiteFolder.open(folder))
    assert offer.is_waiting
    assert offer.approval is None


def test_a_folder_of_its_own_has_its_own_roster(town: Town) -> None:
    place, members = town
    folder = receive_study(place)
    inner = folder / STUDIES / "second; touch x"
    shutil.copytree(folder / STUDIES, inner)
    (inner / "roster.yaml").unlink()
    first, second = read_offers(SiteFolder.open(folder))
    assert first.ident != second.ident
    assert second.roster == folder / STUDIES / "roster.yaml"
    assert shlex.split(first.command(folder))[2] == str(first.path)
    publish(place, members.with_site("more", bytes(range(32))))
    shutil.copy(place.files.roster, inner)
    troubles = [each.trouble for each in read_offers(SiteFolder.open(folder))]
    assert troubles == ["", ""]


def test_files_that_are_no_offer_are_left_out_or_named(town: Town) -> None:
    place, _ = town
    folder = receive_study(place)
    studies = folder / STUDIES
    (studies / "east.join.yaml").write_text("name: east\n")
    (studies / "notes.txt").write_text("x")
    (studies / "broken.yaml").write_bytes(b"\xff\x00")
    os.mkfifo(studies / "pipe.yaml")
    shutil.copy(place.files.study, studies / "other.yaml")
    os.mkfifo(studies / "other.yaml.sig")
    (studies / "a" / "b").mkdir(parents=True)
    shutil.copy(place.files.study, studies / "a" / "b" / "deep.yaml")
    found = read_offers(SiteFolder.open(folder))
    assert [each.path.name for each in found] == ["broken.yaml", place.files.study.name]
    assert "must be a study file" in found[0].trouble
    assert not found[0].is_waiting


@pytest.mark.parametrize(
    "name",
    [
        b"\xff\xfe",
        "a\u202eb".encode(),
        "a\u200bb".encode(),
        b"a\nb",
        b"a\x03;touch x\r",
        b"\x1b[2J",
    ],
    ids=ascii,
)
def test_a_name_that_would_act_in_a_terminal_is_no_offer(town: Town, name: bytes) -> None:
    place, _ = town
    folder = receive_study(place)
    good = place.files.study.name
    inner = folder / STUDIES / os.fsdecode(name)
    inner.mkdir()
    for path in (inner / good, folder / STUDIES / f"{os.fsdecode(name)}.yaml"):
        shutil.copy(place.files.study, path)
        shutil.copy(f"{place.files.study}.sig", f"{path}.sig")
    found = read_offers(SiteFolder.open(folder))
    assert [each.path.name for each in found if each.is_waiting] == [good]
    for offer in found:
        if not offer.is_waiting:
            assert offer.papers is None
            assert offer.trouble.isprintable()
    assert len(found) == 3


def test_a_study_without_this_site_does_not_wait(tmp_path: Path) -> None:
    text = PLAIN.replace("north, east, south, west", "north, south, west")
    place, _ = papers(tmp_path, text.replace("east: 10, ", ""))
    (offer,) = read_offers(SiteFolder.open(receive_study(place)))
    assert "the study must have this site, 'east', among its sites" in offer.trouble
    assert not offer.is_waiting
