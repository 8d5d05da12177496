"""The store: a name is written once."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from consortium.errors import LedgerError
from site_agent.run.message_store import MessageStore


def test_a_name_is_written_once(tmp_path: Path) -> None:
    store = MessageStore(tmp_path / "messages.sqlite")
    assert store.load("run", "1/query") is None
    store.save("run", "1/query", b"first")
    store.save("run", "1/query", b"first")
    with pytest.raises(LedgerError, match="had another answer before"):
        store.save("run", "1/query", b"second")
    store.save("other", "1/query", b"second")
    again = MessageStore(tmp_path / "messages.sqlite")
    assert again.load("run", "1/query") == b"first"
    assert again.load("other", "1/query") == b"second"


def test_what_was_written_before_an_error_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Faulty(sqlite3.Connection):
        def __exit__(self, *error: Any) -> Literal[False]:
            super().__exit__(*error)
            raise sqlite3.OperationalError("disk I/O error")

    store = MessageStore(tmp_path / "messages.sqlite")
    assert store.load("run", "1/contribution") is None
    store.close()
    connect = partial(sqlite3.connect, factory=Faulty)
    monkeypatch.setattr("site_agent.run.message_store.sqlite3.connect", connect)
    with pytest.raises(LedgerError, match="disk I/O error"):
        store.save("run", "1/contribution", b"answer")
    monkeypatch.undo()
    assert store.load("run", "1/contribution") == b"answer"


def test_its_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    store = MessageStore(tmp_path / "messages.sqlite")
    with store._using() as connection:
        assert connection.execute("PRAGMA cache_size").fetchone() == (-256,)  # KiB


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    MessageStore(tmp_path / "messages.sqlite")
    assert (tmp_path / "messages.sqlite").stat().st_mode & 0o077 == 0


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "messages.sqlite").write_bytes(b"no database" * 500)
    with pytest.raises(LedgerError, match=r"messages\.sqlite"):
        MessageStore(tmp_path / "messages.sqlite")
    with pytest.raises(LedgerError, match="can't be made"):
        MessageStore(tmp_path / "missing" / "messages.sqlite")


def test_a_halt_is_for_good_and_keeps_its_first_reason(tmp_path: Path) -> None:
    store = MessageStore(tmp_path / "messages.sqlite")
    assert store.halted is None
    store.halt("first")
    store.halt("second")
    store.close()
    assert MessageStore(tmp_path / "messages.sqlite").halted == "first"


def test_a_halt_that_another_process_wrote_is_seen(tmp_path):
    store = MessageStore(tmp_path / "messages.sqlite")
    assert store.halted is None
    MessageStore(tmp_path / "messages.sqlite").halt("a copy is at work")
    assert store.halted == "a copy is at work"
