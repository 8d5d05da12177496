"""Folders and files of a data set, with its links between folders.

A linked folder is followed only where it leads to a folder of the same data set, and not into
another participant's folder. Every folder is listed once. A linked file is listed unless it leads
into another participant's folder, which includes git-annex and DataLad links.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from consortium.errors import DataError

_PERSON = "sub-"
_ANNEX = "/.git/annex/objects/"
_MOST_LINKS = 40  # one after the other, as Linux allows
_NEARLY = re.compile(r"(?i)\s*(sub|subject)([-_ ]?\d|-\w)")


class PassedOver(NamedTuple):
    """A folder or a linked file of a data set that is not read."""

    path: Path
    reason: str
    """Clause with the path's name as its subject, such as 'is a link to a missing folder'."""


@dataclass
class Tree:
    """Content of a data set's folder and of all folders below it."""

    files: list[Path] = field(default_factory=list)
    followed: list[Path] = field(default_factory=list)
    """Links to folders that are read."""
    passed_over: list[PassedOver] = field(default_factory=list)


def files_below(home: Path, root: Path) -> list[Path]:
    """List the files of a folder and of all folders below it.

    Linked folders are followed where they lead to a folder inside the data set.

    Parameters
    ----------
    home : Path
        A participant's folder.
    root : Path
        The data set.

    Returns
    -------
    list of Path
        Sorted, under the names of the links. Links to files are included, also broken ones, except
        those into another participant's folder.
    """
    return tree_of(home, root).files


def tree_of(home: Path, root: Path) -> Tree:
    """List a folder as `files_below`, with the followed links and the skipped folders.

    Parameters
    ----------
    home : Path
        A participant's folder.
    root : Path
        The data set.

    Returns
    -------
    Tree
    """
    tree = Tree()
    plain = [str(home)]
    links: list[str] = []
    names: list[str] = []
    linked: list[str] = []
    visited = {os.path.realpath(home)}
    while plain or links:
        if plain:
            here = plain.pop()
        else:
            here = links.pop()
            reason = _unfollowed(here, home, root, visited)
            if reason is not None:
                tree.passed_over += [PassedOver(Path(here), reason)] if reason else []
                continue
            tree.followed.append(Path(here))
            visited.add(os.path.realpath(here))
        try:
            _list(here, plain, links, names, linked)
        except OSError:
            tree.passed_over.append(PassedOver(Path(here), "can't be opened"))
        links.sort(reverse=True)
    foreign = dict(_foreign_files(linked, home, root))
    tree.passed_over += [PassedOver(Path(path), foreign[path]) for path in sorted(foreign)]
    own = (name for name in names if name not in foreign)
    tree.files = [Path(name) for name in sorted(own, key=_parts)]
    return tree


def _foreign_files(linked: Iterable[str], home: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield the linked files that lead into another participant's folder, with the reason.

    A link may also lead through one to a store, as a link to a DataLad link does.
    """
    known: dict[str, tuple[str, str | None]] = {}
    for path in linked:
        reason = _of_steps(path, home, root, known)
        if reason is not None:
            yield path, reason


def _of_steps(
    path: str, home: Path, root: Path, known: dict[str, tuple[str, str | None]]
) -> str | None:
    """Return why a link to a file leads into another participant's folder; None if it doesn't.

    Each folder is resolved once, so thousands of links cost few system calls each.
    """
    for _ in range(_MOST_LINKS):
        try:
            target = str(Path(path).readlink())
        except OSError:  # not a link, or the path is missing
            return None
        above = "" if target.startswith(os.sep) else path.rpartition(os.sep)[0]
        whole = f"{above}{os.sep}{target}"
        folder, annex, name = whole.partition(_ANNEX)  # below it git-annex has no links
        if not annex:
            folder, annex, name = whole.rpartition(os.sep)
        if folder not in known:
            reason = foreign_place(Path(folder or os.sep), home.name, root)
            known[folder] = os.path.realpath(folder or os.sep), reason
        real, reason = known[folder]
        if reason is not None:
            return reason
        path = f"{real}{annex}{name}"
    return None


def unread_in(home: Path, root: Path) -> str:
    """Return a sentence about the first folder or file that is skipped; empty if none is."""
    found = tree_of(home, root).passed_over[:1]
    return "".join(f" {path} {reason}." for path, reason in found)


def _parts(path: str) -> list[str]:
    """Return a path's parts, which sort like paths but faster."""
    return path.split("/")


def _list(
    folder: str, plain: list[str], links: list[str], names: list[str], linked: list[str]
) -> None:
    """Append a folder's entries to the lists of folders, links to folders, files, and linked files.

    Hidden entries are ignored, as in BIDS; macOS writes such files next to each image.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_symlink() and (_is_folder(entry) or _is_broken_folder(entry)):
                links.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                plain.append(entry.path)
            else:
                names.append(entry.path)
                if entry.is_symlink():
                    linked.append(entry.path)


def _is_broken_folder(entry: "os.DirEntry[str]") -> bool:
    """Return whether a link leads nowhere and has the name of a folder."""
    return "." not in entry.name and not exists(entry.path)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def exists(path: str | Path) -> bool:
    """Return whether a data set's file exists; False also in a folder that can't be opened."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def _unfollowed(link: str, home: Path, root: Path, visited: set[str]) -> str | None:
    """Return why a link is not followed, '' if its folder was read already; None if it is."""
    if not exists(link):
        return "is a link to a missing folder"
    target = os.path.realpath(link)
    if any(_is_inside(target, each) for each in visited):
        return ""
    return _outside(Path(target), root) or foreign_place(Path(link), home.name, root)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip(os.sep)}{os.sep}")


