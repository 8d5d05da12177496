"""Modes and groups on a directory that several Unix users share as their exchange."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from consortium.base.checkup import Check
from consortium.base.formatting import count

MOST = 20_000
"""Folders and files that are looked at; a directory of many old runs has more."""


def shared_directory(root: Path) -> Check:
    """Find files that a user of a shared directory could not read or write.

    The directory's own mode defines its users. Everything in it must give them the same access and
    have its group.
    """
    here = root.stat()
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        message = (
            f"{root} has mode {_mode(here)} and group {_group(here)}, which shut this user out."
        )
        remedy = f"Let its owner type: chmod 2770 {_typed(root)}; and be in its group ('id' says)."
        return Check("modes", "fail", message, remedy)
    wrong = list(_wrong(root, here))
    if not wrong:
        return Check("modes", "ok", f"The contents of {root} are open to all its users.")
    first, seen = wrong[0]
    wanted = _wanted(here, seen)
    message = (
        f"{first} has mode {_mode(seen)} and group {_group(seen)} where its users need "
        f"{wanted:o} and {_group(here)}"
    )
    more = f" ({count(len(wrong) - 1, 'other')} like it)" if wrong[1:] else ""
    typed = [f"chmod {wanted:o} {_typed(first)}"]
    if seen.st_gid != here.st_gid:
        typed.insert(0, f"chgrp {_group(here)} {_typed(first)}")
    if wrong[1:]:
        letters = "g+rwX,o+rwX" if here.st_mode & stat.S_IWOTH else "g+rwX"
        typed = [f"chgrp -R {_group(here)} {_typed(root)}", f"chmod -R {letters} {_typed(root)}"]
    closed = any(not os.access(path, os.R_OK) for path, _ in wrong)
    remedy = f"Let its owner type: {' && '.join(typed)}"
    return Check("modes", "fail" if closed else "warn", f"{message}{more}.", f"{remedy}")


def _wrong(root: Path, here: os.stat_result) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield what lets fewer people in than the directory does, folders first."""
    if not here.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return  # of only one user
    for number, path in enumerate(_below(root)):
        if number >= MOST:
            return
        try:
            seen = path.lstat()
        except OSError:  # gone meanwhile
            continue
        lacking = _wanted(here, seen) & ~stat.S_IMODE(seen.st_mode) & 0o777
        other_group = seen.st_gid != here.st_gid and here.st_mode & stat.S_IRWXG
        open_to_all = here.st_mode & stat.S_IWOTH  # and so is this, if it lacks nothing
        if not stat.S_ISLNK(seen.st_mode) and (lacking or (other_group and not open_to_all)):
            yield path, seen


def _below(root: Path) -> Iterator[Path]:
    for home, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        drafts_apart = sorted(name for name in names if not name.startswith("."))
        yield from (Path(home, name) for name in (*folders, *drafts_apart))


def _wanted(here: os.stat_result, seen: os.stat_result) -> int:
    """Return the part of the directory's mode that an entry below it must have."""
    mode = stat.S_IMODE(here.st_mode)
    return mode if stat.S_ISDIR(seen.st_mode) else mode & 0o666


def _mode(seen: os.stat_result) -> str:
    return f"{stat.S_IMODE(seen.st_mode):o}"


def _group(seen: os.stat_result) -> str:
    import grp

    try:
        return grp.getgrgid(seen.st_gid).gr_name
    except KeyError:
        return str(seen.st_gid)


def _typed(path: Path) -> str:
    return shlex.quote(str(path))
