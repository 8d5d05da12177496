"""Writing EEG recordings with breaks, in every format that can state one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import mne
import numpy as np
from scipy.io import savemat

from tests.support.recordings import Tape
from tests.support.tiny_recordings import CHANNELS, RATE, record, table, tiny_tape

Note = tuple[float, float, str]
"""Onset and duration in s, and text."""
EVENTS = "onset\tduration\ttrial_type\n"


@dataclass(frozen=True, eq=False)
class Paused:
    """Continuous segments with pauses between them."""

    segments: tuple[Tape, ...]
    pause: int = 30
    """Seconds between two segments."""

    @property
    def joined(self) -> Tape:
        """All segments one after another, with onsets that count without the pauses."""
        signals = np.hstack([each.signals for each in self.segments])
        moved = zip(self.starts, self.segments, strict=True)
        events = tuple((start + t, name) for start, each in moved for t, name in each.events)
        return Tape(self.segments[0].channels, self.segments[0].rate, signals, events)

    @property
    def starts(self) -> list[float]:
        """Seconds before every segment, without the pauses."""
        return list(accumulate([0.0, *(length(each) for each in self.segments[:-1])]))

    @property
    def clock(self) -> list[float]:
        """Seconds before every segment, with the pauses."""
        return [start + n * self.pause for n, start in enumerate(self.starts)]

    @property
    def clock_events(self) -> list[Note]:
        """All events on the clock."""
        moved = zip(self.clock, self.segments, strict=True)
        return [(start + t, 0.0, name) for start, each in moved for t, name in each.events]


def length(tape: Tape) -> float:
    return tape.signals.shape[1] / tape.rate


def paused(seed: int = 0, trials: Sequence[int] = (8, 10), pause: int = 30) -> Paused:
    """Return segments with offsets of hundreds of µV, and events up to the last sample."""
    segments = []
    for n, many in enumerate(trials):
        tape = tiny_tape(seed + n, trials=many)
        offset = 300.0 * n * np.arange(1, len(CHANNELS) + 1)[:, None]
        last = (length(tape) - 0.1, "target")  # its epoch reaches into the next segment
        segments.append(replace(tape, signals=tape.signals + offset, events=(*tape.events, last)))
    return Paused(tuple(segments), pause)


def write_events(path: Path, notes: Sequence[Note]) -> None:
    lines = "".join(f"{onset:.6f}\t{duration:g}\t{name}\n" for onset, duration, name in notes)
    table(path, "events").write_text(EVENTS + lines)


def place(dataset: Path, label: str, tape: Tape, ending: str) -> Path:
    """Write the tables of a recording, and return the path of the recording, which is not there."""
    path = record(dataset, label, tape)
    for each in path.parent.glob("*_eeg.[!j]*"):
        each.unlink()
    return path.with_suffix(ending)


def write_edf_plus(
    path: Path, tape: Tape, starts: Sequence[float], notes: Sequence[Note], kind: str = "EDF+D"
) -> None:
    """Write EDF+ or BDF+ with records of one second that start at given times."""
    is_bdf = path.suffix.lower() == ".bdf"
    count, width = len(tape.channels), 3 if is_bdf else 2
    most, peak = (8388607 if is_bdf else 32767), f"{float(np.abs(tape.signals).max()) + 1:.6f}"[:7]
    room = 120  # samples of the annotation signal
    fixed = ["X X X X", "Startdate 01-JAN-2020 X X X", "01.01.20", "00.00.00"]
    fixed += [str(256 * (count + 2)), kind, str(len(starts)), "1", str(count + 1)]
    widths = (80, 80, 8, 8, 8, 44, 8, 8, 4)
    text = "".join(each.ljust(size) for each, size in zip(fixed, widths, strict=True))
    label = "BDF Annotations" if is_bdf else "EDF Annotations"
    text += "".join(name.ljust(16) for name in (*tape.channels, label))
    columns = [
        ("", "", 80), ("uV", "", 8), (f"-{peak}", "-1", 8), (peak, "1", 8),
        (str(-most), str(-most), 8), (str(most), str(most), 8), ("", "", 80),
        (str(tape.rate), str(room), 8), ("", "", 32),
    ]  # fmt: skip
    for own, other, size in columns:
        text += count * own.ljust(size) + other.ljust(size)
    stored = np.rint(tape.signals / float(peak) * most).astype("<i4")
    waiting, body = list(notes), b""
    for number, start in enumerate(starts):
        part = stored[:, number * tape.rate : (number + 1) * tape.rate]
        body += b"".join(
            row.tobytes() for row in part.view("u1").reshape(count, -1, 4)[..., :width]
        )
        lists = f"+{start:g}\x14\x14\0".encode()
        while waiting and len(lists) < width * room - 60:
            onset, duration, name = waiting.pop(0)
            lists += f"+{onset:.6f}\x15{duration:g}\x14{name}\x14\0".encode()
        body += lists.ljust(width * room, b"\0")
    assert not waiting
    start = b"\xffBIOSEMI" if is_bdf else b"0       "
    path.write_bytes(start + text.encode("ascii") + body)


def write_eeglab(path: Path, tape: Tape, notes: Sequence[Note]) -> None:
    """Write a .set file; onsets become latencies, where the first sample has 1."""
    places = np.array([(name, 0.0) for name in tape.channels], dtype=[("labels", "O"), ("X", "f8")])
    kinds = [("type", "O"), ("latency", "f8"), ("duration", "f8")]
    rows = [(name, onset * tape.rate + 1, length * tape.rate) for onset, length, name in notes]
    content = {
        "nbchan": len(tape.channels), "pnts": tape.signals.shape[1], "trials": 1,
        "srate": float(tape.rate), "xmin": 0.0, "xmax": length(tape),
        "data": tape.signals.astype(np.float32), "chanlocs": places,
        "event": np.array(rows, dtype=kinds), "epoch": [],
    }  # fmt: skip
    savemat(path, {"EEG": content}, appendmat=False)


def raw_of(tape: Tape, stim: Sequence[tuple[float, int]] = ()) -> mne.io.RawArray:
    """Return MNE's own object, with a trigger channel if there are triggers."""
    values, names = 1e-6 * tape.signals, list(tape.channels)
    if stim:
        values, names = np.vstack([values, np.zeros((1, values.shape[1]))]), [*names, "STI 014"]
        for onset, code in stim:
            values[-1, round(onset * tape.rate)] = code
    kinds = ["eeg"] * len(tape.channels) + ["stim"] * bool(stim)
    return mne.io.RawArray(values, mne.create_info(names, tape.rate, kinds, verbose=40), verbose=40)


