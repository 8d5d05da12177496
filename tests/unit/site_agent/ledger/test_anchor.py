"""Signed heads: an older ledger is found out, and nobody else's files stop a site."""

import contextlib
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consortium.errors import ExchangeError, LedgerError
from consortium.exchange import MemoryExchange
from consortium.membership.keys import Identity, create_identity
from consortium.secagg import seal
from site_agent.ledger.anchor import KIND, MOST_READ, RUN, LedgerAnchor
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.ledger.persons import key_path
from tests.support.charges import held

CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.1),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)


class Busy(MemoryExchange):
    """An exchange that counts what is asked of it and may be down."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.down = 0, False

    def get(self, name: str, limit: int) -> bytes | None:
        self.read += 1
        return super().get(name, limit)

    def put(self, name: str, data: bytes) -> None:
        if self.down:
            raise ExchangeError("It is down. Wait.")
        super().put(name, data)

    def children(self, prefix: str) -> list[str]:
        if self.down:
            raise ExchangeError("It is down. Wait.")
        return super().children(prefix)


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return create_identity(tmp_path, bytes(range(64)))


def spend(
    ledger: Ledger, anchor: LedgerAnchor | None, *rounds: int, run: str = "small-0001"
) -> None:
    first = held(ledger, replace(CHARGE, run=run), loss=9.0)
    for number in rounds:
        charge = replace(first, round=number)
        ledger.reserve(charge, "now")
        assert anchor is None or anchor.post() is None
        ledger.spend(charge, "now")


def round_of(ledger: Ledger, number: int) -> Charge:
    """A round of a run that holds its loss."""
    return replace(held(ledger, CHARGE, loss=9.0), round=number)


def copied(ledger: Ledger, target: Path) -> Ledger:
    with contextlib.closing(sqlite3.connect(ledger.path)) as source:
        copy = sqlite3.connect(target)
        source.backup(copy)
        copy.close()
    shutil.copy(key_path(ledger.path), key_path(target))
    return Ledger(target)


def test_a_ledger_that_only_grows_agrees(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    assert anchor.post() is None
    assert anchor.check() == 0
    assert exchange.children("ledgers/east") == []  # no head yet
    spend(ledger, anchor, 1, 2, 3)
    assert exchange.children("ledgers/east") == ["000000002", "000000004", "000000006"]
    assert anchor.check() == 3
    assert LedgerAnchor(exchange, identity, "east", Ledger(ledger.path)).check() == 3


def test_the_same_head_again_changes_nothing(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    spend(ledger, anchor, 1)
    for _ in range(2):
        assert anchor.post() is None
    assert len(exchange.children("ledgers/east")) == 2


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_a_restored_backup_is_older_than_what_was_spent(
    kept: int, tmp_path: Path, identity: Identity
) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    spend(ledger, anchor, *range(1, kept + 1))
    backup = copied(ledger, tmp_path / "backup.sqlite")
    spend(ledger, anchor, *range(kept + 1, kept + 30))
    restored = LedgerAnchor(exchange, identity, "east", backup)
    said = rf"has {2 * kept + 1} lines where this site signed for {2 * kept + 2}: it is a backup"
    with pytest.raises(LedgerError, match=said):
        restored.check()
    assert anchor.check() > 0


def test_two_copies_that_were_written_to_are_found_out(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    spend(ledger, anchor, 1)
    copy = copied(ledger, tmp_path / "copy.sqlite")
    spend(ledger, anchor, 2, 3)
    spend(copy, None, 7, 8, 9, run="other-0001")
    with pytest.raises(LedgerError, match="has another line 6 than this site signed for"):
        LedgerAnchor(exchange, identity, "east", copy).check()


def test_two_copies_are_found_out_where_their_heads_meet(
    tmp_path: Path, identity: Identity
) -> None:
    """The second copy is closed before it answers what it has just reserved."""
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    spend(ledger, LedgerAnchor(exchange, identity, "east", ledger), 1)
    copy = copied(ledger, tmp_path / "copy.sqlite")
    spend(ledger, LedgerAnchor(exchange, identity, "east", ledger), 2)
    copy.reserve(round_of(copy, 7), "now")
    with pytest.raises(LedgerError, match="has another line 4 than this site signed for"):
        LedgerAnchor(exchange, identity, "east", copy).post()
    with pytest.raises(LedgerError, match="two copies were written to"):
        copy.reserve(replace(CHARGE, round=8), "now")
    ledger.reserve(round_of(ledger, 8), "now")


def test_an_older_ledger_is_closed_for_every_agent_that_shares_it(
    tmp_path: Path, identity: Identity
) -> None:
    """Each agent sees its own exchange only; what one finds out stops both."""
    here, there = MemoryExchange(), MemoryExchange()
    (tmp_path / "other").mkdir()
    second = create_identity(tmp_path / "other", bytes(64))
    ledger = Ledger(tmp_path / "l.sqlite")
    first_agent = LedgerAnchor(here, identity, "east", ledger)
    second_agent = LedgerAnchor(there, second, "east", ledger)
    spend(ledger, first_agent, 1, 2)
    spend(ledger, second_agent, 1, run="other-0001")
    backup = copied(ledger, tmp_path / "backup.sqlite")
    spend(ledger, first_agent, 3)
    assert (first_agent.check(), second_agent.check()) == (3, 1)
    assert LedgerAnchor(there, second, "east", backup).check() == 1  # it can't know
    with pytest.raises(LedgerError, match="backup from before"):
        LedgerAnchor(here, identity, "east", backup).check()
    with pytest.raises(LedgerError, match="backup from before"):
        spend(Ledger(backup.path), None, 2, run="other-0001")


@pytest.mark.parametrize("lines", [0, 1])
def test_another_ledger_is_refused_and_stays_open_for_others(
    lines: int, tmp_path: Path, identity: Identity
) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    spend(ledger, LedgerAnchor(exchange, identity, "east", ledger), 1, 2)
    other = Ledger(tmp_path / "other.sqlite")
    spend(other, None, *range(1, lines + 1), run="other-0001")
    with pytest.raises(LedgerError, match=r"is not the ledger that this site signed for, with"):
        LedgerAnchor(exchange, identity, "east", other).check()
    spend(other, None, 9)


def test_an_altered_ledger_is_not_compared_but_refused(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    spend(ledger, anchor, 1)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE entries SET mu = 0 WHERE seq = 1")
    with pytest.raises(LedgerError, match="was altered"):
        anchor.check()


def test_nothing_but_the_sites_own_word_counts(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    spend(ledger, LedgerAnchor(exchange, identity, "east", ledger), 1)
    (tmp_path / "foe").mkdir()
    foe = create_identity(tmp_path / "foe", bytes(64)).key
    body, key = b'["aa", "bb"]', identity.key
    forged = {
        "ledgers/east/000000009": seal(foe, RUN, "east", KIND, 9, body),
        "ledgers/east/000000010": seal(key, "small-0001", "east", KIND, 10, body),
        "ledgers/east/000000011": seal(key, RUN, "east", "contribution", 11, body),
        "ledgers/east/000000012": seal(key, RUN, "east", KIND, 7, body),
        "ledgers/east/000000013": seal(key, RUN, "west", KIND, 13, body),
        "ledgers/east/000000014": b"",
        "ledgers/east/000000015": b"\xff" * 100_000,
        "ledgers/east/999999999": b"[]",
        "ledgers/east/9999999999999999999": b"[]",
        "ledgers/east/word": b"[]",
        "ledgers/east/000000016/below": b"[]",
    }
    for name, data in forged.items():
        exchange.put(name, data)
    assert LedgerAnchor(exchange, identity, "east", ledger).check() == 1
    spend(ledger, None, 2)


def test_a_true_head_above_does_count(tmp_path: Path, identity: Identity) -> None:
    """The falsifier of the test before: the same place, signed as it should be."""
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    spend(ledger, None, 1)
    body = b'["aa", "bb"]'
    exchange.put("ledgers/east/000000012", seal(identity.key, RUN, "east", KIND, 12, body))
    with pytest.raises(LedgerError, match="is not the ledger"):
        LedgerAnchor(exchange, identity, "east", ledger).check()


def test_a_flood_of_names_is_bounded_work(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = Busy(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    spend(ledger, anchor, *range(1, 40))
    for number in range(100, 20_100):
        exchange.put(f"ledgers/east/{number:09d}", b"x")
    assert anchor.check() == MOST_READ
    assert exchange.read == 2 * MOST_READ


def test_a_place_that_is_taken_or_down_stops_nothing(tmp_path: Path, identity: Identity) -> None:
    exchange, ledger = Busy(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    exchange.put("ledgers/east/000000002", b"in the way")
    charge = round_of(ledger, 1)
    ledger.reserve(charge, "now")
    assert isinstance(anchor.post(), ExchangeError)
    ledger.spend(charge, "now")
    exchange.down = True
    assert "down" in str(anchor.post())
    with pytest.raises(ExchangeError, match="down"):
        anchor.check()
    exchange.down = False
    assert anchor.post() is None
    assert anchor.check() == 1


def _own(ledger: Ledger, identity: Identity, number: int) -> None:
    charge = held(ledger, replace(CHARGE, site=identity.public.hex(), round=number))
    ledger.reserve(charge, "now")
    ledger.spend(charge, "now")


def test_lost_heads_are_noticed_until_somebody_accepts_the_ledger(
    tmp_path: Path, identity: Identity
) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    _own(ledger, identity, 1)
    for _ in range(2):
        with pytest.raises(
            LedgerError, match="3 lines, and the exchange has none of this site's signed heads"
        ):
            anchor.check()
    assert anchor.accept() == ledger.head()
    assert anchor.check() == 1
    older = LedgerAnchor(exchange, identity, "east", Ledger(tmp_path / "older.sqlite"))
    with pytest.raises(LedgerError, match="is not the ledger"):
        older.accept()  # what people say does not outweigh what the site signed


def test_first_starts_need_nobodys_word(tmp_path: Path, identity: Identity) -> None:
    """An empty ledger, another agent's, or one whose agent died before its first head."""
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger)
    assert anchor.check() == 0
    spend(ledger, None, 1, 2, run="other-0001")
    assert anchor.check() == 0
    ledger.reserve(held(ledger, replace(CHARGE, site=identity.public.hex())), "now")
    assert anchor.check() == 0


