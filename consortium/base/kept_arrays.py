"""Cache of public arrays that take long to compute, one for each user of a computer.

It is ``cape-consortium`` in the user's folder for caches (``XDG_CACHE_HOME``, or ``~/.cache``). A
file has a SHA-256 of its content, a header, and the arrays. A file that is damaged, incomplete,
another user's, or of another source is computed again. Without write access, every file is. BLAS
computes them on one thread, so they do not depend on the caller.
"""

import fcntl
import hashlib
import json
import math
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from consortium.base.atomic import DAMAGED

Arrays = Mapping[str, NDArray[Any]]

_DIGEST = 32
_ALIGNED = 64
_KINDS = "biuf"
_MOST_HEADER = 1 << 16
_MOST_KEPT = 4 << 30  # bytes of all files together; the ones not used for longest go
_PATIENCE = 600.0  # seconds that another process may take for arrays that this one could also make
_ABANDONED = 3600.0  # seconds after which a draft is abandoned


def cache_folder() -> Path:
    """Return the user's folder of arrays that every study can use again."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "cape-consortium"


def kept_arrays(kind: str, key: str, source: str, make: Callable[[], Arrays]) -> Arrays:
    """Return arrays from the user's folder for caches; missing ones are made and stored first.

    Parameters
    ----------
    kind : str
        Kind of the arrays, with which files' names begin.
    key : str
        Identifies the source of the arrays.
    source : str
        File of the code that makes them: another version of it makes them again.
    make : callable
        Makes arrays of plain numbers; its errors pass through.

    Returns
    -------
    mapping of str to array
        Mapped from the file and not to be written to, or just made.
    """
    code = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    identity = f"{kind} {key} {code} {np.__version__} {scipy.__version__}"
    name = hashlib.sha256(identity.encode()).hexdigest()
    path = cache_folder() / f"{kind}-{name}.arrays"
    with suppress(*DAMAGED):
        return _read(path, name)
    with _turn(path.with_suffix(".lock")):
        with suppress(*DAMAGED):
            return _read(path, name)
        with threadpool_limits(1, user_api="blas"):
            found = make()
        with suppress(OSError):
            _write(path, name, found)
    return found


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait while another process makes the same arrays, if locks are available."""
    lock = None
    patience = time.monotonic() + _PATIENCE
    try:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
            while not _taken(lock) and time.monotonic() < patience:
                time.sleep(0.1)
        yield
    finally:
        if lock is not None:
            os.close(lock)
            with suppress(OSError):
                path.unlink()


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: Path, name: str) -> Arrays:
    """Return the arrays of a complete file; raises one of `DAMAGED` for all others."""
    status = path.stat()
    if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):  # nor wait for a pipe
        raise ValueError(path)
    whole = np.memmap(path, np.uint8, "r")
    if hashlib.sha256(whole[_DIGEST:].data).digest() != whole[:_DIGEST].tobytes():
        raise ValueError(path)
    length = int.from_bytes(whole[_DIGEST:_ALIGNED].tobytes(), "little")
    if not length <= _MOST_HEADER:
        raise ValueError(path)
    header = json.loads(whole[_ALIGNED : _ALIGNED + length].tobytes())
    if header["name"] != name:
        raise ValueError(path)
    arrays = {}
    start = _after(_ALIGNED + length)
    for each, kind, shape in header["arrays"]:
        dtype = np.dtype(kind)
        if dtype.kind not in _KINDS:
            raise ValueError(path)
        end = start + dtype.itemsize * math.prod(shape)
        arrays[each] = whole[start:end].view(dtype).reshape(shape).view(np.ndarray)
        start = _after(end)
    with suppress(OSError):
        os.utime(path)
    return arrays


def _write(path: Path, name: str, arrays: Arrays) -> None:
    """Write under a name of its own, then rename: the file of every writer is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    needed = sum(each.nbytes for each in arrays.values())
    if 2 * needed > min(shutil.disk_usage(path.parent).free, 2 * _MOST_KEPT):
        return
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=".", suffix=".part", delete=False
    ) as file:
        try:
            _put(file, name, arrays)
            file.close()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    _make_room(path.parent)


def _put(file: IO[bytes], name: str, arrays: Arrays) -> None:
    layout = [[each, array.dtype.str, array.shape] for each, array in arrays.items()]
    header = json.dumps({"name": name, "arrays": layout}).encode()
    digest = hashlib.sha256()
    place = _DIGEST
    file.write(bytes(_DIGEST))
    length = len(header).to_bytes(_ALIGNED - _DIGEST, "little")
    flat = (np.ascontiguousarray(array).reshape(-1).data for array in arrays.values())
    for content in (memoryview(length + header), *(each.cast("B") for each in flat)):
        padding = bytes(_after(place + len(content)) - place - len(content))
        for piece in (content, padding):
            digest.update(piece)
            file.write(piece)
            place += len(piece)
    file.seek(0)
    file.write(digest.digest())


def _after(place: int) -> int:
    """Return the next place at which an array may begin."""
    return -(-place // _ALIGNED) * _ALIGNED


def _make_room(folder: Path) -> None:
    """Remove drafts of writers that died, and of files the ones not used for longest."""
    for draft in folder.glob(".*.part"):
        if time.time() - draft.stat().st_mtime > _ABANDONED:
            draft.unlink(missing_ok=True)
    newest = sorted(
        ((path.stat(), path) for path in folder.glob("*.arrays")),
        key=lambda each: -each[0].st_mtime_ns,
    )
    total = 0
    for status, path in newest:
        total += status.st_size
        if total > _MOST_KEPT:
            path.unlink(missing_ok=True)
