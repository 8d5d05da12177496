"""A site's folder is restored from a backup that is older than its newest approvals."""

import contextlib
import shutil
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import SiteError
from consortium.membership.keys import load_identity
from site_agent.approval.folder_states import FolderStates
from site_agent.approval.withdrawal import take_back
from site_agent.config import SiteConfig
from site_agent.layout import APPROVED, LEDGER, PINNED
from site_agent.ledger import disk
from site_agent.ledger.ledger import Ledger
from tests.attacks.attack_kinds import Stage, always, attack, nothing
from tests.attacks.attacks_on_approvals import DAY, _permitted, _rotated, _yes
from tests.support.forgery import pump, rounds_of, settle
from tests.support.local_consortium import LocalConsortium, conduct
from tests.support.membership_files import PLAIN, papers


def _states(place: DemoFolders) -> FolderStates:
    folder = place.site("north")
    config = SiteConfig.load(folder)
    return FolderStates(folder, config, load_identity(folder), Ledger(config.ledger))


def _put_back(backup: Path, folder: Path, *, ledger: bool) -> None:
    """Replace the folder by its backup; its ledger only if that is meant."""
    for file in [*folder.iterdir()]:
        if ledger or not file.name.startswith(LEDGER):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    for file in backup.iterdir():
        if ledger or not file.name.startswith(LEDGER):
            copy = shutil.copytree if file.is_dir() else shutil.copy
            copy(file, folder / file.name)


def _answers(stage: Stage, place: DemoFolders) -> bool:
    """Let a centre run the study; whether north answers it."""
    local = LocalConsortium(place)
    with contextlib.suppress(SiteError):
        conduct(local.centre())
    pump(local)
    stage.said.append(local.said("north"))
    return rounds_of(place, "north") != []


def _withdraw_and_put_back(stage: Stage, *, ledger: bool) -> bool:
    place = settle(stage.root / "place")
    folder, backup = place.site("north"), stage.root / "backup"
    states = _states(place)
    states.settle("noon")
    states.ledger.close()
    shutil.copytree(folder, backup)
    assert take_back(folder, "small", DAY) is None
    _put_back(backup, folder, ledger=ledger)
    return _answers(stage, place)


@attack(
    "disk intruder",
    guard="site_agent.approval.folder_states:raise_serials",
    without="an approval that was withdrawn counts again after a backup is restored",
    stops="an approval must be the newest to count",
    instead=nothing,
)
def backup_with_a_withdrawn_approval(stage: Stage) -> bool:
    """Restores a site's whole folder, without its ledger, from before a withdrawal."""
    return _withdraw_and_put_back(stage, ledger=False)


@attack(
    "disk intruder",
    guard="site_agent.ledger.anchor:LedgerAnchor._read",
    without="an approval that was withdrawn counts again after its ledger is restored with it",
    stops="lines where this site signed for",
    instead=nothing,
)
def backup_with_the_ledger_of_an_approval(stage: Stage) -> bool:
    """Restores a site's whole folder, with its ledger, from before a withdrawal."""
    return _withdraw_and_put_back(stage, ledger=True)


@attack(
    "disk intruder",
    guard="site_agent.ledger.disk:_claim",
    without="two machines write to one ledger at a time, and a limit is passed",
    stops="only one machine may use a database on a network file system",
    instead=nothing,
)
def ledger_on_two_machines(stage: Stage) -> bool:
    """Starts a copy of the agent on a second machine that mounts the same network folder."""
    path, mounts = stage.root / LEDGER, stage.root / "mounts"
    mounts.write_text("server:/home / nfs4 rw 0 0\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "MOUNTS", mounts)
        Ledger(path)
        patch.setattr(disk, "this_machine", lambda: "another")
        return Ledger(path).head().seq == 0


@attack(
    "disk intruder",
    guard="site_agent.approval.folder_states:FolderStates.check_roster",
    without="a key of the consortium that was replaced is trusted again after a backup is restored",
    stops="the roster must be number 6 or newer",
    instead=nothing,
)
def backup_with_an_older_roster(stage: Stage) -> bool:
    """Restores the record of the consortium from before its key was replaced."""
    place, members = papers(stage.root)
    old, folder = _yes(place), place.site("north")
    _states(place).settle("noon")
    shutil.copy(folder / PINNED, stage.root / "backup")
    approved = (folder / APPROVED / "small.json").read_bytes()
    place.files.study.write_text(PLAIN.replace("study: small", "study: other"))
    _rotated(place, members)
    _yes(place)
    _states(place).settle("noon")
    shutil.copy(stage.root / "backup", folder / PINNED)
    assert (folder / APPROVED / "small.json").read_bytes() == approved
    _states(place).settle("noon")
    return _permitted(place, old).approval == old


@attack(
    "disk intruder",
    guard="site_agent.approval.folder_states:FolderStates.left_out_before",
    without="a participant who withdrew takes part again after a backup is restored",
    stops="takes part in small-0001 with 2 participants",
    instead=always([]),
)
def backup_with_a_shorter_left_out_table(stage: Stage) -> bool:
    """Restores a hospital's left-out table from before a participant was added to it."""
    place = settle(stage.root / "place")
    folder = place.site("north")
    table, header = folder / "left_out.tsv", "participant_id\treason\n"
    config = SiteConfig.load(folder).model_copy(update={"left_out": table})
    config.save(folder)
    first = sorted(path.name for path in place.dataset("north").glob("sub-*"))[0]
    table.write_text(f"{header}{first}\twithdrew\n", encoding="utf-8")
    _states(place).settle_left_out("noon")
    table.write_text(header, encoding="utf-8")
    assert _answers(stage, place)
    return "takes part in small-0001 with 3 participants" in stage.said[-1]
