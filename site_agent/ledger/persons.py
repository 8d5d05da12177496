"""Participants in the ledger: by a keyed hash of their label, in groups charged together.

The key stays at the site, in a separate file. So a copy of the ledger names no participant. The
loss of every participant, and the largest in a group, are exact sums.
"""

import hashlib
import math
import os
import secrets
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import LedgerError
from site_agent.labels import former_spellings

Ids = NDArray[np.uint32]
MARK = 16  # bytes
_SCALE = 2 * 1074  # bits: the square of every double is a whole number of 2**-_SCALE
Totals = NDArray[np.float64]


def read_key(ledger: Path) -> bytes | None:
    """Return the key next to a ledger, or None if there is none yet.

    Raises LedgerError if it can't be read or is not a key.
    """
    path = key_path(ledger)
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path} can't be read ({error.strerror}). Check its rights.") from error
    if len(key) != 32:
        raise LedgerError(f"{path} is damaged. Restore it from a backup.")
    return key


def make_key(ledger: Path) -> bytes:
    """Make the key next to a ledger, readable by its owner only, or read another process's key.

    Raises LedgerError if it can't be written.
    """
    path = key_path(ledger)
    draft = key_path(ledger).with_suffix(f".{secrets.token_hex(8)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as file:  # noqa: PTH123 - with its mode from the start
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails if another process was first
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise LedgerError(f"{path} can't be made ({error.strerror}). Check its folder.") from error
    key = read_key(ledger)
    if key is None:
        raise LedgerError(f"{path} is gone. Restore it from a backup.")
    return key


def key_path(ledger: Path) -> Path:
    """Return the path of a ledger's key."""
    return ledger.with_name(f"{ledger.name}.key")


def former_marks(key: bytes, label: str) -> Iterator[bytes]:
    """Yield the marks of the spellings that earlier versions may have used."""
    return (person_mark(key, spelling) for spelling in former_spellings(label))


def person_mark(key: bytes, label: str) -> bytes:
    """Return the keyed hash of a participant's label (BLAKE2b, RFC 7693).

    A folder's name need not be UTF-8. Its bytes are used as they are.
    """
    name = label.encode(errors="surrogateescape")  # one mark per participant, whatever the locale
    return hashlib.blake2b(name, digest_size=MARK, key=key, person=b"cape participant").digest()


def check_of(key: bytes) -> bytes:
    """Return the digest by which a ledger recognizes its key."""
    return hashlib.blake2b(b"", digest_size=MARK, key=key, person=b"cape key").digest()


def group_digest(key: bytes, marks: Iterable[bytes]) -> str:
    """Return SHA-256 of the ledger's marks of a group in their order, in hexadecimal.

    A group without participants has a mark of its own. Otherwise its digest would be public, and
    with it the hash of a ledger's line that shows that no one took part.
    """
    nobody = hashlib.blake2b(b"", digest_size=MARK, key=key, person=b"cape nobody").digest()
    return hashlib.sha256(b"".join(sorted(marks) or [nobody])).hexdigest()


def pack_ids(ids: Ids) -> bytes:
    """Return the rows of the ledger's table of participants, in order, as few bytes."""
    return zlib.compress(np.diff(np.sort(ids), prepend=np.uint32(0)).astype("<u4").tobytes(), 1)


def unpack_ids(data: bytes) -> Ids:
    """Undo `pack_ids`."""
    steps = np.frombuffer(zlib.decompress(data), dtype="<u4")
    return np.cumsum(steps, dtype=np.uint32)


def exact_square(mu: float) -> int:
    """Return μ² as a whole number of 2^-2148; raises LedgerError if it is not a number."""
    if not math.isfinite(mu):
        raise LedgerError(
            f"The ledger has recorded μ = {mu}, which is not a privacy loss. Restore the ledger "
            "from a backup."
        )
    numerator, denominator = float(mu).as_integer_ratio()
    return (numerator * numerator) << (_SCALE - 2 * (denominator.bit_length() - 1))


def exact_root(total: int) -> float:
    """Return the root of a sum of `exact_square`, with the only two roundings."""
    return math.sqrt(exact_float(total))


def exact_float(total: int) -> float:
    """Return the ledger's sum of `exact_square` as the nearest double."""
    try:
        return total / (1 << _SCALE)
    except OverflowError:
        return math.inf


class PersonSums:
    """Sums of squares by participant, for any number of accounts.

    A charge is of a whole group, so sums are kept exactly by group. The most charged participant is
    found with an additional table of doubles. The reported sums are then computed exactly.

    Parameters
    ----------
    members : callable
        The participants of a group, by its digest, as sorted rows.
    """

    def __init__(self, members: Callable[[str], Ids]) -> None:
        self._members = members
        self._groups: dict[Hashable, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._tables: dict[Hashable, Totals] = {}

    def add(self, account: Hashable, group: str, square: int) -> None:
        """Charge a group; a negative square takes a charge back."""
        self._groups[account][group] += square
        table = self._tables.get(account)
        if table is None:
            return
        if square < 0:  # remaining rounding errors are removed
            del self._tables[account]
            return
        self._tables[account] = _plus(table, self._members(group), exact_float(square))

    def of(self, accounts: Iterable[Hashable], ids: Ids) -> Totals:
        """Return participants' sums of squares over several accounts, to about 1e-13 of each."""
        found = np.zeros(len(ids))
        for account in accounts:
            table = self._table(account)
            known = ids < len(table)
            found[known] += table[ids[known]]
        return found

    def most(self, accounts: Iterable[Hashable], ids: Ids) -> int:
        """Return the exact sum of squares of the most charged participant among these."""
        accounts = list(accounts)
        if not len(ids):
            return 0
        person = ids[int(np.argmax(self.of(accounts, ids)))]
        charged = [item for account in accounts for item in self._charged(account)]
        return sum(square for group, square in charged if _holds(self._members(group), person))

    @property
    def everybody(self) -> Ids:
        """All participants who were charged anything."""
        charged = (item for groups in self._groups.values() for item in groups.items())
        groups = {group for group, square in charged if square}
        ids = [self._members(group) for group in sorted(groups)]
        return np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.uint32)

    def _charged(self, account: Hashable) -> list[tuple[str, int]]:
        return list(self._groups[account].items()) if account in self._groups else []

    def _table(self, account: Hashable) -> Totals:
        if account not in self._tables:
            table = np.zeros(0)
            for group, square in self._charged(account):
                table = _plus(table, self._members(group), exact_float(square))
            self._tables[account] = table
        return self._tables[account]


def _plus(table: Totals, ids: Ids, square: float) -> Totals:
    if len(ids) and ids[-1] >= len(table):
        grown = np.zeros(int(ids[-1]) + 1)
        grown[: len(table)] = table
        table = grown
    table[ids] += square
    return table


def _holds(ids: Ids, person: np.uint32) -> bool:
    place = int(np.searchsorted(ids, person))
    return place < len(ids) and bool(ids[place] == person)
