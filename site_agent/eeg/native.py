"""Reader of EEG files. Native formats are read with MNE, and NIfTI with nibabel.

MNE is imported when the first file is opened.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from consortium.errors import ConfigurationError, DataError
from site_agent.eeg.breaks import Marker, RecordingClock
from site_agent.eeg.edf_clock import read_edf_clock
from site_agent.eeg.native_checks import (
    READERS,
    check_matlab,
    check_opened,
    check_parts,
    check_whole,
    ending_of,
)
from site_agent.eeg.recording import Signals, match_channels
from site_agent.eeg.sidecar import read_sidecar
from site_agent.images.nifti import open_nifti, read_whole

_VOLT = 107
"""FIFF's code of the unit."""
_BOUNDARY_CODES = ("-99", "-99.0")
"""Types of a boundary event in EEGLAB files with numeric event types."""


@dataclass(frozen=True, eq=False)
class OpenedRecording:
    """One recording with header and annotations, and signals that are not read yet."""

    path: Path
    names: tuple[str, ...]
    """Names of its channels."""
    rate: float
    """Samples per second."""
    samples: int
    signals: Callable[[Sequence[str]], Signals]
    """Returns the samples of some channels in µV, shape (C, N)."""
    clock: RecordingClock
    markers: tuple[Marker, ...] = ()
    """Annotations; onsets are times on the clock."""
    triggers: Callable[[], tuple[Marker, ...]] = tuple
    """Returns the steps of the trigger channels, if there are any."""
    bad: frozenset[str] = frozenset()
    """Channels that the file calls bad."""
    units: Mapping[str, str] | None = None
    """Unit of each channel as the file states it, such as 'µV'."""
    said: tuple[str, ...] = ()
    """MNE's warnings."""


def load_mne() -> Any:
    """Import MNE, which takes a second or two, only when EEG is read.

    Raises ConfigurationError if it is not installed.
    """
    try:
        import mne
        import mne.filter
    except ImportError as error:
        raise ConfigurationError(
            "EEG recordings require the package mne of the extra 'eeg', which requirements.txt of "
            "a release lacks. Install its requirements-all.txt, or run "
            "'pip install \"cape-consortium[eeg]\"'."
        ) from error
    return mne


def open_recording(path: Path, channels: Sequence[str], *, listen: bool = False) -> OpenedRecording:
    """Open a native EEG file and read its header and annotations.

    Parameters
    ----------
    path : Path
        BrainVision, EDF, BDF, EEGLAB or FIF file, or a NIfTI image of channels by time.
    channels : sequence of str
        The study's.
    listen : bool
        Collect MNE's warnings. They are collected for the whole process, so nothing else may be
        read meanwhile.

    Raises
    ------
    DataError
        If the file is damaged or cut short, not in volts, or larger than memory.
    ConfigurationError
        If MNE is needed and not installed.
    """
    if ending_of(path) is None:
        return _open_nifti(path)
    mne = load_mne()
    with _readable(path), warnings.catch_warnings(record=listen) as said:
        warnings.simplefilter("always" if listen else "ignore")
        opened = _open_native(mne, path, channels, "WARNING" if listen else "ERROR")
    return replace(opened, said=tuple(str(each.message) for each in said or ()))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise DataError instead of every error that MNE raises on a damaged file."""
    try:
        yield
    except (DataError, ConfigurationError):
        raise
    except Exception as error:
        raise DataError(
            f"{path} can't be read as a continuous EEG recording. Check that it and the files "
            "that belong to it exist and are complete."
        ) from error


def _open_native(mne: Any, path: Path, channels: Sequence[str], verbose: str) -> OpenedRecording:
    ending = ending_of(path)
    check_parts(path)
    check_whole(path)
    if ending == ".set":
        check_matlab(path)
    raw = getattr(mne.io, READERS[str(ending)])(path, preload=False, verbose=verbose)
    names = list(match_channels(channels, raw.ch_names, path).values())
    check_opened(path, raw, len(names))
    kinds = {each["ch_name"]: each["unit"] for each in raw.info["chs"]}
    if any(kinds[name] != _VOLT for name in names):
        raise DataError(f"{path} has channels that are not in volts. Correct their units.")
    rate = float(raw.info["sfreq"])
    clock = RecordingClock(rate)
    markers = tuple(_annotated(raw, boundary_codes=ending == ".set"))
    if ending in (".edf", ".bdf"):
        clock, own = read_edf_clock(path, rate)
        markers = own or markers
    return OpenedRecording(
        path=path,
        names=tuple(raw.ch_names),
        rate=rate,
        samples=int(raw.n_times),
        signals=lambda some: _signals(path, raw, some),
        clock=clock,
        markers=markers,
        triggers=lambda: _triggered(mne, path, raw),
        bad=frozenset(raw.info["bads"]),
        units=dict(raw._orig_units),
    )


def _signals(path: Path, raw: Any, names: Sequence[str]) -> Signals:
    if not names:
        return np.zeros((0, raw.n_times))
    with _readable(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values: Signals = raw.get_data(picks=list(names), verbose="ERROR")
    values *= 1e6
    return values


def _annotated(raw: Any, *, boundary_codes: bool) -> Iterator[Marker]:
    """Yield annotations; MNE counts them from the start of the amplifier's clock."""
    for each in raw.annotations:
        name = str(each["description"])
        duration = float(each["duration"])
        if boundary_codes and name in _BOUNDARY_CODES:
            name = "boundary"
        # EEGLAB's empty durations are NaN.
        length = duration if math.isfinite(duration) else 0.0
        yield Marker(float(each["onset"]) - raw.first_time, length, name)


def _triggered(mne: Any, path: Path, raw: Any) -> tuple[Marker, ...]:
    """Return the steps of the trigger channel; a marker's name is its number."""
    if "stim" not in raw.get_channel_types():
        return ()
    with _readable(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mne.find_events(raw, shortest_event=1, verbose="ERROR")
    first = raw.first_samp
    rate = raw.info["sfreq"]
    return tuple(Marker((sample - first) / rate, 0.0, str(code)) for sample, _, code in found)


def _open_nifti(path: Path) -> OpenedRecording:
    """Open an image of channels by time; its sidecar names the channels, the rate and the unit."""
    sidecar = read_sidecar(path, complete=True)
    shape = tuple(int(length) for length in open_nifti(path).shape)
    return OpenedRecording(
        path=path,
        names=sidecar.names,
        rate=sidecar.rate or 1.0,
        samples=math.prod(shape) // len(sidecar.names),
        signals=lambda some: _nifti_signals(path, sidecar.names, sidecar.factor, some),
        clock=RecordingClock(sidecar.rate or 1.0),
        units=dict.fromkeys(sidecar.names, sidecar.unit),
    )


def _nifti_signals(path: Path, names: Sequence[str], factor: float, some: Sequence[str]) -> Signals:
    values = read_whole(path, open_nifti(path))
    table = values.reshape([length for length in values.shape if length > 1] or [1])
    if table.ndim == 1:
        table = table.reshape(len(names), -1) if len(names) == 1 else table[None]
    if table.ndim == 2 and table.shape[0] != len(names) == table.shape[1]:
        table = table.T
    if table.ndim != 2 or table.shape[0] != len(names):
        raise DataError(
            f"{path} has shape {values.shape}, which is not its {len(names)} channels by time. "
            "Correct the sidecar's ChannelNames or the image."
        )
    return np.asarray(factor * table[[list(names).index(name) for name in some]], dtype=np.float64)
