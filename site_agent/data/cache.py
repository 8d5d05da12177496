"""Preprocessed blocks on the site's own disk, for later rounds."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import ConfigurationError, DataError
from consortium.privacy.bounds import Unit
from consortium.space.atlas import Target
from consortium.study.data_section import CHOICE, DataSection
from consortium.views.eeg import EegView
from site_agent.data.survey import Subject

Block = NDArray[np.float32]
_Stamp = tuple[int, int, int]

VERSION = 3
"""Raise it when preprocessing changes, to invalidate older blocks."""
DIGEST_BYTES = 32


class BlockCache:
    """A folder of ``.npy`` files, each followed by the SHA-256 of its array.

    Names are hashes, so a listing shows no label. The folder and its files can be read by their
    owner only, because they contain subjects' data.

    Parameters
    ----------
    folder : Path
        Made when the first block is stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sound: dict[str, _Stamp] = {}  # blocks whose digest was compared already

    def __reduce__(self) -> tuple[Callable[[Path], BlockCache], tuple[Path]]:
        """Return a call that gives another process its one cache for the folder."""
        return _cache_of_process, (self.folder,)

    def get(self, key: str, shape: tuple[int, int], make: Callable[[], Block]) -> Block:
        """Return a block of a known shape, made and stored first if it is missing or damaged.

        Raises ConfigurationError if the folder can't be written. Raises DataError if the block has
        another shape: its files changed since they were counted.

        Parameters
        ----------
        key : str
            From `block_key` or `vector_key`.
        shape : (int, int)
            D, T.
        make : callable
            Returns the block; its own errors pass through.

        Returns
        -------
        array, shape (D, T), float32, in Fortran order
            Mapped from the file and not to be written to, unless it was made just now.
        """
        stored = self.find(key, shape)
        if stored is not None:
            return stored
        block = make()
        if block.shape != shape:
            msg = f"An image has {block.shape[1]} volumes, {shape[1]} when the data were counted. "
            raise DataError(msg + "Don't change the data set while a study runs, and start again.")
        self.store(key, block)
        return np.asfortranarray(block)

    def find(self, key: str, shape: tuple[int, int]) -> Block | None:
        """Return a stored block of a known shape, or None if it is missing or damaged."""
        return self._read(key, self.folder / f"{key}.npy", shape)

    def store(self, key: str, block: Block) -> None:
        """Store a block; raises ConfigurationError if the folder can't be written."""
        try:
            self._write(self.folder / f"{key}.npy", block)
        except OSError as error:
            msg = f"The cache folder {self.folder} can't be written. Free space, or name "
            msg += "another with 'cache' in site.yaml."
            raise ConfigurationError(msg) from error

    def _read(self, key: str, path: Path, shape: tuple[int, int]) -> Block | None:
        """Map a block, or return None if it is missing or was changed.

        Its digest is compared once, and again when the file was touched.
        """
        header = _header(shape)
        try:
            stamp = _stamp(path)
            if stamp[0] != len(header) + 4 * shape[0] * shape[1] + DIGEST_BYTES:
                return None
            if _stored_header(path, len(header)) != header:
                return None
            block = np.asarray(
                np.memmap(
                    path, dtype=np.float32, mode="r", offset=len(header), shape=shape, order="F"
                )
            )
            if self._sound.get(key) != stamp and _stored_digest(path) != _digest(block):
                return None
        except (OSError, ValueError, MemoryError):
            return None
        self._sound[key] = stamp
        return block

    def _write(self, path: Path, block: Block) -> None:
        """Write a temporary file, then rename it: a crash leaves no half block under its name."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Readable by the owner only, as tempfile makes files.
        with tempfile.NamedTemporaryFile(
            dir=self.folder, prefix=".", suffix=".part", delete=False
        ) as file:
            try:
                np.save(file, np.asfortranarray(block), allow_pickle=False)
                file.write(_digest(block))
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise


@cache
def _cache_of_process(folder: Path) -> BlockCache:
    return BlockCache(folder)


def block_key(subject: Subject, data: DataSection, target: Target, unit: Unit = "subject") -> str:
    """Return the cache's name of a block: recordings with their files, settings, space, unit.

    Raises DataError if a file is gone.

    Returns
    -------
    str
        SHA-256 in hexadecimal; a file that is touched gets a new one.
    """
    runs = [[_facts(path) for path in run.files] for run in subject.runs]
    apart = {"atlas", "maps_resolution", "maps_smoothing", "mesh", "surfaces", "cortex", *CHOICE}
    settings = data.model_dump(mode="json", exclude=apart)
    single = ["timepoint"] if unit == "timepoint" else []
    return _digest_of(runs, settings, target.digests, *single)


def vector_key(recordings: Sequence[Path], view: EegView) -> str:
    """Return the cache's name of a participant's vector: its recordings, and its view's fields.

    The files in a recording's folder, and in those above it up to the participant's own, are its
    parts and tables. Raises DataError if a file is gone.

    Returns
    -------
    str
        SHA-256 in hexadecimal.
    """
    homes = {folder for path in recordings for folder in own_folders(path)}
    files = sorted(path for home in homes for path in home.iterdir() if path.is_file())
    facts = [_facts(path) for path in files]
    settings = view.model_dump(mode="json")
    return _digest_of([str(path) for path in recordings], facts, settings, _mne_version())


def own_folders(path: Path) -> list[Path]:
    """Return the folder of a file and those above it, up to the participant's own."""
    above = list(path.parents)
    own = next((n for n, each in enumerate(above) if each.name.startswith("sub-")), 0)
    return above[: own + 1]


@cache
def _mne_version() -> str:
    """Return the version of MNE that filtered a vector; empty if MNE is not installed."""
    try:
        return version("mne")
    except PackageNotFoundError:
        return ""


def _digest_of(*parts: object) -> str:
    return hashlib.sha256(json.dumps([VERSION, *parts]).encode()).hexdigest()


def _facts(path: Path) -> tuple[str, str, int, int, int]:
    """Return values that change when a file is written, or its link leads to another file."""
    try:
        status = path.stat()
        target = os.path.realpath(path)
    except OSError as error:
        raise DataError(
            f"{path} is gone or can't be opened ({error.strerror}). Put it back, or correct its "
            "rights."
        ) from error
    return str(path), target, status.st_size, status.st_mtime_ns, status.st_ino


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _header(shape: tuple[int, int]) -> bytes:
    """Return the first bytes of a block's file.

    It is compared and never parsed: blocks are read in threads, and to parse a header NumPy has
    CPython build a syntax tree, which up to 3.11.7 may fail there (gh-106905).
    """
    buffer = io.BytesIO()
    kind = np.lib.format.dtype_to_descr(np.dtype(np.float32))
    plain = tuple(map(int, shape))
    header = {"descr": kind, "fortran_order": min(plain) > 1, "shape": plain}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def _stored_header(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        return file.read(length)


def _stored_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-DIGEST_BYTES, os.SEEK_END)
        return file.read()


def _digest(block: Block) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(block.T).data).digest()
