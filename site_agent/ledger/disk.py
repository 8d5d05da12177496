"""The disk of a site's databases: local, or a network file system that machines share.

SQLite's usual log (WAL) needs memory that all its users share, so it works on a single machine. A
database on a network file system therefore has a rollback journal, and belongs to the machine that
used it first: a file next to the database names that machine, and any other is refused. Locks
between the programs of one machine work on such a file system.
"""

import re
import sqlite3
import time
from pathlib import Path
from socket import gethostname

from consortium.errors import LedgerError

MOUNTS = Path("/proc/self/mounts")
"""Table of mounts: device, folder, type, options, a line each."""
_LOOKS = 40
_PAUSE = 0.05  # s between two looks
_PATIENCE = 30.0  # s to wait for other processes that open a new database
_MACHINE = Path("/etc/machine-id")
_SERVERS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "davfs"}
_CLUSTERS = {"ceph", "lustre", "gpfs", "beegfs", "beegfs_nodev", "panfs", "pvfs2", "glusterfs"}
_SHARED_DISKS = {"gfs2", "ocfs2", "wekafs", "quobyte", "moosefs"}
_HOSTS = {"9p", "virtiofs", "vboxsf", "prl_fs"}
"""Folders of a virtual machine's host."""
_NETWORK = frozenset(_SERVERS | _CLUSTERS | _SHARED_DISKS | _HOSTS)
_LOCAL_FUSE = frozenset(("fuse.fuse-overlayfs", "fuse.ext4", "fuse.lxcfs"))


def network_type(path: Path) -> str:
    """Return the type of a path's network file system, such as nfs4; empty if the disk is local.

    Where the table of mounts can't be read, every disk counts as local.
    """
    place = path.resolve()
    found = ""
    longest = -1
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        # A damaged line may have fewer fields.
        _, folder, kind, *_ = [*line.split(" "), "", "", ""]
        mount = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), folder))
        # A later mount on the same folder hides an earlier one.
        if len(mount.parts) >= longest and folder and place.is_relative_to(mount):
            found = kind
            longest = len(mount.parts)
    is_network = found in _NETWORK or (found.startswith("fuse.") and found not in _LOCAL_FUSE)
    return found if is_network else ""


def set_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Choose the journal that works on a database's disk.

    Raises LedgerError if another machine uses the database on a network file system, or the journal
    can't be changed.
    """
    network = network_type(path)
    wanted = "delete" if network else "wal"
    if network:
        _claim(path, network)
    mode = _changed_journal(connection, wanted)
    if network and mode != wanted:
        raise LedgerError(
            f"{path}: the database must have a rollback journal on a network file system "
            f"({network}), and another program has it open in mode WAL. Stop that "
            "program."
        )


def _changed_journal(connection: sqlite3.Connection, wanted: str) -> str:
    """Change the journal and return the mode, also while other processes open a new database.

    SQLite does not wait for its timeout here, as two such changes could wait for each other.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            (mode,) = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return str(mode)


def machine_path(path: Path) -> Path:
    """Return the path of the file that names a database's machine."""
    return path.with_name(f"{path.name}.machine")


def this_machine() -> str:
    """Return the name and the identifier of this machine, in one line."""
    try:
        identifier = _MACHINE.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        identifier = ""
    return f"{gethostname()} {identifier}".strip()


def _claim(path: Path, network: str) -> None:
    """Record that this machine uses a database; refuse it if another one does."""
    own = this_machine()
    place = machine_path(path)
    try:
        known = _first_machine(place, own)
    except (OSError, ValueError) as error:
        raise LedgerError(f"{place} must be readable and writable: {error}.") from error
    if known != own:
        raise LedgerError(
            f"{path}: only one machine may use a database on a network file system ({network}), "
            f"and '{known}' uses this one while this machine is '{own}'. Run the site's commands "
            f"there, or stop every agent there and remove {place}."
        )


def _first_machine(place: Path, own: str) -> str:
    """Return the machine that a file names, or this one if the file is missing."""
    try:
        with place.open("x", encoding="utf-8") as file:  # one of two machines makes it
            file.write(own + "\n")
    except FileExistsError:
        for _ in range(_LOOKS):  # another program may be about to write it
            known = place.read_text(encoding="utf-8").strip()
            if known:
                return known
            time.sleep(_PAUSE)
        raise
    return own