def write_fif(
    path: Path, tape: Tape, notes: Sequence[Note], stim: Sequence[tuple[float, int]] = ()
) -> None:
    raw = raw_of(tape, stim)
    onsets, durations, names = zip(*notes, strict=True) if notes else ((), (), ())
    raw.set_annotations(mne.Annotations(list(onsets), list(durations), list(names)))
    raw.save(path, overwrite=True, verbose="ERROR")


def _named(tape: Tape) -> list[Note]:
    return [(onset, 0.0, name) for onset, name in tape.events]


def _clocked(ending: str, *, in_table: bool) -> Callable[[Path, Paused], None]:
    def write(dataset: Path, given: Paused) -> None:
        tape = given.joined
        path = place(dataset, "01", tape, ending)
        pairs = zip(given.clock, given.segments, strict=True)
        starts = [first + n for first, each in pairs for n in range(round(length(each)))]
        notes = [] if in_table else given.clock_events
        write_edf_plus(path, tape, starts, notes, f"{ending[1:].upper()}+D")
        if in_table:
            write_events(path, given.clock_events)
        else:
            table(path, "events").unlink()

    return write


def _eeglab(name: str, shift: float, *, in_table: bool) -> Callable[[Path, Paused], None]:
    """Write boundaries between samples or at one, with the duration of the removed data."""

    def write(dataset: Path, given: Paused) -> None:
        tape = given.joined
        path = place(dataset, "01", tape, ".set")
        cuts = [(start - shift / tape.rate, given.pause, name) for start in given.starts[1:]]
        write_eeglab(path, tape, [*cuts, *([] if in_table else _named(tape))])
        if not in_table:
            table(path, "events").unlink()

    return write


