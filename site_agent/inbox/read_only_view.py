"""A view of a site's folder for readers: links to its files, and copies of its databases.

To read a database that another program may write, SQLite writes next to it. So an inbox that must
not change anything reads copies in a private temporary folder.
"""

import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from consortium.base.work import WORK
from consortium.errors import ConfigurationError
from consortium.membership.keys import KEYS
from site_agent.config import SiteConfig
from site_agent.layout import (
    APPROVED,
    CONFIG,
    LEDGER,
    NOTES,
    PINNED,
    POLICY,
    STORE,
    STUDIES,
    UNDERSTOOD,
)
from site_agent.ledger.persons import key_path

_LINKED = (APPROVED, KEYS, "keys.old", NOTES, PINNED, POLICY, STUDIES, UNDERSTOOD, WORK)
_PREFIX = "inbox-"
_ENDINGS = ("-wal", "-journal", "")
_TRIES = 40
_PAUSE = 0.05  # s between two copies


@contextmanager
def read_only_view(folder: Path) -> Iterator[Path]:
    """Provide a folder from which a site's pages can be made, for a short time.

    Raises ConfigurationError if the configuration or a database can't be read.

    Parameters
    ----------
    folder : Path
        The site's; nothing in it is changed.
    """
    folder = folder.resolve()
    config = SiteConfig.load(folder)
    with TemporaryDirectory(prefix=_PREFIX) as place:
        view = Path(place)
        links = {view / name: folder / name for name in _LINKED}
        links[key_path(view / LEDGER)] = key_path(config.ledger)
        for link, path in links.items():
            if path.exists():
                link.symlink_to(path.resolve())
        try:
            _copy(config.ledger, view / LEDGER)
            _copy(folder / STORE, view / STORE)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(
                f"{folder}: a database can't be read now ({error}). Reload the page."
            ) from error
        config.model_copy(update={"ledger": view / LEDGER}).save(view)
        (view / CONFIG).chmod(0o600)
        yield view


def with_real_paths(text: str, folder: Path) -> str:
    """Return a text with the paths of a site's folder instead of those of views."""
    views = rf"{re.escape(gettempdir())}/{_PREFIX}\w{{8}}\b"
    return re.sub(views, lambda _: str(folder.resolve()), text)


def _copy(path: Path, to: Path) -> None:
    """Copy a database with its log or journal, from which SQLite completes the copy.

    SQLite does not open the original: even a reader of it writes to the memory that its users
    share. A copy counts if none of the files changed meanwhile.
    """
    if not path.exists():
        return
    for _ in range(_TRIES):
        before = _stamps(path)
        for ending in _ENDINGS:
            source = path.with_name(path.name + ending)
            target = to.with_name(to.name + ending)
            target.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(source, target)
        if _stamps(path) == before:
            with closing(sqlite3.connect(to)) as copy:
                copy.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return
        time.sleep(_PAUSE)
    raise OSError("it is being changed all the time")


def _stamps(path: Path) -> list[tuple[int, int, int] | None]:
    """Return modification time, size and inode of each of a database's files."""
    found: list[tuple[int, int, int] | None] = []
    for ending in _ENDINGS:
        try:
            status = path.with_name(path.name + ending).stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return found
