"""One party's folder of the exchange: its configured place, and its messages.

Any user with write access there can plant links, so no link below the folder is followed. Hidden
files, drafts of messages, and a doctor's temporary probes are not carried.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

LARGEST = 512 << 20
"""Maximum bytes of one file; a larger one is not a message."""
MOST_NAMES = 1_000_000
"""Maximum number of names in a folder; more do not fit into one message."""
LIMIT = "CAPE_RELAY_MOST_GB"
"""Environment variable of a machine: GB of one run that it accepts (default: 64)."""
_ROOTS = ("runs/", "consent/", "ledgers/")
"""Beginnings of all names on an exchange. A party's secret ``keys`` have none of them."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*(/[a-z0-9][a-z0-9-]*){1,5}")
_PARTY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_LONGEST = 300
PLACES = ("CAPE_RELAY_FOLDER", "EXCHANGE_DATABASE_URI")
"""Environment variables of a machine that name its folder; the second is vantage6's own."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class RelayError(Exception):
    """Error that stops the relay: the fault, its place, and the remedy."""


class Folder:
    """A directory of messages, which are each written once and atomically.

    Parameters
    ----------
    root : Path
        The directory, which must exist. New files and folders get its mode and group.
    only : sequence of str
        Beginnings of the names that are carried, such as ``runs/rest-``, which does not match
        ``runs/rest-two-0001``. If empty, all names are carried.
    largest, most : int
        Maximum bytes of one file, and of all files of a run that are written here.

    Raises
    ------
    RelayError
        If the directory does not exist.

    Examples
    --------
    >>> import tempfile
    >>> folder = Folder(Path(tempfile.mkdtemp()))
    >>> folder.put("runs/rest-0001/study", b"bytes")
    True
    >>> folder.put("runs/rest-0001/study", b"bytes")
    False
    >>> list(folder.listing())
    ['runs/rest-0001/study']
    >>> folder.put("../escape", b"bytes")
    Traceback (most recent call last):
    ...
    cape_relay.folder.RelayError: '../escape' can't name a message and was not written.
    """

    def __init__(
        self,
        root: Path,
        only: Sequence[str] = (),
        largest: int = LARGEST,
        most: int = 64 * 10**9,
    ) -> None:
        if not root.is_dir():
            raise RelayError(
                "The relay's folder is missing. Make it or mount it, or correct CAPE_RELAY_FOLDER."
            )
        self.root = root.resolve()
        self._only = tuple(only)
        self._largest = largest
        self._most = most
        self._digests: dict[str, tuple[tuple[int, int, int], str]] = {}

    def carries(self, name: str) -> bool:
        """Return whether a name is a message's, and one of those that are carried."""
        fits = len(name) <= _LONGEST and _NAME.fullmatch(name) is not None
        among = any(_begins(name, start) for start in self._only or _ROOTS)
        return fits and name.startswith(_ROOTS) and among

    def listing(self) -> dict[str, str]:
        """Return SHA-256 of every message by its name, the oldest first.

        Raises
        ------
        RelayError
            If the folder can't be read, or a message is too large.
        """
        found = []
        with _trouble("The folder", "listed"):
            for name, place, handle in self._files():
                status = os.stat(place, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime_ns, name, self._digest(name, place, handle)))
        self._digests = {name: self._digests[name] for _, name, _ in found}
        return {name: digest for _, name, digest in sorted(found)}

    def read(self, name: str) -> bytes:
        """Return a message's bytes.

        Raises
        ------
        RelayError
            If it can't be read, is a link, or is too large.
        """
        *folders, target = self._checked(name).split("/")
        with _trouble(name, "read"), self._within(folders) as folder:
            return self._content(name, target, folder)

    def put(self, name: str, data: bytes) -> bool:
        """Write a message unless it exists, and return whether it was written now.

        Raises
        ------
        RelayError
            If the name is not one that is carried, already has other bytes, or can't be written.
        """
        *folders, target = self._checked(name).split("/")
        if len(data) > self._largest:
            raise RelayError(f"{name} has more than {self._largest} bytes and was not written.")
        with _trouble(name, "written"), self._within(folders, make=True) as folder:
            try:
                self._place(folder, target, data)
            except FileExistsError:
                if self._content(name, target, folder) != data:
                    raise conflict(name, "what arrived") from None
                return False
        return True

    def check_room(self, files: Mapping[str, bytes], sender: str) -> None:
        """Refuse files with which a run, or the folder, would be too large; after `listing`.

        Raises
        ------
        RelayError
            If it would; nothing is written then.
        """
        sizes = {name: mark[1] for name, (mark, _) in self._digests.items()}
        sizes = {name: len(data) for name, data in files.items()} | sizes
        held = Counter[str]()
        for name, size in sizes.items():
            held[_run(name)] += size
        for name in files:
            if held[_run(name)] > self._most or len(sizes) > MOST_NAMES:
                raise RelayError(
                    f"With {name[:80]!r} from {sender} the folder would have over "
                    f"{self._most / 1e9:g} GB of one run, or {MOST_NAMES:,} files; nothing of the "
                    f"message was written. If the study is so large, set {LIMIT} higher here."
                )

    def _checked(self, name: str) -> str:
        if not self.carries(name):
            raise RelayError(f"{name[:80]!r} can't name a message and was not written.")
        return name

    def _files(self) -> Iterator[tuple[str, str, int]]:
        """Yield name, last word and open directory of every possible message."""
        start = len(str(self.root)) + 1
        for home, folders, files, handle in os.fwalk(self.root):
            above = f"{home}/"[start:]
            folders[:] = [word for word in folders if self._leads(f"{above}{word}/")]
            for file in files:
                name = os.path.join(home, file)[start:]  # noqa: PTH118 - of many files
                if self.carries(name):
                    yield name, file, handle

    def _leads(self, place: str) -> bool:
        """Return whether a folder may contain carried names, which excludes those of other runs."""
        wanted = any(x.startswith(place) or _begins(place, x) for x in self._only or _ROOTS)
        return wanted and place.startswith(_ROOTS)

    def _digest(self, name: str, place: str, folder: int) -> str:
        status = os.stat(place, dir_fd=folder, follow_symlinks=False)
        mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._digests.get(name)
        if known is None or known[0] != mark:
            known = mark, hashlib.sha256(self._content(name, place, folder)).hexdigest()
            self._digests[name] = known
        return known[1]

    def _content(self, name: str, place: str, folder: int) -> bytes:
        with open(os.open(place, _FILE, dir_fd=folder), "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RelayError(f"{name} is not a file. Have the folder's owner remove it.")
            data = file.read(self._largest + 1)
        if len(data) > self._largest:
            raise RelayError(f"{name} has more than {self._largest} bytes and is not carried.")
        return data

    @contextmanager
    def _within(self, words: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open the directory with this path below the root, without following links."""
        folder = os.open(self.root, _FOLDER)
        try:
            for word in words:
                made = make and _made(word, folder)
                below = os.open(word, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = below
                if made:
                    self._like_root(folder)
            yield folder
        finally:
            os.close(folder)

    def _place(self, folder: int, target: str, data: bytes) -> None:
        draft = f".{uuid.uuid4().hex}"
        with open(os.open(draft, _DRAFT, 0o666, dir_fd=folder), "wb") as file:  # noqa: PTH123
            try:
                self._like_root(file.fileno())
                file.write(data)
                file.flush()
                os.link(  # fails if the name is taken, unlike a rename
                    draft, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False
                )
            finally:
                os.unlink(draft, dir_fd=folder)

    def _like_root(self, handle: int) -> None:
        """Give a new file or folder the root's mode and group, for other users of the folder."""
        root = self.root.stat()
        made = os.fstat(handle)
        mode = root.st_mode & (0o7777 if stat.S_ISDIR(made.st_mode) else 0o666)
        with suppress(OSError):  # not in that group, or a share without groups
            if made.st_gid != root.st_gid:
                os.fchown(handle, -1, root.st_gid)
        with suppress(PermissionError):
            os.fchmod(handle, mode)


def folder_of(party: str, only: Sequence[str]) -> Folder:
    """Open the folder that this machine's configuration names. A job never names it.

    Parameters
    ----------
    party : str
        The party's name on the platform, which replaces ``{site}`` in the machine's path.

    Raises
    ------
    RelayError
        If the machine names none, the folder does not exist, or the party's name is not a word.
    """
    place = next(filter(None, map(os.environ.get, PLACES)), None)
    if place is None:
        raise RelayError(
            f"{PLACES[0]} is not set here. Set it to the folder that the relay serves."
        )
    if "{site}" in place and not _PARTY.fullmatch(party):
        raise RelayError(
            f"The platform calls this party {party[:80]!r}, which can't be a folder's name. Give "
            f"the folder in {PLACES[0]} without {{site}}."
        )
    try:
        most = int(1e9 * float(os.environ.get(LIMIT) or 64))
    except (ValueError, OverflowError) as error:
        raise RelayError(
            f"{LIMIT} is not a number here. Give the GB that a run may have."
        ) from error
    return Folder(Path(place.replace("{site}", party)), only, most=most)


def conflict(name: str, where: str) -> RelayError:
    """Make the error of a name that has two contents."""
    return RelayError(
        f"{name} has other bytes here than in {where}, but a name is written only once. Find out "
        "who changed it before you restart the relay."
    )


@contextmanager
def _trouble(what: str, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RelayError(
            f"{what} can't be {done} ({error.strerror}). Check the folder's disk and rights, and "
            "that it contains no link."
        ) from error


def _run(name: str) -> str:
    """Return the group of a message: a run, a study's consents, a site's ledger."""
    return "/".join(name.split("/")[:2])


def _begins(name: str, start: str) -> bool:
    """Return whether a name has this beginning; only a run's number may follow a dash."""
    word = name.removeprefix(start).partition("/")[0]
    return name.startswith(start) and not (start.endswith("-") and "-" in word)


def _made(word: str, folder: int) -> bool:
    """Make a folder unless it exists, and return whether it was made now."""
    try:
        os.mkdir(word, dir_fd=folder)
    except FileExistsError:
        return False
    return True
