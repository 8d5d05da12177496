"""A party's folder as the relay sees it: an exchange, each name written once, walled in."""

import hashlib
import os
import stat
from pathlib import Path

import pytest
from cape_relay.folder import LIMIT, PLACES, Folder, RelayError, folder_of
from hypothesis import given

from consortium.errors import ExchangeError
from consortium.exchange import DirectoryExchange
from consortium.exchange.base import check_name
from consortium.membership.keys import create_identity
from tests.contract.test_exchanges import HOSTILE, NAME


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "place"
    made.mkdir()
    return made


def test_what_the_exchange_holds_is_listed_and_read_and_the_other_way_round(root: Path) -> None:
    exchange, folder = DirectoryExchange(root), Folder(root)
    exchange.put("runs/one/study", b"ours")
    assert folder.put("runs/one/present/north", b"theirs")
    assert exchange.get("runs/one/present/north", 10) == b"theirs"
    assert folder.read("runs/one/study") == b"ours"
    assert folder.listing() == {
        "runs/one/study": hashlib.sha256(b"ours").hexdigest(),
        "runs/one/present/north": hashlib.sha256(b"theirs").hexdigest(),
    }


@given(NAME)
def test_every_name_of_a_message_is_carried_and_no_other(name: str) -> None:
    assert not Folder(Path.cwd()).carries(f"probes/{name}")
    assert not Folder(Path.cwd()).carries(name.partition("/")[0])
    for place in ("runs", "consent", "ledgers"):
        whole = f"{place}/{name}"
        assert Folder(Path.cwd()).carries(whole) == (whole.count("/") <= 5 and len(whole) <= 300)


@pytest.mark.parametrize("only", [[], [""], ["keys"], ["west/", "we"], ["../"]])
def test_a_folder_of_secrets_by_mistake_is_not_carried_whatever_is_asked(
    only: list[str], root: Path
) -> None:
    for home in (root, root / "west"):
        home.mkdir(exist_ok=True)
        create_identity(home, bytes(64))
    folder = Folder(root, only)
    assert folder.listing() == {}
    for name in ("keys", "west/keys"):
        with pytest.raises(RelayError, match="can't name a message"):
            folder.read(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_the_exchange_refuses_is_refused(name: str, root: Path) -> None:
    with pytest.raises(ExchangeError):
        check_name(name)
    with pytest.raises(RelayError, match="can't name a message"):
        Folder(root).put(name, b"bytes")
    with pytest.raises(RelayError, match="can't name a message"):
        Folder(root).read(name)
    assert list(root.parent.iterdir()) == [root]
    assert list(root.iterdir()) == []


def test_a_name_is_written_once(root: Path) -> None:
    folder = Folder(root)
    assert [folder.put("runs/a", b"first"), folder.put("runs/a", b"first")] == [True, False]
    for other in (b"second", b"", b"first and more"):
        with pytest.raises(RelayError, match=r"^runs/a has other bytes"):
            folder.put("runs/a", other)
    assert (root / "runs/a").read_bytes() == b"first"
    assert os.listdir(root / "runs") == ["a"]  # noqa: PTH208


def test_drafts_probes_links_and_other_runs_are_not_carried(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"of the hospital")
    exchange = DirectoryExchange(root)
    for name in ("runs/rest-0001/study", "runs/other-0001/study", "probes/north/token"):
        exchange.put(name, b"bytes")
    (root / "runs/rest-0001/.draft").write_bytes(b"half")
    (root / "runs/rest-0001/link").symlink_to(secret)
    (root / "runs/rest-0002").symlink_to(root / "runs/rest-0001")
    os.mkfifo(root / "runs/rest-0001/pipe")
    assert list(Folder(root, ["runs/rest-"]).listing()) == ["runs/rest-0001/study"]
    assert len(Folder(root).listing()) == 2
    with pytest.raises(RelayError, match="link"):
        Folder(root).read("runs/rest-0001/link")
    with pytest.raises(RelayError, match="not a file"):
        Folder(root).read("runs/rest-0001/pipe")
    with pytest.raises(RelayError, match="can't name"):
        Folder(root, ["runs/rest-"]).put("runs/other-0001/more", b"bytes")


def test_no_link_leads_a_writer_elsewhere(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / "runs").symlink_to(elsewhere)
    (root / "ledgers").mkdir()
    (root / "ledgers/north").symlink_to(elsewhere / "file")
    for name in ("runs/a", "ledgers/north"):
        with pytest.raises(RelayError, match="link"):
            Folder(root).put(name, b"bytes")
    assert list(elsewhere.iterdir()) == []


def test_too_many_bytes_are_neither_written_nor_read(root: Path) -> None:
    folder = Folder(root, largest=4)
    assert folder.put("runs/a", b"four")
    with pytest.raises(RelayError, match=r"runs/b has more than 4 bytes"):
        folder.put("runs/b", b"fives")
    (root / "runs/c").write_bytes(b"fives")
    with pytest.raises(RelayError, match=r"runs/c has more than 4 bytes"):
        folder.listing()


def test_bytes_that_somebody_changed_later_are_seen(root: Path) -> None:
    folder = Folder(root)
    folder.put("runs/a", b"first")
    before = folder.listing()
    (root / "runs/a").write_bytes(b"other")
    assert folder.listing() != before


def test_what_is_made_is_for_all_users_of_the_folder(root: Path) -> None:
    root.chmod(0o2770)
    before = os.umask(0o077)
    try:
        Folder(root).put("runs/one/a", b"bytes")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "runs/one").stat().st_mode) == 0o2770
    assert stat.S_IMODE((root / "runs/one/a").stat().st_mode) == 0o660