def _listed(ending: str, name: str, shift: float = 0.0) -> Callable[[Path, Paused], None]:
    """Write breaks only in the events table."""

    def write(dataset: Path, given: Paused) -> None:
        tape = given.joined
        path = record(dataset, "01", tape, ending)
        cuts = [(start - shift / RATE, given.pause, name) for start in given.starts[1:]]
        write_events(path, [*_named(tape), *cuts])

    return write


def _new_segments(dataset: Path, given: Paused) -> None:
    tape = given.joined
    path = record(dataset, "01", tape)
    marks = path.with_suffix(".vmrk")
    lines = marks.read_text().rstrip("\n").split("\n")
    number = len(tape.events)
    for n, start in enumerate(given.starts, start=1):
        date = "20200101120000000000" if n == 1 else ""
        lines.append(f"Mk{number + n}=New Segment,,{round(start * tape.rate) + 1},1,0,{date}")
    marks.write_text("\n".join(lines) + "\n")


def _concatenated(dataset: Path, given: Paused) -> None:
    path = place(dataset, "01", given.joined, ".fif")
    raw = mne.concatenate_raws([raw_of(each) for each in given.segments], verbose="ERROR")
    raw.save(path, overwrite=True, verbose="ERROR")


def _skipped(*, in_table: bool) -> Callable[[Path, Paused], None]:
    """Write zeros where nothing was acquired, which keeps onsets on the clock."""

    def write(dataset: Path, given: Paused) -> None:
        many = round(given.pause * RATE)
        gap = np.zeros((len(CHANNELS), many))
        parts = [part for each in given.segments for part in (each.signals, gap)][:-1]
        events = tuple((onset, name) for onset, _, name in given.clock_events)
        tape = replace(given.joined, signals=np.hstack(parts), events=events)
        path = place(dataset, "01", tape, ".fif")
        pairs = zip(given.clock, given.segments, strict=True)
        ends = [start + length(each) for start, each in pairs][:-1]
        spans = [(end, float(given.pause), "BAD_ACQ_SKIP") for end in ends]
        write_fif(path, tape, [] if in_table else spans)
        if in_table:
            write_events(path, [*given.clock_events, *spans])

    return write


BREAKS: Mapping[str, Callable[[Path, Paused], None]] = {
    "EDF+D, events in the table": _clocked(".edf", in_table=True),
    "EDF+D, events in the file": _clocked(".edf", in_table=False),
    "BDF+D, events in the file": _clocked(".bdf", in_table=False),
    "EEGLAB, boundary between two samples": _eeglab("boundary", 0.5, in_table=True),
    "EEGLAB, boundary at a sample": _eeglab("boundary", 0.0, in_table=False),
    "EEGLAB, numeric types": _eeglab("-99", 0.5, in_table=False),
    "BrainVision, New Segment": _new_segments,
    "FIF, joined by MNE": _concatenated,
    "FIF, BAD_ACQ_SKIP": _skipped(in_table=False),
    "FIF, BAD_ACQ_SKIP in the table": _skipped(in_table=True),
    "boundary in the table of a BrainVision file": _listed(".vhdr", "boundary", 0.5),
    "Boundary in the table of an EDF file": _listed(".edf", "Boundary"),
    "New Segment in the table of a NIfTI file": _listed(".nii.gz", "New Segment/"),
    "EDGE boundary in the table of a FIF file": _listed(".fif", "EDGE boundary"),
}
"""Writers of participant 01's recording by the way in which it states its breaks."""
