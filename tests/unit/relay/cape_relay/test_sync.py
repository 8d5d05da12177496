"""What folders tell each other: nothing is needed but the newest message of each."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from cape_relay import folder as folder_module
from cape_relay import sync
from cape_relay.folder import Folder, RelayError
from cape_relay.sync import GIVEN_UP, Hub, answer
from hypothesis import given
from hypothesis import strategies as st

SITES = ("north", "east")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Folder]:
    for name in ("hub", *SITES):
        (tmp_path / name).mkdir()
    return {name: Folder(tmp_path / name) for name in ("hub", *SITES)}


def tick(hub: Hub, folders: dict[str, Folder]) -> None:
    asked = hub.request()
    for site in SITES:
        hub.take(site, answer(folders[site], asked))


def test_two_ticks_make_all_folders_alike(folders: dict[str, Folder]) -> None:
    for name, folder in folders.items():
        folder.put(f"runs/a-0001/present/{name}", name.encode())
    hub = Hub(folders["hub"])
    tick(hub, folders)
    tick(hub, folders)
    listings = [folder.listing() for folder in folders.values()]
    assert all(listing == listings[0] for listing in listings)
    assert len(listings[0]) == 3


def test_what_nobody_lacks_is_not_sent_again(folders: dict[str, Folder]) -> None:
    folders["hub"].put("runs/a-0001/study", b"bytes")
    hub = Hub(folders["hub"])
    tick(hub, folders)
    assert list(hub.request()["files"]) == ["runs/a-0001/study"]
    tick(hub, folders)
    tick(hub, folders)
    assert hub.request()["files"] == {}


def test_whoever_was_silent_is_sent_nothing_until_it_lists_what_it_has(
    folders: dict[str, Folder],
) -> None:
    hub = Hub(folders["hub"])
    tick(hub, folders)
    folders["hub"].put("runs/a-0001/study", b"bytes")
    asked = hub.request()
    hub.take("north", answer(folders["north"], asked))
    assert hub.request()["files"] == {}  # north has it, and east is not heard of
    tick(hub, folders)
    assert list(hub.request()["files"]) == ["runs/a-0001/study"]


def test_a_message_has_an_end_and_the_rest_comes_with_the_next(folders: dict[str, Folder]) -> None:
    for number in range(5):
        folders["hub"].put(f"runs/a-0001/{number:05d}/query", bytes(10))
    hub = Hub(folders["hub"], most=25)
    counts = []
    for _ in range(5):
        tick(hub, folders)
        counts.append(len(folders["north"].listing()))
    assert counts == [0, 2, 4, 5, 5]


@given(st.binary(min_size=1), st.binary(min_size=1))
def test_a_file_above_the_limit_travels_alone(
    tmp_path_factory: pytest.TempPathFactory, one: bytes, two: bytes
) -> None:
    place = tmp_path_factory.mktemp("hub")
    folder = Folder(place)
    folder.put("runs/a", one)
    folder.put("runs/b", two)
    hub = Hub(folder, most=1)
    hub.take("north", {"files": {}, "listing": {}})
    assert len(hub.request()["files"]) == 1


def test_two_contents_of_a_name_stop_the_relay_and_are_named(folders: dict[str, Folder]) -> None:
    folders["hub"].put("runs/a-0001/study", b"one")
    folders["north"].put("runs/a-0001/study", b"two")
    hub = Hub(folders["hub"])
    with pytest.raises(RelayError, match=r"^runs/a-0001/study has other bytes.*the hub"):
        answer(folders["north"], hub.request())
    with pytest.raises(RelayError, match=r"^runs/a-0001/study has other bytes.*north"):
        hub.take("north", {"files": {}, "listing": folders["north"].listing()})


def test_bytes_that_were_changed_on_the_way_are_not_written(folders: dict[str, Folder]) -> None:
    folders["hub"].put("runs/a-0001/study", b"one")
    hub = Hub(folders["hub"])
    tick(hub, folders)
    asked = hub.request()
    asked["files"]["runs/a-0001/study"] = b"two"
    with pytest.raises(RelayError, match=r"'runs/a-0001/study' arrived with other bytes"):
        answer(folders["north"], asked)
    assert folders["north"].listing() == {}


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"files": {}},
        {"files": [], "listing": {}},
        {"files": {"runs/a": "text"}, "listing": {}},
        {"files": {}, "listing": {"runs/a": b"bytes"}},
        {"files": {}, "listing": {"runs/a": "no digest"}},
        {"files": {}, "listing": {f"runs/{'a' * 300}": "0" * 64}},
        {"files": {3: b"bytes"}, "listing": {}},
    ],
)
def test_what_is_no_message_is_refused_with_its_sender(
    said: Any, folders: dict[str, Folder]
) -> None:
    with pytest.raises(RelayError, match="north is not a message"):
        Hub(folders["hub"]).take("north", said)
    with pytest.raises(RelayError, match="the hub is not a message"):
        answer(folders["north"], said)


def test_a_party_waits_for_news_and_no_longer(folders: dict[str, Folder]) -> None:
    waited = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            folders["north"].put("runs/a-0001/present/north", b"here")

    said = answer(folders["north"], {"files": {}, "listing": {}}, 60.0, wait)
    assert list(said["files"]) == ["runs/a-0001/present/north"]
    assert len(waited) == 3  # two looks, and one more for what belongs to it


def test_sites_wait_longer_while_nothing_is_moved(folders: dict[str, Folder]) -> None:
    hub, waits = Hub(folders["hub"]), []
    for _ in range(5):
        tick(hub, folders)
        waits.append(hub.patience(2.0, 20.0))
    folders["north"].put("runs/a-0001/present/north", b"here")
    tick(hub, folders)
    assert [*waits, hub.patience(2.0, 20.0)] == [4.0, 8.0, 16.0, 20.0, 20.0, 2.0]


def test_it_is_over_when_the_last_name_is_everywhere(folders: dict[str, Folder]) -> None:
    hub = Hub(folders["hub"], last="runs/a-*/end")
    folders["hub"].put("runs/a-0001/study", b"bytes")
    for _ in range(2):
        tick(hub, folders)
        assert not hub.over(SITES)
    folders["hub"].put("runs/a-0001/end", b"bytes")
    tick(hub, folders)
    assert hub.over(SITES)
    assert not hub.over((*SITES, "west"))


def test_nothing_but_the_coordinators_own_last_name_ends_it(folders: dict[str, Folder]) -> None:
    hub = Hub(folders["hub"], last="runs/a-*/end")
    folders["hub"].put("runs/a-0001/share/end", b"to the site that is called end")
    folders["north"].put("runs/a-0009/end", b"of no coordinator")
    for _ in range(3):
        tick(hub, folders)
        assert not hub.over(SITES)
    folders["hub"].put("runs/a-0001/end", b"bytes")
    tick(hub, folders)
    assert hub.over(SITES)


def test_a_site_that_is_gone_is_not_waited_for_for_ever(folders: dict[str, Folder]) -> None:
    hub = Hub(folders["hub"], last="runs/a-*/end")
    folders["hub"].put("runs/a-0001/end", b"bytes")
    ends = []
    for _ in range(GIVEN_UP + 2):
        tick(hub, folders)
        ends.append(hub.over((*SITES, "west")))
    assert ends == [False] * (len(ends) - 1) + [True]


def test_an_earlier_run_that_ended_ends_nothing(folders: dict[str, Folder]) -> None:
    for folder in folders.values():
        folder.put("runs/a-0001/end", b"bytes")
    hub = Hub(folders["hub"], last="runs/a-*/end")
    tick(hub, folders)
    tick(hub, folders)
    assert not hub.over(SITES)


# -- limits -------------------------------------------------------------------------------------


def test_a_run_beyond_the_limit_is_refused_whole_and_goes_on_once_it_may(
    folders: dict[str, Folder], tmp_path: Path
) -> None:
    for number in range(4):
        folders["hub"].put(f"runs/a-0001/{number:05d}/query", bytes(10))
    folders["hub"].put("runs/a-0002/study", bytes(30))  # a run of its own
    hub, tight = Hub(folders["hub"]), Folder(tmp_path / "north", most=30)
    hub.take("north", answer(tight, hub.request()))
    asked = hub.request()
    with pytest.raises(RelayError, match=r"^With 'runs/a-0001/00000/query' from the hub .*MOST_GB"):
        answer(tight, asked)
    assert tight.listing() == {}
    assert answer(Folder(tmp_path / "north", most=40), asked)["files"] == {}
    assert folders["north"].listing() == folders["hub"].listing()
    # What is there already is not counted twice, and what was taken away no longer.
    answer(Folder(tmp_path / "north", most=40), asked)


def test_what_is_gone_makes_room(folders: dict[str, Folder], tmp_path: Path) -> None:
    folder = Folder(tmp_path / "north", most=10)
    folder.put("runs/a-0001/one", bytes(10))
    folder.listing()
    (tmp_path / "north/runs/a-0001/one").unlink()
    folder.listing()
    folder.check_room({"runs/a-0001/two": bytes(10)}, "east")


def test_a_message_beyond_the_limit_is_refused_whole(
    folders: dict[str, Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders["hub"].put("runs/a-0001/one", bytes(10))
    folders["hub"].put("runs/a-0001/two", bytes(10))
    hub = Hub(folders["hub"])
    tick(hub, folders)
    asked = hub.request()
    monkeypatch.setattr(sync, "MOST_IN_ALL", 19)
    with pytest.raises(RelayError, match="from the hub has 20 bytes, more than 19; it was not"):
        answer(folders["north"], asked)
    assert folders["north"].listing() == {}
    monkeypatch.setattr(sync, "MOST_IN_ALL", 20)
    answer(folders["north"], asked)
    assert folders["north"].listing() == folders["hub"].listing()


def test_more_names_than_a_message_can_tell_are_refused_before_they_are_there(
    folders: dict[str, Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        folders["hub"].put(f"runs/a-000{number}/study", b"")
    hub = Hub(folders["hub"])
    tick(hub, folders)
    monkeypatch.setattr(folder_module, "MOST_NAMES", 2)
    with pytest.raises(RelayError, match="or 2 files; nothing of the message was written"):
        answer(folders["north"], hub.request())
    assert folders["north"].listing() == {}


@pytest.mark.parametrize("first", ["runs/a-0001", "runs/a-0001/present"])
def test_a_message_in_the_place_of_a_folder_is_refused_before_it_blocks_others(
    first: str, folders: dict[str, Folder]
) -> None:
    later = "runs/a-0001/present/north"
    digest = hashlib.sha256(b"bytes").hexdigest()
    told = {each: {"files": {each: b"bytes"}, "listing": {each: digest}} for each in (first, later)}
    both = {"files": {first: b"bytes", later: b"bytes"}, "listing": {first: digest, later: digest}}
    with pytest.raises(RelayError, match=f"^'{first}' is a message and the folder of"):
        answer(folders["east"], both)
    assert folders["east"].listing() == {}
    for one, two in ((first, later), (later, first)):
        folder = folders["hub"]
        shutil.rmtree(folder.root / "runs", ignore_errors=True)
        hub = Hub(folder)
        hub.take("east", told[one])
        with pytest.raises(RelayError, match=f"^'{first}' is a message .* from north"):
            hub.take("north", told[two])
        assert list(folder.listing()) == [one]


# -- a hub that is no party's -------------------------------------------------------------------


def test_with_a_coordinator_among_the_sites_its_own_last_name_ends_it(
    folders: dict[str, Folder],
) -> None:
    hub = Hub(folders["hub"], last="runs/a-*/end", centre="north")
    folders["east"].put("runs/a-0009/end", b"of no coordinator")
    folders["north"].put("runs/a-0001/study", b"bytes")
    for _ in range(3):
        tick(hub, folders)
        assert not hub.over(SITES)
    folders["north"].put("runs/a-0001/end", b"bytes")
    for _ in range(2):
        assert not hub.over(SITES)
        tick(hub, folders)
    assert hub.over(SITES)
    assert folders["east"].listing() == folders["north"].listing()


def test_a_hub_that_was_killed_knows_the_coordinators_end_by_its_listing(
    folders: dict[str, Folder],
) -> None:
    """The first to tell a new hub of the end may be a site that had it before."""
    for who in ("north", "east"):
        folders[who].put("runs/a-0001/end", b"bytes")
    (folders["hub"].root.parent / "west").mkdir()
    third = {**folders, "west": Folder(folders["hub"].root.parent / "west")}
    hub = Hub(folders["hub"], last="runs/a-*/end", centre="north")
    for _ in range(2):
        asked = hub.request()
        for site in ("east", "north", "west"):
            hub.take(site, answer(third[site], asked))
    assert hub.over(("east", "north", "west"))
