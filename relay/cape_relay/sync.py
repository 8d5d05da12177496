"""Messages between two parties' folders, over a platform that may drop, repeat or delay them.

Every message contains the sender's whole listing, so it does not depend on earlier messages. A lost
file is missing in the next listing and is sent again, a repeated file is ignored, and a party that
was killed continues from its folder.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypedDict

from cape_relay.folder import LARGEST, MOST_NAMES, Folder, RelayError, conflict

MOST = 64 << 20
"""Bytes of one message, except for a single larger file."""
GIVEN_UP = 10
"""Ticks without anything to move after which a silent site is waited for no longer."""
MOST_IN_ALL = MOST + LARGEST
"""Maximum bytes of a message from any sender."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST = 300  # letters of a name
_PACE = 0.05  # s
_SETTLE = 0.15  # s
_SHARE = 10  # times the duration of a look passes until the next
Wait = Callable[[float], object]


class Message(TypedDict):
    """A message from one party to another."""

    files: dict[str, bytes]
    """Files that the other party probably lacks."""
    listing: dict[str, str]
    """SHA-256 of all files of the sender, by name."""


def answer(
    folder: Folder,
    asked: object,
    seconds: float = 0.0,
    wait: Wait = time.sleep,
    most: int = MOST,
) -> Message:
    """Write the hub's files, and return the files that it lacks: a site's whole part of a tick.

    Parameters
    ----------
    asked : Message
        Message from the platform, which is checked here.
    seconds : float
        Time to wait for a file that the hub lacks.
    wait : callable
        Lets the given number of seconds pass; its errors end the waiting.
    most : int
        Bytes of files in the answer, except for a single larger file.

    Raises
    ------
    RelayError
        If the message is malformed, a name has two contents, or the folder can't be used.
    """
    taken = checked(asked, "the hub")
    _take(folder, taken, "the hub")
    listing = _awaited(folder, [taken["listing"]], seconds, wait)
    return _message(folder, listing, [taken["listing"]], most)


class Hub:
    """The coordinator's side, which receives from every site and sends all sites the same.

    Parameters
    ----------
    last : str
        Pattern of the name after which nothing is expected, such as ``runs/rest-*/end``.
    most : int
        Bytes of files in one message, except for a single larger file.
    centre : str
        The coordinator's site, if this folder is not a party's but empty at first.

    Attributes
    ----------
    ticks, idle : int
        Number of all requests, and of those since something was moved.
    names, bytes : int
        Names and bytes that were moved.
    """

    def __init__(self, folder: Folder, last: str = "", most: int = MOST, centre: str = "") -> None:
        self.ticks = self.idle = self.names = self.bytes = 0
        self._folder = folder
        self._last = last
        self._most = most
        self._centre = centre
        self._heard: dict[str, dict[str, str]] = {}
        self._ending = False
        self._of_sites = set[str]()

    def request(self, seconds: float = 0.0, wait: Wait = time.sleep) -> Message:
        """Return the next message to all sites, waiting a while for something that one lacks."""
        heard = list(self._heard.values())
        own = bool(heard) and not self._centre  # a hub without a party receives only from sites
        listing = _awaited(self._folder, heard, seconds if own else 0.0, wait)
        made = _message(self._folder, listing, heard, self._most)
        self._heard = {}  # a site that does not answer is asked for its listing again
        self.ticks += 1
        self.idle += 1
        self._note(made["files"])
        sent = made["files"].keys() - self._of_sites  # only the coordinator ends a run
        self._ending |= any(map(self._is_last, sent))
        return made

    def take(self, site: str, said: object) -> None:
        """Take a site's answer, also a late one.

        Raises
        ------
        RelayError
            As `answer`.
        """
        taken = checked(said, site)
        written = _take(self._folder, taken, site)
        if site == self._centre:
            self._of_sites -= taken["listing"].keys()
        else:
            self._of_sites |= {name for name in written if self._is_last(name)}
        self._note(written)
        self._heard[site] = taken["listing"]

    def over(self, sites: Iterable[str]) -> bool:
        """Return whether the last name came in this job, and all sites have all files of the hub.

        A silent site is waited for until `GIVEN_UP` ticks have moved nothing.
        """
        if not self._ending or not self._heard:
            return False
        own = self._folder.listing()
        everybody = set(sites) <= self._heard.keys() or self.idle >= GIVEN_UP
        return everybody and all(listing == own for listing in self._heard.values())

    def patience(self, wait: float, most: float) -> float:
        """Return the seconds that sites may wait for new files, doubled after an idle tick."""
        return min(wait * 2.0 ** min(self.idle, 30), most)

    def summary(self) -> str:
        """Return one line about the moved messages."""
        return f"relay: {self.ticks} ticks, {self.names} names, {self.bytes} bytes"

    def _note(self, files: Mapping[str, bytes]) -> None:
        self.idle = 0 if files else self.idle
        self.names += len(files)
        self.bytes += sum(map(len, files.values()))

    def _is_last(self, name: str) -> bool:
        """Return whether a name matches the pattern word by word: a site may be named ``end``."""
        words = name.split("/")
        wanted = self._last.split("/")
        return len(words) == len(wanted) and all(map(fnmatchcase, words, wanted))


