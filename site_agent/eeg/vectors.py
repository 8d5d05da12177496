"""A person's EEG as one vector: the mean of epochs, or band power, per channel.

Nothing goes into a person's vector but that person's recordings and the study file.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from consortium.views.eeg import EegView
from site_agent.data.cache import BlockCache, vector_key
from site_agent.data.scaling import Vector, scale_vector
from site_agent.data.survey import Reason, SkippedPerson
from site_agent.eeg.breaks import events_within
from site_agent.eeg.files import find_recordings
from site_agent.eeg.native import load_mne
from site_agent.eeg.reading import read_recording
from site_agent.eeg.recording import Recording, Signals, onsets_of
from site_agent.engines.base import Engine

WINDOW = 2.0
"""Seconds of the windows that band power is estimated from, unless there are events; they overlap
by half."""
FINE = 500.0
"""Least samples per second that events are placed among, so that none moves by more than 1 ms."""
LEAST_RATE = 2.2
"""Samples per period of the pass band's upper edge; closer to two, no filter of sensible length
keeps what lies above from folding back."""
ROLL_OFF = 3.3
"""Length of MNE's filter in periods of its transition band (a Hamming window's)."""
FAINTEST = 1e-6
"""µV²/Hz that power is raised to before its logarithm; no amplifier is as quiet."""
QUIETEST, LOUDEST = 0.1, 1000.0
"""Limits in µV of the median standard deviation within an epoch. Scalp EEG has 1 to 100 µV. Volts,
millivolts or nanovolts that are labelled as µV are beyond the limits."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """What is left of a run."""

    values: Signals
    """Shape (E, C, T). In µV."""
    tried: int
    """Epochs before the unsound ones were left out."""
    complaint: str
    """What to say if they are too few, without a full stop."""


def cut_epochs(recording: Recording, view: EegView) -> Epochs:
    """Reference, filter, resample, cut, take the baseline away, and leave unsound epochs out.

    Every continuous segment is filtered, resampled and cut separately. Segments that are too short
    for the filter are not used. An epoch is unsound if it reaches over an end or a break of the
    recording, touches a span that is marked as bad, goes beyond the view's peak to peak on a
    channel, or has a constant channel.

    Raises
    ------
    DataError
        If the recording's rate is too low for the pass band, or its amplitude is not that of EEG.
    """
    nothing = np.zeros((0, len(view.channels), 0))
    lacking = _lacking(recording, view)
    if lacking:
        return Epochs(nothing, 0, lacking)
    onsets = recording.onsets(view.events)
    sound, amplitudes, tried = list[Signals](), list[float](), len(onsets)
    for segment, inside in events_within(onsets, recording.segments, recording.rate):
        if segment not in _long_enough(recording, view):
            continue
        signals, step = _prepared(recording, view, segment)
        found = list(_places(inside, view, step, signals.shape[1]))
        tried += 0 if view.events else len(found)
        for epoch in _usable(recording, view, _Prepared(segment[0], signals, step, found)):
            amplitudes.append(float(np.median(epoch.std(axis=1))))
            if np.ptp(epoch, axis=1).max() <= view.reject:
                sound.append(epoch)
    _check_amplitude(recording, amplitudes)
    values = np.array(sound) if sound else nothing
    return Epochs(values, tried, _complaint(recording, view, len(sound), tried))


@dataclass(frozen=True, eq=False)
class _Prepared:
    """One continuous segment on the fine grid of times."""

    first: int
    """Its first sample in the recording."""
    signals: Signals
    step: int
    found: list[NDArray[np.intp]]
    """Samples of every epoch."""


def _usable(recording: Recording, view: EegView, prepared: _Prepared) -> Iterator[Signals]:
    """Cut a segment's epochs that have all samples, no bad span and no constant channel."""
    fine, offset = view.rate * prepared.step, prepared.first / recording.rate
    before = -round(view.start * view.rate) if view.baseline and view.events else 0
    for places in prepared.found:
        first, last = int(places[0]), int(places[-1])
        inside = first >= 0 and last < prepared.signals.shape[1]
        start, stop = offset + first / fine, offset + (last + 1) / fine
        if inside and not recording.spoilt(start, stop):
            epoch = prepared.signals[:, places]
            if before > 0:
                epoch = epoch - epoch[:, :before].mean(axis=1, keepdims=True)
            yield epoch


def _check_amplitude(recording: Recording, amplitudes: Sequence[float]) -> None:
    """Raise DataError if the median over epochs is not an amplitude of EEG."""
    amplitude = float(np.median(amplitudes)) if amplitudes else 1.0
    if not QUIETEST <= amplitude <= LOUDEST:
        raise DataError(
            f"{recording.path}: the standard deviation of EEG within an epoch must be "
            f"{QUIETEST:g} to {LOUDEST:g} µV, got {amplitude:.3g} µV. The unit is probably wrong. "
            "Correct it in the header, or in the JSON file of a NIfTI recording."
        )