def test_a_folder_that_is_not_there_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="is missing"):
        Folder(tmp_path / "share")
    assert not (tmp_path / "share").exists()


def test_the_folder_is_what_this_machine_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RelayError, match="CAPE_RELAY_FOLDER is not set"):
        folder_of("north", [])
    for name in reversed(PLACES):
        monkeypatch.setenv(name, str(root.parent / "{site}"))
        assert folder_of("place", []).root == root
    with pytest.raises(RelayError, match="is missing"):
        folder_of("north", [])


def test_a_studys_messages_are_not_those_of_one_whose_name_goes_on(root: Path) -> None:
    DirectoryExchange(root).put("runs/rest-two-0001/end", b"another study's")
    DirectoryExchange(root).put("runs/rest-0001/study", b"ours")
    folder = Folder(root, ["runs/rest-", "ledgers/"])
    assert list(folder.listing()) == ["runs/rest-0001/study"]
    with pytest.raises(RelayError, match="can't name a message"):
        folder.put("runs/rest-two-0001/study", b"bytes")
    assert folder.put("ledgers/north-east/0001-a", b"bytes")


@pytest.mark.parametrize("party", ["../place", "..", ".", "/", "a/b", "a\0", "", "a\n"])
def test_a_party_whose_name_leads_elsewhere_has_no_folder(
    party: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").mkdir()
    monkeypatch.setenv("CAPE_RELAY_FOLDER", str(root / "{site}"))
    with pytest.raises(RelayError, match="can't be a folder's name"):
        folder_of(party, [])
    assert folder_of("a", []).root == (root / "a").resolve()


@pytest.mark.parametrize("told", ["much", "nan", "inf"])
def test_how_much_a_run_may_have_is_what_this_machine_says(
    told: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLACES[0], str(root))
    monkeypatch.setenv(LIMIT, "0.000000010")
    folder_of("north", []).check_room({"runs/a/one": bytes(10)}, "east")
    with pytest.raises(RelayError, match=LIMIT):
        folder_of("north", []).check_room({"runs/a/one": bytes(11)}, "east")
    monkeypatch.setenv(LIMIT, told)
    with pytest.raises(RelayError, match=f"^{LIMIT} is not a number"):
        folder_of("north", [])
