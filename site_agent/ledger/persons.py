"""Persons in the ledger: by a keyed hash of their label, in groups that are charged together.

The key stays at the site, beside the ledger, so that a copy of the ledger names nobody.
"""

import hashlib
import os
import secrets
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import LedgerError

Ids = NDArray[np.uint32]
MARK = 16  # bytes


def read_key(ledger: Path) -> bytes | None:
    """Return the key beside a ledger, or None if there is none yet.

    Raises LedgerError if it can't be read or is none.
    """
    path = key_path(ledger)
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path} can't be read ({error.strerror}); check its rights.") from error
    if len(key) != 32:
        raise LedgerError(f"{path} is damaged; restore it from a backup.")
    return key


def make_key(ledger: Path) -> bytes:
    """Make the key beside a ledger, readable by its owner only; another process's is taken.

    Raises LedgerError if it can't be written.
    """
    path, draft = key_path(ledger), key_path(ledger).with_suffix(f".{secrets.token_hex(8)}")
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
        raise LedgerError(f"{path} can't be made ({error.strerror}); check its folder.") from error
    key = read_key(ledger)
    if key is None:
        raise LedgerError(f"{path} is gone; restore it from a backup.")
    return key


def key_path(ledger: Path) -> Path:
    """Where the key of a ledger lies."""
    return ledger.with_name(f"{ledger.name}.key")


def person_mark(key: bytes, label: str) -> bytes:
    """Keyed hash of a person's label without ``sub-`` (BLAKE2b, RFC 7693).

    A folder's name need not be UTF-8: its bytes are taken as they are.
    """
    name = label.encode(errors="surrogateescape")  # whatever the locale: one mark a person
    return hashlib.blake2b(name, digest_size=MARK, key=key, person=b"cape participant").digest()


def check_of(key: bytes) -> bytes:
    """What a ledger keeps of its key, to know it again."""
    return hashlib.blake2b(b"", digest_size=MARK, key=key, person=b"cape key").digest()


def group_digest(marks: Iterable[bytes]) -> str:
    """SHA-256 of a group's marks in their order, in hexadecimal."""
    return hashlib.sha256(b"".join(sorted(marks))).hexdigest()


def pack_ids(ids: Ids) -> bytes:
    """Rows of the ledger's table of persons, in order, as few bytes."""
    return zlib.compress(np.diff(np.sort(ids), prepend=np.uint32(0)).astype("<u4").tobytes(), 1)


def unpack_ids(data: bytes) -> Ids:
    """Undo `pack_ids`."""
    steps = np.frombuffer(zlib.decompress(data), dtype="<u4")
    return np.cumsum(steps, dtype=np.uint32)