def _lacking(recording: Recording, view: EegView) -> str:
    """Why a recording can't be used, if it is for something that it does not have."""
    missing = [name for name in view.channels if name not in recording.channels]
    if missing:
        return f"{recording.path} has no good channel {', '.join(missing[:5])}"
    flat = np.ptp(recording.signals, axis=1) == 0
    if flat.any():
        return f"{recording.path} is constant on channel {view.channels[int(np.argmax(flat))]}"
    if view.events and not recording.onsets(view.events):
        unlisted = len(onsets_of(recording.unlisted, view.events))
        more = f" in its events table, and {unlisted} in the recording" if unlisted else ""
        return f"{recording.path} has no event {', '.join(view.events[:5])}{more}"
    if not _long_enough(recording, view):
        what = "has no segment of" if recording.breaks else "is shorter than"
        return f"{recording.path} {what} {_least(view):.1f} s, too short for the filter"
    return ""


def _least(view: EegView) -> float:
    """Return the seconds that a segment needs."""
    return max(_filter_seconds(view), WINDOW)


def _long_enough(recording: Recording, view: EegView) -> list[tuple[int, int]]:
    """List the continuous segments that are long enough for the filter."""
    least = _least(view) * recording.rate
    return [(first, stop) for first, stop in recording.segments if stop - first >= least]


def _complaint(recording: Recording, view: EegView, sound: int, tried: int) -> str:
    if sound == tried:
        return f"{recording.path} has {sound} epochs"
    return (
        f"{recording.path} has {sound} sound epochs of {tried}, others being at its ends or "
        f"breaks, marked as bad, constant or beyond {view.reject:g} µV"
    )


def _prepared(recording: Recording, view: EegView, segment: tuple[int, int]) -> tuple[Signals, int]:
    """Bring a segment to the study's channels, reference, pass band, and a multiple of its rate.

    Epochs are cut from a fine grid of times, since a coarse one would move their events about.

    Returns
    -------
    signals : array, shape (C, N')
    step : int
        Fine samples for each of the study's.
    """
    low, high = view.filter
    step = _step(recording.rate, view.rate)
    if recording.rate < LEAST_RATE * high:
        raise DataError(
            f"{recording.path} has {recording.rate:g} samples per second, too few for the study's "
            f"pass band up to {high:g} Hz; leave the participant out or ask for a narrower one."
        )
    places = [recording.channels.index(name) for name in view.channels]
    signals = recording.signals[places, slice(*segment)]
    if view.reference == "average":
        signals = signals - signals.mean(axis=0)
    # An amplifier's offset is not signal, and would ring at both ends.
    signals = signals - signals.mean(axis=1, keepdims=True) if low else signals
    tools = load_mne().filter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signals = tools.filter_data(signals, recording.rate, low or None, high, verbose="ERROR")
        if recording.rate != view.rate * step:
            signals = tools.resample(
                signals, view.rate * step, recording.rate, axis=1, verbose="ERROR"
            )
    return np.asarray(signals, dtype=np.float64), step


def _step(recorded: float, rate: float) -> int:
    """Fine samples for each of the study's: the recording's own, if they fit and are fine."""
    own = recorded / rate
    fits = recorded >= FINE and abs(own - round(own)) < 1e-9
    return round(own) if fits else int(np.ceil(FINE / rate))


def _filter_seconds(view: EegView) -> float:
    """Length of MNE's filter: its transitions are a quarter of the edge, or 2 Hz if that is more.

    The lower one is no wider than the edge itself.
    """
    edges = [edge for edge in view.filter if edge]
    return max(ROLL_OFF / min(max(edge / 4, 2.0), edge) for edge in edges)


