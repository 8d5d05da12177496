"""A read-only inbox shows the same, and writes nothing at all."""

import gc
import hashlib
import html
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from consortium.errors import ConfigurationError
from site_agent.config import SiteConfig
from site_agent.inbox.application import _FORMS
from site_agent.inbox.read_only_view import read_only_view, with_real_paths
from site_agent.layout import LEDGER, STORE, STUDIES
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.states import State
from tests.support.command_line import enter
from tests.support.inbox_client import Visitor, receive_study
from tests.support.membership_files import give_scans, papers

PAGES = ("", "left-out", "names", "budget", "ledger", "agent", "withdraw/small")
KILLED = """
import os, sys
from pathlib import Path
from site_agent.layout import LEDGER, STORE
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.states import State
from site_agent.ledger.states import State
from site_agent.run.message_store import MessageStore
folder = Path(sys.argv[1])
store, ledger = MessageStore(folder / STORE), Ledger(folder / LEDGER)
store.save("small-0001", "study", b"x")
ledger.record(State("left-out", "ab" * 32, word="recorded"), "noon")
os._exit(9)
"""


def _tree(root: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time and content of everything below a folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, _ = papers(tmp_path_factory.mktemp("town"))
    give_scans(place)
    receive_study(place)
    words = (place.files.study, "--roster", place.files.roster, "--yes")
    assert enter("site-agent", "approve", *words, "-f", place.site("east")).code == 0
    gc.collect()  # closes the ledger of the command, which in life ends with its process
    return place.site("east")


@pytest.mark.parametrize("killed", [False, True], ids=["at rest", "after a killed agent"])
def test_no_page_and_no_form_writes_anything(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, killed: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests also make inboxes
    if killed:
        words = [sys.executable, "-c", KILLED, str(folder)]
        assert subprocess.run(words, check=False).returncode == 9
        assert (folder / f"{LEDGER}-wal").stat().st_size > 0
    root = folder.parents[2]
    temporary = set(Path(tempfile.gettempdir()).glob("inbox-*"))
    before = _tree(root)
    visitor = Visitor(folder, read_only=True).enter()
    study = visitor.study()
    for path in (*PAGES, study):
        answer = visitor.get(path)
        assert answer.status_code == 200, path
        assert "read-only" in answer.text
        assert "<form" not in answer.text
        assert "/inbox-" not in answer.text  # the real folder is named, not the view
    forms = visitor.forms(ident=study.removeprefix("study/"), study="small")
    assert len(forms) == len(_FORMS)
    for address in forms:
        fields = {"shown": "0" * 64, "participant": "sub-001", "reason": "x", "note": "x"}
        refused = visitor.post(address, **fields, column="a", here="b")
        assert (refused.status_code, refused.text) == (403, "This inbox is read-only.\n")
    assert _tree(root) == before
    assert set(Path(tempfile.gettempdir()).glob("inbox-*")) == temporary


def test_a_site_without_a_ledger_gets_none(tmp_path: Path) -> None:
    place, _ = papers(tmp_path)
    folder = receive_study(place)
    visitor = Visitor(folder, read_only=True).enter()
    for path in PAGES[:-1]:
        assert visitor.get(path).status_code == 200, path
    assert not (folder / LEDGER).exists()
    assert not (folder / STORE).exists()


def test_readers_see_what_is_only_in_the_log_of_the_ledger(folder: Path) -> None:
    ledger = Ledger(folder / LEDGER)  # as a running agent has it open
    try:
        head = ledger.entries()[-1].head
        with read_only_view(folder) as view:
            assert Ledger(view / LEDGER).entries()[-1].head == head
            assert view.stat().st_mode & 0o777 == 0o700
            assert not any(
                path.is_file() and not path.is_symlink() and path.name == "keys"
                for path in view.iterdir()
            )
        page = Visitor(folder, read_only=True).enter().get("ledger").text
        found = re.search(r"Last line: (\d+), digest <code>(\w+)", page)
        assert found is not None
        assert (int(found[1]), found[2]) == (head.seq, head.digest)
    finally:
        ledger.close()


def test_a_copy_beside_a_busy_agent_is_complete(tmp_path: Path) -> None:
    place, _ = papers(tmp_path)
    folder = place.site("east")
    ledger = Ledger(folder / LEDGER)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            ledger.record(State("left-out", "ab" * 32, word="recorded"), "noon")
            ledger.settle()
            time.sleep(0.03)

    busy = threading.Thread(target=write)
    busy.start()
    try:
        heads = []
        while len(set(heads)) < 12:
            with read_only_view(folder) as view:
                heads.append(len(Ledger(view / LEDGER).entries()))  # whose chain is checked
    finally:
        stop.set()
        busy.join()
    assert heads == sorted(heads)


def test_a_damaged_database_is_an_error_in_words(tmp_path: Path) -> None:
    place, _ = papers(tmp_path)
    folder = place.site("east")
    (folder / LEDGER).write_bytes(b"no database" * 100)
    with (
        pytest.raises(ConfigurationError, match="a database can't be read now"),
        read_only_view(folder),
    ):
        pass
    answer = Visitor(folder, read_only=True).enter().get()
    assert answer.status_code == 409
    assert SiteConfig.load(folder).ledger == folder / LEDGER
    assert with_real_paths("a /tmp/x b", folder) == "a /tmp/x b"


def test_the_real_folder_is_text_on_a_page(tmp_path: Path) -> None:
    place, _ = papers(tmp_path / "<script>")
    folder = receive_study(place)
    (folder / STUDIES / "bad.yaml").write_text("x")  # whose path a sentence names
    page = Visitor(folder, read_only=True).enter().get()
    assert page.status_code == 200
    assert html.escape(str(folder / STUDIES / "bad.yaml")) in page.text
    assert "<script>" not in page.text
