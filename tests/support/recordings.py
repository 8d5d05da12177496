"""Writing EEG recordings in the formats that sites hold, with their BIDS tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.simulation.dataset import write_indented

DIGITAL = 32767
"""Largest number of an EDF sample."""
_EDF_WIDTHS = (80, 8, 8, 8, 8, 8, 80, 8, 32)
"""Characters of the columns that follow the channels' names."""


@dataclass(frozen=True, eq=False)
class Tape:
    """One continuous recording.

    Parameters
    ----------
    channels : tuple of str
        Of at most 16 characters each, which is what EDF has room for.
    rate : int
        Samples per second.
    signals : array, shape (C, N)
        In µV; N is a whole number of seconds, which is what EDF counts in.
    events : tuple of (float, str)
        Onset in s, and trial type.
    """

    channels: tuple[str, ...]
    rate: int
    signals: NDArray[Any]
    events: tuple[tuple[float, str], ...] = ()


def write_tape(folder: Path, stem: str, tape: Tape, ending: str) -> Path:
    """Write a recording and the tables next to it.

    Parameters
    ----------
    folder : Path
        The participant's ``eeg`` folder; made if it is missing.
    stem : str
        Name up to ``_eeg``, as ``sub-01_task-oddball``.
    tape : Tape
    ending : str
        A key of `WRITERS`.

    Returns
    -------
    Path
        The recording.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}_eeg{ending}"
    WRITERS[ending](path, tape)
    sidecar: dict[str, Any] = {"SamplingFrequency": tape.rate, "EEGReference": "average"}
    if ending.startswith(".nii"):
        sidecar |= {"ChannelNames": list(tape.channels), "Units": "µV"}
    write_indented(folder / f"{stem}_eeg.json", sidecar)
    lines = [f"{name}\tEEG\tuV\tgood" for name in tape.channels]
    _write_lines(folder / f"{stem}_channels.tsv", ["name\ttype\tunits\tstatus", *lines])
    lines = [f"{onset:.6f}\t0\t{name}" for onset, name in tape.events]
    _write_lines(folder / f"{stem}_events.tsv", ["onset\tduration\ttrial_type", *lines])
    return path


def write_brainvision(path: Path, tape: Tape) -> None:
    """Write the three files of Brain Vision's exchange format 1.0, as float32."""
    data, marks = path.with_suffix(".eeg"), path.with_suffix(".vmrk")
    data.write_bytes(np.asarray(tape.signals.T, dtype="<f4").tobytes())
    common = {"Codepage": "UTF-8", "DataFile": data.name}
    channels = {f"Ch{n}": f"{name},,1,µV" for n, name in enumerate(tape.channels, start=1)}
    header = {
        "Common Infos": {
            **common,
            "MarkerFile": marks.name,
            "DataFormat": "BINARY",
            "DataOrientation": "MULTIPLEXED",
            "NumberOfChannels": len(tape.channels),
            "SamplingInterval": 1e6 / tape.rate,
            "DataPoints": tape.signals.shape[1],
        },
        "Binary Infos": {"BinaryFormat": "IEEE_FLOAT_32"},
        "Channel Infos": channels,
    }
    markers = {
        f"Mk{n}": f"Stimulus,{name},{round(onset * tape.rate) + 1},1,0"
        for n, (onset, name) in enumerate(tape.events, start=1)
    }
    _write_sections(path, "Brain Vision Data Exchange Header File Version 1.0", header)
    parts = {"Common Infos": common, "Marker Infos": markers}
    _write_sections(marks, "Brain Vision Data Exchange Marker File, Version 1.0", parts)


def write_edf(path: Path, tape: Tape) -> None:
    """Write European Data Format (B. Kemp et al., Electroenc. Clin. Neurophysiol. 82, 1992).

    Records of one second, 16-bit integers over the recording's own range; no annotations.
    """
    count, records = len(tape.channels), tape.signals.shape[1] // tape.rate
    peak = max(float(np.abs(tape.signals).max()), 1.0) * 1.001
    fixed = ["0", "X X X X", "Startdate 01-JAN-2020 X X X", "01.01.20", "00.00.00"]
    fixed += [str(256 * (count + 1)), "", str(records), "1", str(count)]
    widths = (8, 80, 80, 8, 8, 8, 44, 8, 8, 4)
    text = "".join(each.ljust(width) for each, width in zip(fixed, widths, strict=True))
    limit = f"{peak:.6f}"[:7]  # the number that eight characters can hold, with its sign
    columns = ["", "uV", f"-{limit}", limit, str(-DIGITAL), str(DIGITAL), "", str(tape.rate), ""]
    text += "".join(name.ljust(16) for name in tape.channels)
    cells = zip(columns, _EDF_WIDTHS, strict=True)
    text += "".join(count * column.ljust(width) for column, width in cells)
    stored = np.rint(tape.signals / float(limit) * DIGITAL).astype("<i2")
    body = stored[:, : records * tape.rate].reshape(count, records, tape.rate).transpose(1, 0, 2)
    path.write_bytes(text.encode("ascii") + body.tobytes())


def write_nifti_tape(path: Path, tape: Tape) -> None:
    """Write channels x time x 1 x 1, float32."""
    values = np.asarray(tape.signals, dtype=np.float32)[:, :, None, None]
    image = nib.Nifti2Image(values, np.eye(4))  # NIfTI-1 can't count beyond 32767 samples
    nib.save(image, path)


def write_fif(path: Path, tape: Tape) -> None:
    """Write FIF through MNE, with the events as annotations."""
    import mne

    info = mne.create_info(list(tape.channels), tape.rate, "eeg", verbose="ERROR")
    raw = mne.io.RawArray(1e-6 * np.asarray(tape.signals), info, verbose="ERROR")
    onsets, names = zip(*tape.events, strict=True) if tape.events else ((), ())
    raw.set_annotations(mne.Annotations(onsets, [0.0] * len(onsets), list(names)))
    raw.save(path, overwrite=True, verbose="ERROR")


WRITERS: Mapping[str, Callable[[Path, Tape], None]] = {
    ".vhdr": write_brainvision,
    ".edf": write_edf,
    ".fif": write_fif,
    ".nii.gz": write_nifti_tape,
}
"""By the recording's ending."""


def _write_sections(path: Path, title: str, parts: Mapping[str, Mapping[str, Any]]) -> None:
    lines = [title]
    for name, fields in parts.items():
        lines += ["", f"[{name}]", *(f"{key}={value}" for key, value in fields.items())]
    _write_lines(path, lines)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
