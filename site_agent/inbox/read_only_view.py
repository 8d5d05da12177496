"""A view of a site's folder for readers: links to its files, and copies of its databases.

To read a database that another program may write, SQLite writes next to it. So an inbox that must
not change anything reads copies in a private temporary folder.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
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

_LINKED = (APPROVED, KEYS, "keys.old", NOTES, PINNED, POLICY, STUDIES, UNDERSTOOD, WORK)
_PREFIX = "inbox-"
_WAL = b"\x02\x02"
"""Bytes 18 and 19 of a database with a write-ahead log (SQLite's file format, section 1.3.3)."""


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
        for name in _LINKED:
            if (folder / name).exists():
                (view / name).symlink_to(folder / name)
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
    """Copy a database with the lines that are only in its log; nothing is written next to it."""
    if not path.exists():
        return
    with path.open("rb") as file:
        has_log = file.read(20)[18:20] == _WAL
    log = path.with_name(f"{path.name}-wal").exists()
    how = "immutable=1" if has_log and not log else "mode=ro"
    address = f"{path.resolve().as_uri()}?{how}"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=30.0)) as source,
        closing(sqlite3.connect(to)) as target,
    ):
        source.backup(target)
    to.chmod(0o600)