def test_the_heads_of_the_key_before_count_and_its_answers_too(
    tmp_path: Path, identity: Identity
) -> None:
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    (tmp_path / "new").mkdir()
    new = create_identity(tmp_path / "new", bytes(64))
    changed = LedgerAnchor(exchange, new, "east", ledger, identity.public)
    _own(ledger, identity, 1)
    with pytest.raises(LedgerError, match="none of this site's signed heads"):
        changed.check()
    assert LedgerAnchor(exchange, identity, "east", ledger).post() is None
    assert changed.check() == 1
    assert changed.post() is None  # the same word under the key before is word enough
    assert isinstance(LedgerAnchor(exchange, new, "east", ledger).post(), ExchangeError)
    assert LedgerAnchor(exchange, new, "east", ledger).check() == 0


@given(st.lists(st.sampled_from(["spend", "post", "backup", "restore"]), max_size=14))
@example(["spend", "post", "restore", "spend", "post"])
def test_whatever_happens_only_a_loss_of_signed_lines_is_refused(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """A model: lines are numbered answers; the newest posted line must still be there."""
    folder = tmp_path_factory.mktemp("anchor")
    identity, exchange = create_identity(folder, bytes(range(64))), MemoryExchange()
    path, backup = folder / "l.sqlite", folder / "backup.sqlite"
    lines: list[int] = []
    saved: list[int] = []
    posted: dict[int, int] = {}
    Ledger(path).close()
    shutil.copy(path, backup)
    for number, step in enumerate(steps, start=1):
        ledger = Ledger(path)
        if step == "spend":
            ledger.reserve(held(ledger, replace(CHARGE, run=f"small-{number:04}")), "now")
            lines.append(number)
        elif step == "post":
            if lines and posted.get(len(lines)) not in (None, lines[-1]):
                # Copies whose very first lines differ are two ledgers.
                words = "two copies were written to|is not the ledger that this site signed for"
                with pytest.raises(LedgerError, match=words):
                    LedgerAnchor(exchange, identity, "east", ledger).post()
                return
            assert LedgerAnchor(exchange, identity, "east", ledger).post() is None
            if lines:
                posted[len(lines)] = lines[-1]
        ledger.close()
        if step == "backup":
            shutil.copy(path, backup)
            saved = list(lines)
        elif step == "restore":
            shutil.copy(backup, path)
            lines = list(saved)
    kept = all(len(lines) >= seq and lines[seq - 1] == line for seq, line in posted.items())
    anchor = LedgerAnchor(exchange, identity, "east", Ledger(path))
    if kept:
        assert anchor.check() == len(posted)
    else:
        with pytest.raises(LedgerError):
            anchor.check()


class _Store:
    """A store of messages that has answered one run."""

    def __init__(self) -> None:
        self.open = ["small-0001"]

    def answered(self) -> list[str]:
        return self.open

    def account_for(self, runs: Sequence[str]) -> None:
        self.open = [run for run in self.open if run not in runs]


def test_an_empty_ledger_beside_answers_is_a_lost_one(tmp_path: Path, identity: Identity) -> None:
    """With the ledger and all heads gone its people say how to go on; a budget is not fresh."""
    exchange, ledger = MemoryExchange(), Ledger(tmp_path / "l.sqlite")
    anchor = LedgerAnchor(exchange, identity, "east", ledger, None, _Store())
    with pytest.raises(LedgerError, match=r"has no line of small-0001, although the site's store"):
        anchor.check()
    anchor.accept()
    assert anchor.check() == 0
    spend(ledger, anchor, 1)
    assert anchor.check() > 0


def test_an_older_ledger_is_found_out_by_the_store_where_an_exchange_kept_an_old_head(
    tmp_path: Path, identity: Identity
) -> None:
    exchange, ledger, store = MemoryExchange(), Ledger(tmp_path / "l.sqlite"), _Store()
    spend(ledger, LedgerAnchor(exchange, identity, "east", ledger), 1)
    backup = copied(ledger, tmp_path / "backup.sqlite")
    store.open = [CHARGE.run, "later-0001"]
    with pytest.raises(LedgerError, match="has no line of later-0001"):
        LedgerAnchor(exchange, identity, "east", backup, None, store).check()
    store.open = [CHARGE.run]
    assert LedgerAnchor(exchange, identity, "east", backup, None, store).check() > 0
