"""A backup of a site's folder brings back no approval that was withdrawn since."""

import contextlib
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import ConsortiumError, SiteError
from consortium.membership.consent import read_consents
from consortium.membership.keys import load_identity
from consortium.study.reader import read_study
from site_agent.approval.withdrawal import take_back
from site_agent.layout import APPROVED, CONFIG, LEDGER, PINNED, STORE
from tests.support.forgery import ledger, pump, settle
from tests.support.local_consortium import STUDY, LocalConsortium, conduct, limit, say_yes

SHORT = STUDY.replace("rounds: 2", "rounds: 1")
DAY = date(2026, 11, 21)
SECOND = "small-0002"
Kept = Callable[[str], bool]


def _start(place: DemoFolders) -> LocalConsortium:
    """Start every agent as 'site-agent start' does; one that refuses to start is not there."""
    local = LocalConsortium(place)
    for name in local.study.sites:
        try:
            local.agent(name)._begin()
        except ConsortiumError as error:
            local.log.append((name, str(error)))
            local.absent.add(name)
    return local


def _stop(local: LocalConsortium) -> None:
    for agent in local.agents.values():
        agent.site.store.close()
        agent.site.ledger.close()
    local.agents.clear()


@pytest.fixture(scope="module")
def withdrawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolders, Path]:
    """A place where north took part in one run, and its backup from before it withdrew."""
    root = tmp_path_factory.mktemp("withdrawn")
    place = settle(root / "place", text=SHORT)
    for name in ("north", "east", "south", "west"):
        limit(place, name, 50.0)
        say_yes(place, name, runs=5)
    local = _start(place)
    conduct(local.centre())
    pump(local, 20)
    _stop(local)
    place.files.out.rename(place.root / "first")
    shutil.copytree(place.site("north"), root / "backup")
    assert take_back(place.site("north"), "small", DAY) is None
    return place, root / "backup"


def _copied(source: DemoFolders, target: Path) -> DemoFolders:
    shutil.copytree(source.root, target)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(source.root), str(target)))
    return DemoFolders(target)


def _put_back(backup: Path, folder: Path, is_restored: Kept) -> None:
    for file in [*folder.iterdir()]:
        if is_restored(file.name):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    for file in backup.iterdir():
        if is_restored(file.name):
            copy = shutil.copytree if file.is_dir() else shutil.copy
            copy(file, folder / file.name)


def _clear(place: DemoFolders) -> None:
    """Delete on the exchange all that north signed of its ledger and its approvals."""
    for name in ("ledgers/north", "consent/small/north"):
        shutil.rmtree(place.files.exchange / name, ignore_errors=True)


CASES: dict[str, Kept] = {
    **{name: (lambda file, name=name: file == name) for name in (APPROVED, PINNED, "keys")},
    STORE: lambda file: file.startswith(STORE),
    LEDGER: lambda file: file.startswith(LEDGER),
    "all but the ledger": lambda file: not file.startswith(LEDGER) and file != CONFIG,
    "all": lambda file: file != CONFIG,
}


@pytest.mark.parametrize("is_cleared", [False, True], ids=["", "the exchange was cleared"])
@pytest.mark.parametrize("case", CASES)
def test_a_backup_brings_no_withdrawn_approval_back(
    case: str, is_cleared: bool, withdrawn: tuple[DemoFolders, Path], tmp_path: Path
) -> None:
    source, backup = withdrawn
    place = _copied(source, tmp_path / "place")
    _put_back(backup, place.site("north"), CASES[case])
    if is_cleared:
        _clear(place)
    local = _start(place)
    with contextlib.suppress(SiteError):
        conduct(local.centre())
    pump(local)
    assert SECOND not in {line.charge.run for line in ledger(place, "north")}
    study, exchange = read_study(place.files.study), place.files.open_exchange()
    keys = {"north": load_identity(place.site("north")).public}
    consent = read_consents(exchange, study, keys)["north"]
    assert consent is None if is_cleared else consent is not None and consent.terms is None


def test_a_single_record_that_is_put_back_does_not_count(
    withdrawn: tuple[DemoFolders, Path], tmp_path: Path
) -> None:
    source, backup = withdrawn
    for name in ("small.json", "serials"):
        place = _copied(source, tmp_path / name)
        shutil.copy(backup / APPROVED / name, place.site("north") / APPROVED)
        local = _start(place)
        with contextlib.suppress(SiteError):
            conduct(local.centre())
        assert SECOND not in {line.charge.run for line in ledger(place, "north")}


def test_the_study_can_be_approved_again_after_a_backup_was_restored(
    withdrawn: tuple[DemoFolders, Path], tmp_path: Path
) -> None:
    source, backup = withdrawn
    place = _copied(source, tmp_path / "place")
    _put_back(backup, place.site("north"), CASES["all but the ledger"])
    _stop(_start(place))
    say_yes(place, "north", runs=5)
    conduct(_start(place).centre())
    assert SECOND in {line.charge.run for line in ledger(place, "north")}


def test_limit_a_site_that_never_answered_depends_on_the_exchange(tmp_path: Path) -> None:
    """Without heads on the exchange, a ledger without an answer is not known to be old."""
    place = settle(tmp_path / "place", text=SHORT)
    _stop(_start(place))
    shutil.copytree(place.site("north"), tmp_path / "backup")
    assert take_back(place.site("north"), "small", DAY) is None
    _put_back(tmp_path / "backup", place.site("north"), CASES["all"])
    assert "where this site signed for" in _start(place).said("north")
    _put_back(tmp_path / "backup", place.site("north"), CASES["all"])
    _clear(place)
    assert _start(place).said("north") == ""