def _outside(target: Path, root: Path) -> str | None:
    """Return why a participant's folder may not be read at a place; None if it may."""
    whole = Path(os.path.realpath(root))
    if not target.is_relative_to(whole):
        return f"is a link to {target}, outside the data set"
    if target == whole:
        return "is a link to the data set itself"
    return None


def foreign_place(path: Path, name: str, root: Path) -> str | None:
    """Return why a path leads into another participant's folder, as a clause; None if it doesn't.

    Every link on the way counts, also where it leads on to a store of files.

    Parameters
    ----------
    path : Path
        A file or folder of a participant.
    name : str
        The participant's folder, as ``sub-01``. Folders of its sessions, as ``sub-01_ses-1``, are
        the same participant's.
    root : Path
        The data set.
    """
    whole = f"{os.path.realpath(root)}{os.sep}"
    for place in _places(str(path.absolute())):
        if place.startswith(whole):
            parts = _parts(place.removeprefix(whole))
            first = next((part for part in parts if part.startswith(_PERSON)), name)
            if re.split(r"[_.]", first)[0] != name:
                return f"is a link into the folder of {first}"
    return None


def _places(path: str) -> Iterator[str]:
    """Yield every place that is passed when the links of an absolute path are followed."""
    here = ""
    links = 0
    ahead = _parts(path)[::-1]
    while ahead and links <= _MOST_LINKS:
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here.rpartition(os.sep)[0]
            continue
        here = f"{here}{os.sep}{part}"
        yield here
        if Path(here).is_symlink():
            target = str(Path(here).readlink())
            links = links + 1
            ahead += _parts(target)[::-1]
            here = "" if target.startswith(os.sep) else here.rpartition(os.sep)[0]


def homes_in(folder: Path) -> list[Path]:
    """List the folders ``sub-*`` of a data set, also linked ones, in the order of their names.

    Raises DataError if the data set can't be listed.
    """
    return sorted(Path(each.path) for each in _top(folder) if _is_home(each))


def _is_home(entry: "os.DirEntry[str]") -> bool:
    if not entry.name.startswith(_PERSON):
        return False
    return _is_folder(entry) or (entry.is_symlink() and _is_broken_folder(entry))


def near_homes(folder: Path) -> list[Path]:
    """List the folders of a data set whose names are almost ``sub-*``, such as ``Sub-01``.

    Raises DataError if the data set can't be listed.
    """
    found = (each for each in _top(folder) if _NEARLY.match(each.name) and not _is_home(each))
    return sorted(Path(each.path) for each in found if _is_folder(each))


def _top(folder: Path) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        raise DataError(f"{folder} can't be listed. Give the folder of the data set.") from error


def metadata_at_top(folder: Path) -> list[Path]:
    """List the JSON files directly in a data set, which may describe all participants' images.

    Raises DataError if the data set can't be listed.
    """
    return sorted(Path(each.path) for each in _top(folder) if each.name.endswith(".json"))


def foreign_home(home: Path, root: Path) -> str | None:
    """Return why a participant's folder can't be read, in a sentence; None if it can.

    A linked folder is read if it leads to a folder inside the data set that is not another
    participant's.
    """
    if not home.is_symlink():
        return None
    reason = "is a link to a missing folder"
    if exists(str(home)):
        reason = _outside(Path(os.path.realpath(home)), root) or ""
        reason = reason or foreign_place(home, home.name, root) or ""
    if not reason:
        return None
    return f"{home} {reason}. Copy the participant's files into the data set."


def labels_in(folder: Path) -> tuple[str, ...]:
    """Return the labels of all participants with a folder in a data set, without ``sub-``."""
    homes = (path for path in folder.glob(f"{_PERSON}*") if path.is_dir())
    return tuple(sorted(path.name.removeprefix(_PERSON) for path in homes))
