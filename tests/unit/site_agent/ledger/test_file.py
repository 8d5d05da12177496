"""The ledger's file: an edit, a swap or a closed ledger shows, and a backup is whole."""

import contextlib
import math
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from consortium.errors import LedgerError
from site_agent.ledger import file as book_module
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import charged, held, write_lines

SITE, CENTRE, QUERY = "5a" * 32, "ce" * 32, "9e" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, QUERY, 0.05),
)


def first_round(ledger: Ledger) -> Charge:
    """The first round of a run that holds the loss of many."""
    return held(ledger, CHARGE, loss=8.0)


EDITS = {
    "cheaper": "UPDATE entries SET mu = 0 WHERE seq = 2",
    "removed": "DELETE FROM entries WHERE seq = 1",
    "renumbered": "UPDATE entries SET seq = 9 WHERE seq = 5",
    "other data set": "UPDATE entries SET dataset = 'x' WHERE seq = 3",
    "other time": "UPDATE entries SET at = 'x' WHERE seq = 3",
    "other consortium": "UPDATE entries SET centre = 'x' WHERE seq = 3",
    "no text": "UPDATE entries SET stage = x'ff00' WHERE seq = 2",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_shows_and_allows_nothing(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    first = first_round(ledger)
    for number in (1, 2):
        charge = replace(first, round=number)
        ledger.reserve(charge, "now")
        ledger.spend(charge, "now")
    with sqlite3.connect(path) as connection:
        connection.execute(EDITS[edit])
    with pytest.raises(LedgerError, match="was altered"):
        ledger.entries()
    with pytest.raises(LedgerError, match="was altered"):
        ledger.verify()
    with pytest.raises(LedgerError, match="was altered"):
        Ledger(path).reserve(replace(first, round=3), "now")


def test_written_ahead_and_synchronised(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with ledger._using() as file:  # 2: every transaction is on the disk before it returns
        assert file.connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"no database" * 500)
    with pytest.raises(LedgerError, match=str(path)):
        Ledger(path)
    with pytest.raises(LedgerError, match="can't be opened"):
        Ledger(tmp_path / "missing" / "ledger.sqlite")


def test_another_layout_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE entries (seq INTEGER PRIMARY KEY)")
    with pytest.raises(
        LedgerError, match=r"has layout 0, which this version can't read \(it reads 8"
    ):
        Ledger(path)


def test_an_alteration_of_an_old_line_is_noticed_after_a_start(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    first = first_round(Ledger(path))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET mu = 0")
    for use in (lambda o: o.head(), lambda o: o.total("data", "subject"), lambda o: o.verify()):
        with pytest.raises(LedgerError, match="line 1 was altered"):
            use(Ledger(path))
    with pytest.raises(LedgerError, match="line 1 was altered"):
        Ledger(path).reserve(first, "now")


def test_a_file_put_in_its_place_is_noticed_while_it_is_open(tmp_path: Path) -> None:
    path, backup = tmp_path / "ledger.sqlite", tmp_path / "backup"
    ledger = Ledger(path)
    first = first_round(ledger)
    ledger.reserve(first, "now")
    copy_to(path, backup)
    ledger.reserve(replace(first, round=2), "now")
    newest = tmp_path / "newest"
    copy_to(path, newest)
    put_back(backup, path)
    with pytest.raises(LedgerError, match="the ledger was replaced"):
        ledger.reserve(replace(first, round=3), "now")
    put_back(newest, path)
    assert ledger.reserve(replace(first, round=3), "now")
    ledger.release(CHARGE.run, CHARGE.site, "now")
    assert Ledger(path).total("data", "subject") == pytest.approx(0.6 * math.sqrt(3))
    path.unlink()
    with pytest.raises(LedgerError, match="can't be opened"):
        ledger.reserve(replace(first, round=4), "now")
    assert not path.exists()


def copy_to(path: Path, target: Path) -> None:
    """A backup as SQLite makes one."""
    with contextlib.closing(sqlite3.connect(path)) as source, sqlite3.connect(target) as copy:
        source.backup(copy)
    copy.close()


def test_a_backup_of_the_main_file_alone_holds_every_line_once_it_is_settled(
    tmp_path: Path,
) -> None:
    """As a nightly copy takes it between two runs, without the write-ahead log."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first = first_round(ledger)
    for number in (1, 2, 3):
        ledger.reserve(replace(first, round=number), "now")
        ledger.settle()
        copy = tmp_path / f"copy-{number}.sqlite"
        copy.write_bytes(ledger.path.read_bytes())
        assert Ledger(copy).entries() == ledger.entries()


def test_a_backup_in_the_midst_of_a_run_is_an_older_ledger_and_sound(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first = first_round(ledger)
    for number in (1, 2, 3):
        ledger.reserve(replace(first, round=number), "now")
        copy = tmp_path / f"copy-{number}.sqlite"
        copy.write_bytes(ledger.path.read_bytes())
        found = Ledger(copy).entries()
        assert found == ledger.entries()[: len(found)]


def test_what_was_answered_is_marked_with_the_next_reservation(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first = first_round(ledger)
    ledger.reserve(first, "now")
    ledger.spend_soon(first, "answered")
    assert [e.event for e in ledger.entries()] == ["hold", "reserve"]
    second = replace(first, round=2)
    ledger.reserve(second, "later")
    found = [(e.event, e.charge.round, e.at) for e in ledger.entries()[1:]]
    assert found == [("reserve", 1, "now"), ("spend", 1, "answered"), ("reserve", 2, "later")]
    ledger.spend_soon(second, "answered")
    ledger.settle()
    ledger.settle()
    found = [(e.event, e.charge.round, e.at) for e in ledger.entries()[4:]]
    assert found == [("spend", 2, "answered")]
    ledger.spend_soon(replace(first, round=3), "never reserved")
    with pytest.raises(LedgerError, match="Round 3 of small-0001 is not reserved"):
        ledger.settle()


def put_back(copy: Path, path: Path) -> None:
    """As somebody restores a backup: the copy alone, without the old write-ahead log."""
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    copy.rename(path)


def test_a_closed_ledger_reserves_nothing_and_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger, other = Ledger(path), Ledger(path)
    first = first_round(ledger)
    ledger.reserve(first, "now")
    for why in ("It is old. Restore it.", "Another reason."):
        ledger.halt(why)
    for each in (ledger, other, Ledger(path)):
        with pytest.raises(LedgerError, match=r"It is old. Restore it\."):
            each.reserve(replace(first, round=2), "now")
        with pytest.raises(LedgerError, match="It is old"):
            each.verify()
        each.spend(first, "now")
        assert [e.event for e in each.entries()] == ["hold", "reserve", "spend"]


def test_only_its_owner_reads_it_and_it_can_be_closed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    charged(ledger, CHARGE)
    ledger.close()
    assert not (tmp_path / "ledger.sqlite-wal").exists()
    assert ledger.total("data", "subject") == 0.6


def test_a_round_costs_the_same_however_long_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line is read once, and not again with every round."""
    ledger, read = Ledger(tmp_path / "ledger.sqlite"), []
    real = book_module.follow

    def follow(*arguments: object) -> object:
        for entry in real(*arguments):  # type: ignore[arg-type]
            read.append(entry.seq)
            yield entry

    monkeypatch.setattr(book_module, "follow", follow)
    first = first_round(ledger)
    for number in range(1, 31):
        charge = replace(first, round=number, mu=0.01)
        ledger.reserve(charge, "now")
        ledger.spend(charge, "now")
    assert read == list(range(1, 62))


def test_a_ledger_of_before_sizes_were_written_down_is_read_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    charged(ledger, CHARGE, at="then")
    before = ledger.entries()
    ledger.close()
    with sqlite3.connect(path) as connection:  # as version 5 laid it out
        (table,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name='entries'"
        ).fetchone()
        connection.execute("ALTER TABLE entries RENAME TO newer")
        connection.execute(table.replace(", 'tell'", ""))
        connection.execute("INSERT INTO entries SELECT * FROM newer")
        connection.execute("DROP TABLE newer")
        for later in ("spellings", "former"):
            connection.execute(f"DROP TABLE {later}")
        connection.execute("ALTER TABLE participants RENAME TO persons")
        connection.execute("PRAGMA user_version = 5")
    after = Ledger(path)
    assert after.entries() == before
    assert after.total("", CHARGE.unit, ["02"]) == CHARGE.mu
    assert after.reserve(held(after, replace(CHARGE, run="next")), "now")


def test_numbers_that_an_earlier_version_reported_are_read_and_cost_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    told = replace(CHARGE, round=0, mu=0.0, persons=ledger.enroll(["01", "02"]))
    write_lines(path, told, "tell")
    assert [entry.event for entry in ledger.entries()] == ["tell"]
    assert ledger.used(CHARGE.study, [CHARGE.centre]) == 0
    charged(ledger, CHARGE)
    assert ledger.used(CHARGE.study, [CHARGE.centre]) == 1


def test_a_ledger_of_the_layout_before_is_read_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.close()
    write_lines(path, CHARGE, "reserve", "spend")
    before = ledger.entries()
    ledger.close()
    with sqlite3.connect(path) as connection:  # as version 3 laid it out
        (table,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name='entries'"
        ).fetchone()
        connection.execute("ALTER TABLE entries RENAME TO newer")
        persons = ", persons TEXT NOT NULL DEFAULT ''"
        connection.execute(table.replace(", 'void', 'tell'", "").replace(persons, ""))
        columns = [row[1] for row in connection.execute("PRAGMA table_info(entries)")]
        lines = f"INSERT INTO entries SELECT {', '.join(columns)} FROM newer"
        connection.execute(lines)
        for later in ("participants", "groups", "key", "spellings", "former"):
            connection.execute(f"DROP TABLE {later}")
        connection.execute("DROP TABLE newer")
        connection.execute("PRAGMA user_version = 3")
    after = Ledger(path)
    assert after.entries() == before
    assert after.total("elsewhere", CHARGE.unit, ["01"]) == CHARGE.mu
    charged(after, replace(CHARGE, run="next", mu=0.8))
    assert after.total(CHARGE.dataset, CHARGE.unit, ["01"]) == pytest.approx(1.0)


def test_a_ledger_that_another_program_uses_needs_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.sqlite"
    first_round(Ledger(path))
    monkeypatch.setattr(book_module, "_PATIENCE", 0.05)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"ledger\.sqlite") as refusal:
            held(Ledger(path), replace(CHARGE, run="small-0002"), loss=8.0)
    cause = refusal.value.__cause__
    assert isinstance(cause, sqlite3.Error)
    assert cause.sqlite_errorcode == sqlite3.SQLITE_BUSY
    assert "backup" not in str(refusal.value)
