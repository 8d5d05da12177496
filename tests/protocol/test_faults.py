"""Every kind of fault at the steps of a run: the same result, or a stop that names the cause.

Here a part of the matrix is played, spread over all steps and kinds;
``python -m tests.long.faults`` plays and prints all of it.
"""

from pathlib import Path

import numpy as np
import pytest

from consortium.secagg import Party
from site_agent.run.outbox import Outbox
from tests.protocol.fault_cells import (
    COLUMNS,
    SAME,
    Kill,
    Outcome,
    Trial,
    attempt,
    leaks,
    rows,
    scene,
    trials,
)
from tests.protocol.faults import FaultyConsortium
from tests.protocol.watched import CENTRE, Write
from tests.support.local_consortium import SITES


def some(party: str, column: str) -> list[Write]:
    """A step of a party, another with the next kind; of both, if its own disk can be hit, too.

    Only what is on its way to others is put there again by itself once a disk has room.
    """
    known, number = rows(party, column), COLUMNS.index(column)
    own = [at for at in known if at.where != "exchange"]
    if own:
        sent = [at for at in known if at.what.startswith("runs/")]
        return [steps[number % len(steps)] for steps in (sent, own)]
    return [known[number % len(known)]]


def check(column: str, at: Write, root: Path, boost: str = "exact") -> list[str]:
    """Play a cell; returns how its runs ended."""
    ends = []
    for number, trial in enumerate(trials(column, at, boost)):
        outcome = attempt(trial, at, root / str(number), boost)
        assert not outcome.problems, f"{at.who}, {at}, {column}: {outcome}"
        ends.append(outcome.end)
    return ends


@pytest.mark.parametrize(
    ("party", "column"),
    [  # of every other fault one party's; the other's in `make long`
        pytest.param(party, column, marks=[pytest.mark.long] if number % 2 == which else [])
        for number, column in enumerate(COLUMNS)
        for which, party in enumerate([CENTRE, "east"])
    ],
)
def test_some_steps_under_every_fault(party: str, column: str, tmp_path: Path) -> None:
    chosen = some(party, column)
    assert chosen
    ends = [end for at in chosen for end in check(column, at, tmp_path)]
    # What is lost, or whoever has vanished, doesn't come back.
    assert SAME in ends or column in ("lost", "vanished")


@pytest.mark.parametrize(
    "column", ["killed", "vanished", pytest.param("disk full", marks=pytest.mark.long)]
)
def test_vectors_sent_openly(column: str, tmp_path: Path) -> None:
    contributions = [at for at in rows("south", column, "10000") if "/contribution" in at.what]
    check(column, contributions[0], tmp_path, "10000")


@pytest.mark.parametrize("column", ["killed", pytest.param("disk full", marks=pytest.mark.long)])
def test_attestations_are_the_same_or_missing(column: str, tmp_path: Path) -> None:
    attested = [at for at in rows("east", column) if "/attestation/" in at.what]
    check(column, attested[0], tmp_path)


def test_no_step_is_left_out() -> None:
    said = {(w.who, w.where) for w in scene().writes}
    assert said >= {(site, where) for site in SITES for where in ("exchange", "store", "ledger")}
    assert said >= {(CENTRE, "exchange"), (CENTRE, "folder")}
    kinds = {word for w in scene().writes for word in w.what.split("/")}
    assert kinds >= {"study", "present", "start", "advertise", "keys", "share", "shares", "query"}
    assert kinds >= {"public", "contribution", "ledgers", "unmask", "unmasking", "end", "consent"}


# -- a judge that can't find anything would be none ------------------------------------------


def cell_of(column: str, what: str, root: Path) -> Outcome:
    at = next(w for w in scene().writes if w.what == what)
    return attempt(trials(column, at)[-1], at, root)


def test_a_site_that_forgets_what_it_said_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, contribute, count = Outbox.stored, Party.contribute, iter(range(100))
    scene()

    def forget(post: Outbox, name: str) -> bytes | None:
        return None if name.endswith("/contribution") else real(post, name)

    def another(party: Party, number: int, context: bytes, masked: np.ndarray, *given, **more):
        return contribute(party, number, context, masked + np.uint8(next(count)), *given, **more)

    monkeypatch.setattr(Outbox, "stored", forget)
    monkeypatch.setattr(Party, "contribute", another)
    at = next(w for w in scene().writes if w.what == "runs/small-0001/00001/contribution/east")
    outcome = attempt(Trial("strict", lambda w: Kill(w, "after"), SAME), at, tmp_path / "run")
    assert outcome.end != SAME
    assert outcome.problems


def test_a_ledger_that_charges_again_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from site_agent.ledger.file import LedgerFile

    scene()
    find = LedgerFile.find
    monkeypatch.setattr(
        LedgerFile,
        "find",
        lambda book, charge, event: None if event == "reserve" else find(book, charge, event),
    )
    outcome = cell_of("killed", "small-0001/1/reserve", tmp_path / "run")
    assert outcome.problems


def test_a_secret_in_a_log_is_found(tmp_path: Path) -> None:
    local = FaultyConsortium(scene().copy(tmp_path / "place"))
    secret = bytes(range(7, 39))
    assert leaks(local, {"seed": [secret]}, "all is well") == []
    assert leaks(local, {"seed": [secret]}, f"seed {secret.hex()}") == ["seed in a log"]
    told = np.array([0.123456789, 2.5]).tobytes()
    local.log.append(("north", "the norm is 0.12346"))
    assert leaks(local, {"statistic": [told]}, "") == ["statistic in a log"]
