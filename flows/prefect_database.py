"""A new database of Prefect's own, kept: to make one takes longer than all else of its start."""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path

from consortium.base.kept_arrays import cache_folder

DATABASE = "prefect:memory:.db"
"""A file whose name holds ``:memory:`` makes Prefect 3.8 use one connection, which ends lock stalls
of two seconds."""


def kept_database() -> Path:
    """Where an empty database of this Prefect is kept, in the user's folder of caches."""
    return cache_folder() / f"prefect-{version('prefect')}.db"


def take_database(home: Path) -> bool:
    """Put a copy of the kept database into a server's home, before the server starts.

    Returns
    -------
    bool
        Whether the home has a database now; if not, the server makes its own.
    """
    if (home / DATABASE).exists():  # of a run that goes on
        return True
    try:
        kept = kept_database()
        with closing(sqlite3.connect(f"file:{kept}?immutable=1", uri=True)) as known:
            known.execute("SELECT version_num FROM alembic_version").fetchone()
            if known.execute("PRAGMA quick_check").fetchone() != ("ok",):
                return False
        shutil.copyfile(kept, home / DATABASE)
    except (OSError, RuntimeError, sqlite3.Error):
        return False
    return True


def keep_database(home: Path) -> None:
    """Keep a server's database for the next one, right after its start: it holds no run yet.

    Where there is no place for it, the next server makes its own.
    """
    with suppress(OSError, RuntimeError, sqlite3.Error):
        kept = kept_database()
        kept.parent.mkdir(parents=True, exist_ok=True)
        copy_database(home / DATABASE, kept)


def copy_database(source: Path, target: Path) -> Path:
    """Copy a database that may be in use, whole or not at all."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(part)) as other:
            one.backup(other)
            other.execute("PRAGMA journal_mode=DELETE")  # one file, that nobody need write beside
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target