def _places(
    onsets: Sequence[float], view: EegView, step: int, samples: int
) -> Iterator[NDArray[np.intp]]:
    """Samples of every epoch, or of every window without events, among the prepared ones."""
    if view.events:
        epoch = step * np.arange(round(view.start * view.rate), round(view.stop * view.rate) + 1)
        for onset in onsets:
            yield round(onset * view.rate * step) + epoch
        return
    window = step * np.arange(round(WINDOW * view.rate))
    hop = max(len(window) // 2, 1) * step
    for start in range(0, samples - int(window[-1]), hop):
        yield start + window


def read_recordings(
    folder: Path, view: EegView, data: DataSection, cache: Path, engine: Engine
) -> tuple[dict[str, Vector], list[SkippedPerson]]:
    """Read a view's vectors from a data set's EEG recordings.

    Epochs of all of a person's runs are pooled. A person without recording, without the study's
    channels or events, or with too few sound epochs is left out; a damaged recording must be mended
    first. Raises DataError if nobody has a recording of the task. Raises ConfigurationError if MNE
    is not installed, or the cache can't be written.

    Parameters
    ----------
    folder : Path
        The site's data set.
    data : DataSection
        The study's; it chooses among a person's recordings.
    cache : Path
        The site's folder for what was worked out; a file that is touched is read again.
    engine : Engine
        What recordings are read on.

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By person's label, without ``sub-``; channel by channel.
    skipped : list of Skipped
        Everybody else: ``no-view``, ``unusable``, ``not-chosen`` by their recordings' names, or
        ``does-not-fit`` for want of sound epochs.
    """
    reader = _Reader(folder, view, BlockCache(cache))
    vectors: dict[str, Vector] = {}
    skipped: list[SkippedPerson] = []
    everybody = find_recordings(folder, view.task, data)
    outcomes = engine.map(reader.person, everybody.items())
    for label, outcome in zip(everybody, outcomes, strict=True):
        if isinstance(outcome, SkippedPerson):
            skipped.append(outcome)
        else:
            vectors[label] = outcome
    return vectors, skipped


def erp(epochs: Signals) -> Vector:
    """Mean over epochs (E, C, T), channel by channel, shape (C * T,)."""
    return np.asarray(epochs.mean(axis=0).ravel())


def band_power(epochs: Signals, view: EegView) -> Vector:
    """Mean power density of every band and channel, in dB of µV²/Hz, shape (C * bands,).

    Parameters
    ----------
    epochs : array, shape (E, C, T)
        In µV, at the view's rate.

    Notes
    -----
    Welch's estimate: epochs are freed of their mean, tapered by a Hann window, and their
    periodograms averaged (P. D. Welch, IEEE Trans. Audio Electroacoust. 15, 1967). Epochs shorter
    than `WINDOW` are padded to it.
    """
    from scipy.signal import periodogram

    points = max(epochs.shape[2], int(np.ceil(WINDOW * view.rate)))
    frequencies, density = periodogram(epochs, view.rate, window="hann", nfft=points, axis=2)
    mean: NDArray[np.float64] = density.mean(axis=0)
    powers = []
    for low, high in view.bands.values():
        inside = (frequencies >= low - 1e-9) & (frequencies <= high + 1e-9)
        powers.append(mean[:, inside].mean(axis=1))
    return np.asarray(10.0 * np.log10(np.maximum(np.stack(powers, axis=1), FAINTEST)).ravel())


class _Reader:
    """Reads persons, and keeps their values so that later runs need not."""

    def __init__(self, folder: Path, view: EegView, cache: BlockCache) -> None:
        self.folder = folder
        self.view = view
        self.cache = cache

    def person(self, found: tuple[str, tuple[Path, ...] | SkippedPerson]) -> Vector | SkippedPerson:
        """One person's vector, or why there is none, given label and recordings."""
        (label, paths), view = found, self.view
        if isinstance(paths, SkippedPerson):
            return paths
        try:
            values = self._values(label, paths)
            if isinstance(values, SkippedPerson):
                return values
            return scale_vector(values, view.scale, view.center, view.normalize, paths[0])
        except DataError as error:
            return SkippedPerson(label, "unusable", str(error))

    def _values(self, label: str, paths: tuple[Path, ...]) -> NDArray[np.float32] | SkippedPerson:
        key = vector_key(paths, self.view)
        stored = self.cache.find(key, (len(self.view.labels), 1))
        if stored is not None:
            return stored[:, 0]
        values = self._read(label, paths)
        if isinstance(values, SkippedPerson):
            return values
        narrow = values.astype(np.float32)
        self.cache.store(key, narrow[:, None])
        return narrow

    def _read(self, label: str, paths: tuple[Path, ...]) -> Vector | SkippedPerson:
        view = self.view
        runs = [cut_epochs(read_recording(path, view.channels), view) for path in paths]
        sound = sum(len(run.values) for run in runs)
        if sound < view.minimum_epochs:
            why = min(runs, key=lambda run: len(run.values)).complaint
            needed = (
                f"; a participant needs {view.minimum_epochs}" if any(r.tried for r in runs) else ""
            )
            reason: Reason = "does-not-fit" if needed else "no-view"
            return SkippedPerson(label, reason, f"{why}{needed}.")
        epochs = np.concatenate([run.values for run in runs if len(run.values)])
        return erp(epochs) if view.measure == "erp" else band_power(epochs, view)
