"""Clock and annotations of EDF+ and BDF+ files, whose data records may have pauses between them.

Every data record begins with the time at which it starts (B. Kemp and J. Olivan, Clin.
Neurophysiol. 114, 2003). MNE reads the records as if they followed each other.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from consortium.errors import DataError
from site_agent.eeg.breaks import Marker, Piece, RecordingClock

_WIDTHS = {".edf": 2, ".bdf": 3}
"""Bytes of a sample."""
_LABELS = ("EDF Annotations", "BDF Annotations")
_TAL = re.compile(rb"([+-]\d+(?:\.\d*)?)(?:\x15(\d+(?:\.\d*)?))?\x14(.*)", re.S)
_LEAST_PAUSE = 1.1e-3
"""Seconds; writers round the times of records to milliseconds."""
_LEAST_ERROR = 1e-2
"""Seconds by which the records of a nominally continuous file must differ from it."""


class Layout(NamedTuple):
    """Places of a file's data records and of their annotations."""

    kind: str
    """Reserved field of the header, such as 'EDF+D'."""
    header: int
    """Bytes before the first record."""
    records: int
    seconds: float
    """Length of a record."""
    bytes: int
    """Length of a record."""
    notes: tuple[tuple[int, int], ...]
    """First byte and length of every annotation signal in a record."""


def edf_layout(path: Path) -> Layout:
    """Return the layout that the header of an EDF or BDF file states.

    Raises
    ------
    ValueError
        If a field is not a number.
    """
    with path.open("rb") as file:
        fixed = file.read(256)
        many = int(fixed[252:256])
        labels = [file.read(16).decode("latin-1").strip() for _ in range(many)]
        file.seek(256 + 216 * many)
        width = _WIDTHS[path.suffix.lower()]
        sizes = [width * int(file.read(8)) for _ in range(many)]
    header = int(fixed[184:192])
    record = sum(sizes)
    starts = np.cumsum([0, *sizes]).tolist()
    return Layout(
        kind=fixed[192:197].decode("latin-1"),
        header=header,
        # -1 in a recording that was not closed.
        records=max(int(fixed[236:244]), 0),
        seconds=float(fixed[244:252]),
        bytes=record,
        notes=tuple(
            (start, size)
            for start, size, label in zip(starts, sizes, labels, strict=False)
            if label in _LABELS
        ),
    )


def read_edf_clock(path: Path, rate: float) -> tuple[RecordingClock, tuple[Marker, ...]]:
    """Return the clock of a file and, if it has pauses, its annotations on that clock.

    Parameters
    ----------
    path : Path
        An EDF or BDF file.
    rate : float
        Samples per second of its signals.

    Raises
    ------
    DataError
        If a record of a discontinuous file has no time, or the times go backwards.
    """
    layout = edf_layout(path)
    paused = layout.kind[3:5] == "+D"
    if not layout.notes or layout.kind[3:4] != "+":
        return RecordingClock(rate), ()
    texts = list(_texts(path, layout))
    times = [_time(parts[0]) for parts in texts]
    if None in times:
        if not paused:
            return RecordingClock(rate), ()
        raise DataError(
            f"{path}: every data record of a discontinuous recording must begin with its time, "
            f"and number {times.index(None) + 1} does not. Export the recording again."
        )
    starts = np.array(times, dtype=float) - float(times[0] or 0.0)
    pauses = np.diff(starts) - layout.seconds
    least = max(0.75 / rate, _LEAST_PAUSE if paused else _LEAST_ERROR)
    if (pauses < -least).any():
        raise DataError(
            f"{path}: the data records must be in the order of their times, and number "
            f"{int(np.argmin(pauses)) + 2} starts too early. Export the recording again."
        )
    cuts = [0, *(np.flatnonzero(pauses > least) + 1).tolist()]
    if len(cuts) == 1:
        return RecordingClock(rate), ()
    each = round(layout.seconds * rate)
    ends = [*cuts[1:], len(times)]
    pieces = (
        Piece(float(starts[k]), k * each, (end - k) * each)
        for k, end in zip(cuts, ends, strict=True)
    )
    return RecordingClock(rate, tuple(pieces)), tuple(_markers(texts, float(times[0] or 0.0)))


def _texts(path: Path, layout: Layout) -> Iterator[list[bytes]]:
    """Yield the annotation signals of every record. The first signal has the record's time."""
    size = path.stat().st_size - layout.header
    whole = np.memmap(path, np.uint8, "r", layout.header, size)
    for number in range(layout.records or size // layout.bytes):
        start = number * layout.bytes
        yield [bytes(whole[start + k : start + k + length]) for k, length in layout.notes]


def _time(text: bytes) -> float | None:
    """Return the time at which a record starts."""
    found = _TAL.match(text)
    return float(found[1]) if found else None


def _markers(texts: list[list[bytes]], zero: float) -> Iterator[Marker]:
    """Yield all annotations; those without a text give only a record's time."""
    for parts in texts:
        for part in b"\0".join(parts).split(b"\0"):
            found = _TAL.fullmatch(part)
            for name in found[3].split(b"\x14") if found else ():
                if found and name:
                    onset = float(found[1]) - zero
                    duration = float(found[2] or 0)
                    yield Marker(onset, duration, name.decode("utf-8", "replace").strip())
