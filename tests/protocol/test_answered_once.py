"""A site that dies between charge and answer, and junk in the place of a site's message."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consortium.algorithms.base import Query
from consortium.errors import CopyError
from site_agent.layout import LEDGER, STORE
from site_agent.run import rounds
from site_agent.run.charges import Charges
from tests.support.forgery import NAMES, ask, opened, path_of, pump, rounds_of, settle, write
from tests.support.local_consortium import LocalConsortium

QUERY = Query("pca", "second_moment")
FROM_THE_START = 12  # looks at the exchange, for an agent that was built again


class _Killed(BaseException):
    """No agent catches it."""


def _die(_key: bytes) -> None:
    raise _Killed


def _stop(local: LocalConsortium) -> None:
    agent = local.agents.pop("north")
    agent.site.store.close()
    agent.site.ledger.close()


def _another_library(patch: pytest.MonkeyPatch) -> None:
    """Let every number be computed a last digit smaller."""
    real: Any = rounds.local_statistic
    patch.setattr(rounds, "local_statistic", lambda *args: np.nextafter(real(*args), 0.0))


def _dead_after_the_charge(root: Path) -> LocalConsortium:
    """North has paid for round 1 and stored no answer."""
    local = opened(settle(root / "place"))
    local.absent = {"east", "south", "west"}
    ask(local.place, QUERY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "GaussianSampler", _die)
        with pytest.raises(_Killed):
            pump(local)
    _stop(local)
    assert rounds_of(local.place, "north") == [1]
    return local


def test_who_dies_between_charge_and_answer_answers_after_a_restart(tmp_path: Path) -> None:
    local = _dead_after_the_charge(tmp_path)
    pump(local, FROM_THE_START)
    assert path_of(local.place, NAMES.round(1, "contribution", "north")).exists()
    assert rounds_of(local.place, "north") == [1]


def test_who_then_computes_other_numbers_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = _dead_after_the_charge(tmp_path)
    _another_library(monkeypatch)
    pump(local, FROM_THE_START)
    assert "was reserved for other numbers than this machine computes now" in local.said("north")
    assert not path_of(local.place, NAMES.round(1, "contribution", "north")).exists()
    assert path_of(local.place, NAMES.refusal("north")).exists()


def test_junk_in_the_place_of_an_answer_halts_nobody(tmp_path: Path) -> None:
    local = opened(settle(tmp_path / "place"))
    place = NAMES.round(1, "contribution", "north")
    write(local.place, place, b"junk")
    ask(local.place, QUERY)
    pump(local)
    assert "already has another message" in local.said("north")
    assert local.agents["north"].site.store.halted is None
    path_of(local.place, place).unlink()
    pump(local)
    assert path_of(local.place, place).read_bytes() != b"junk"
    path_of(local.place, place).write_bytes(_other_payload(path_of(local.place, place)))
    _stop(local)
    pump(local, FROM_THE_START)  # puts its stored answer again
    assert local.agents["north"].site.store.halted is None


def _other_payload(message: Path) -> bytes:
    """Change a vector under a site's own envelope, as anybody on the exchange can."""
    data = message.read_bytes()
    return bytes([data[0] ^ 1]) + data[1:]


def test_a_copy_that_computes_other_numbers_halts_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = opened(settle(tmp_path / "place"))
    folder, copy = local.place.site("north"), tmp_path / "copy"
    _stop(local)
    shutil.copytree(folder, copy)
    ask(local.place, QUERY)
    pump(local, FROM_THE_START)
    place = path_of(local.place, NAMES.round(1, "contribution", "north"))
    first = place.read_bytes()
    _stop(local)
    for name in (STORE, LEDGER):
        for file in folder.glob(f"{name}*"):
            file.unlink()
        for file in copy.glob(f"{name}*"):
            shutil.copy(file, folder)
    shutil.rmtree(path_of(local.place, "ledgers/north"))  # the heads are somebody else's test
    _another_library(monkeypatch)
    for _ in range(2):
        with pytest.raises(
            CopyError, match="contribution/north contains another answer signed with"
        ):
            pump(local, FROM_THE_START)
        _stop(local)
    assert place.read_bytes() == first


def _withdrawn(local: LocalConsortium) -> None:
    """Let one of north's participants leave the data set."""
    first = sorted(local.place.dataset("north").glob("sub-*"))[0]
    first.rename(local.place.root / first.name)


def test_a_stored_answer_is_sent_again_though_a_participant_was_withdrawn(tmp_path: Path) -> None:
    local = opened(settle(tmp_path / "place"))
    local.absent = {"east", "south", "west"}
    ask(local.place, QUERY)
    pump(local)
    answer = path_of(local.place, NAMES.round(1, "contribution", "north"))
    before = answer.read_bytes()
    _stop(local)
    _withdrawn(local)
    answer.unlink()
    pump(local, FROM_THE_START)
    assert answer.read_bytes() == before
    assert "with 2 participants" in local.said("north")
    assert rounds_of(local.place, "north") == [1]


def test_an_answer_that_was_not_stored_has_other_noise_once_a_participant_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[bytes] = []
    real: Any = Charges.noise_key

    def noted(*args: object) -> bytes:
        keys.append(real(*args))
        return keys[-1]

    monkeypatch.setattr(Charges, "noise_key", noted)
    local = opened(settle(tmp_path / "place"))
    local.absent = {"east", "south", "west"}
    ask(local.place, QUERY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Charges, "commit", lambda *_args: _die(b""))
        with pytest.raises(_Killed):
            pump(local)
    _stop(local)
    _withdrawn(local)
    pump(local, FROM_THE_START)
    assert path_of(local.place, NAMES.round(1, "contribution", "north")).exists()
    first, second = keys
    assert first != second


def test_the_key_of_noise_binds_the_number_of_units(tmp_path: Path) -> None:
    local = opened(settle(tmp_path / "place"))
    charges = _charges(local)
    assert charges.noise_key(b"q", b"s", 3) == charges.noise_key(b"q", b"s", 3)
    assert charges.noise_key(b"q", b"s", 3) != charges.noise_key(b"q", b"s", 2)


def _charges(local: LocalConsortium) -> Charges:
    (participation,) = local.agent("north")._runs.values()
    assert participation is not None
    assert participation.rounds is not None
    return participation.rounds._charges