def checked(said: object, sender: str) -> Message:
    """Return a message with a valid form; it comes from an untrusted platform.

    Raises
    ------
    RelayError
        If its form is invalid.
    """
    match said:
        case {"files": dict(files), "listing": dict(listing)}:
            if _texts_to(files, bytes) and _texts_to(listing, str) and _digests(listing):
                _check_size(files, sender)
                return {"files": files, "listing": listing}
    raise RelayError(
        f"The message from {sender} is not a message of the relay. Have all parties install the "
        "same version of cape-relay."
    )


def _texts_to(value: dict[object, object], kind: type) -> bool:
    few = len(value) <= MOST_NAMES
    return few and all(isinstance(k, str) and isinstance(v, kind) for k, v in value.items())


def _digests(listing: dict[str, str]) -> bool:
    return all(len(k) <= _LONGEST and _DIGEST.fullmatch(v) for k, v in listing.items())


def _check_size(files: Mapping[str, bytes], sender: str) -> None:
    size = sum(map(len, files.values()))
    if size > MOST_IN_ALL:
        raise RelayError(
            f"The message from {sender} has {size:,} bytes, more than {MOST_IN_ALL:,}; it was not "
            "written. Ask the platform's operator who sent it."
        )


def _take(folder: Folder, message: Message, sender: str) -> dict[str, bytes]:
    """Write the missing files, after a check that the two folders do not contradict each other."""
    own = folder.listing()
    for name in own.keys() & message["listing"].keys():
        if own[name] != message["listing"][name]:
            raise conflict(name, f"the folder of {sender}")
    for name, data in message["files"].items():
        if hashlib.sha256(data).hexdigest() != message["listing"].get(name):
            raise RelayError(
                f"{name[:80]!r} arrived with other bytes than {sender} lists, so it was changed "
                "on the way; it was not written. Ask the platform's operator."
            )
    _check_places(own, message["files"], sender)
    folder.check_room(message["files"], sender)
    return {name: data for name, data in message["files"].items() if folder.put(name, data)}


def _check_places(own: Iterable[str], files: Collection[str], sender: str) -> None:
    """Refuse a name that is the folder of others, because these could not be written."""
    names = {*own, *files} if files else set[str]()
    for name in names:
        words = name.split("/")
        above = ("/".join(words[:end]) for end in range(2, len(words)))
        for place in names.intersection(above):
            raise RelayError(
                f"{place[:80]!r} is a message and the folder of {name[:80]!r}, with the message "
                f"from {sender}; it was not written. Ask who sent the first."
            )


def _lacking(listing: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> list[str]:
    return [name for name in listing if any(name not in other for other in others)]


def _awaited(
    folder: Folder, others: Sequence[Mapping[str, str]], seconds: float, wait: Wait
) -> dict[str, str]:
    """Return a folder's listing once it has something that others lack, or time is up.

    A party writes several messages at once: after the first, it waits until no more come.
    """
    begun = time.monotonic()
    end = begun + seconds
    listing = folder.listing()
    pace = max(_PACE, _SHARE * (time.monotonic() - begun))
    while not _lacking(listing, others) and time.monotonic() < end:
        wait(pace)
        listing = folder.listing()
    while time.monotonic() < end:
        wait(_SETTLE)
        before = listing
        listing = folder.listing()
        if len(before) == len(listing):
            break
    return listing


def _message(
    folder: Folder,
    listing: dict[str, str],
    others: Sequence[Mapping[str, str]],
    most: int,
) -> Message:
    """Pack what others lack, the oldest first, until there is enough for one message."""
    files: dict[str, bytes] = {}
    size = 0
    for name in _lacking(listing, others):
        data = folder.read(name)
        if files and size + len(data) > most:
            break
        files[name] = data
        size += len(data)
    return {"files": files, "listing": listing}
