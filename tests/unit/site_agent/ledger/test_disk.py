"""A ledger on a network file system belongs to one machine and has a rollback journal."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from consortium.errors import LedgerError
from site_agent.ledger import disk
from site_agent.ledger.disk import machine_path, network_type
from site_agent.ledger.ledger import Ledger
from site_agent.run.message_store import MessageStore
from tests.support.charges import held
from tests.unit.site_agent.ledger.test_file import CHARGE


def mount(patch: pytest.MonkeyPatch, table: Path, *lines: str) -> None:
    """Let these lines be the machine's table of mounts."""
    table.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    patch.setattr(disk, "MOUNTS", table)


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph")),
        *((kind, True) for kind in ("beegfs", "fuse.sshfs", "fuse.glusterfs", "9p")),
        *((kind, False) for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs")),
    ],
)
def test_the_type_of_the_nearest_mount_decides(
    kind: str, network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home of north"
    home.mkdir()
    escaped = str(home).replace(" ", r"\040")
    root = "server:/ / nfs rw 0 0" if not network else "/dev/sda / ext4 rw 0 0"
    mount(monkeypatch, tmp_path / "mounts", root, f"there {escaped} {kind} rw 0 0")
    assert network_type(home / "ledger.sqlite") == (kind if network else "")


def test_a_later_mount_hides_an_earlier_one_and_no_table_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ("s:/ / nfs rw 0 0", "/dev/sda / ext4 rw 0 0", "damaged")
    mount(monkeypatch, tmp_path / "mounts", *lines)
    assert network_type(tmp_path) == ""
    mount(monkeypatch, tmp_path / "mounts", *lines[1::-1])
    assert network_type(tmp_path) == "nfs"
    monkeypatch.setattr(disk, "MOUNTS", tmp_path / "nothing")
    assert network_type(tmp_path) == ""


def journal(path: Path) -> str:
    """Return the journal that a database's file has."""
    connection = sqlite3.connect(path)
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    return str(mode)


def test_a_ledger_that_moves_to_a_network_has_another_journal_and_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, table = tmp_path / "ledger.sqlite", tmp_path / "mounts"
    ledger = Ledger(path)
    charge = held(ledger, CHARGE)
    assert ledger.reserve(charge, "noon")
    head = ledger.head()
    ledger.close()
    assert journal(path) == "wal"
    mount(monkeypatch, table, "server:/home / nfs4 rw 0 0")
    ledger = Ledger(path)
    assert ledger.head() == head
    ledger.spend(charge, "noon")
    ledger.close()
    assert journal(path) == "delete"
    store = MessageStore(tmp_path / "messages.sqlite")
    store.save("run", "name", b"data")
    store.close()
    assert journal(tmp_path / "messages.sqlite") == "delete"
    mount(monkeypatch, table, "/dev/sda / ext4 rw 0 0")
    assert len(Ledger(path).entries()) == 3


def test_a_second_machine_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.sqlite"
    mount(monkeypatch, tmp_path / "mounts", "server:/home / nfs4 rw 0 0")
    Ledger(path).close()
    Ledger(path).close()  # the same machine again
    own = disk.this_machine()
    monkeypatch.setattr(disk, "this_machine", lambda: "other 0123")
    with pytest.raises(LedgerError) as caught:
        Ledger(path)
    assert str(caught.value) == (
        f"{path}: only one machine may use a database on a network file system (nfs4), and "
        f"'{own}' uses this one while this machine is 'other 0123'. Run the site's commands "
        f"there, or stop every agent there and remove {machine_path(path)}."
    )
    machine_path(path).unlink()
    Ledger(path).close()
    assert machine_path(path).read_text(encoding="utf-8") == "other 0123\n"


_RESERVE = """
import sys
from dataclasses import replace
from pathlib import Path
from site_agent.ledger import disk
from site_agent.ledger.ledger import Ledger
from tests.support.charges import held
from tests.unit.site_agent.ledger.test_file import CHARGE

disk.MOUNTS = Path(sys.argv[2])
ledger = Ledger(Path(sys.argv[1]))
first = held(ledger, replace(CHARGE, run=f"small-{sys.argv[3]}"), loss=9.0)
for number in range(1, 21):
    ledger.reserve(replace(first, round=number), "noon")
"""


def test_programs_of_one_machine_write_side_by_side_without_a_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, table = tmp_path / "ledger.sqlite", tmp_path / "mounts"
    mount(monkeypatch, table, "server:/home / nfs4 rw 0 0")
    commands = [[sys.executable, "-c", _RESERVE, str(path), str(table), str(n)] for n in range(3)]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(Ledger(path).entries()) == 63
