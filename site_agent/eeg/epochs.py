"""Epochs of an EEG recording: referenced, filtered, resampled and cut, segment by segment."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.views.eeg import EegView
from site_agent.eeg.breaks import events_within
from site_agent.eeg.native import load_mne
from site_agent.eeg.recording import Recording, Signals, onsets_of

WINDOW = 2.0
"""Seconds of the windows for estimating band power without events; they overlap by half."""
FINE = 500.0
"""Smallest number of samples per second for placing events, to move none by more than 1 ms."""
LEAST_RATE = 2.2
"""Samples per period of the pass band's upper edge. With a number closer to two, no filter of
sensible length prevents aliasing of higher frequencies."""
ROLL_OFF = 3.3
"""Length of MNE's filter in periods of its transition band (a Hamming window's)."""
QUIETEST = 0.1
LOUDEST = 1000.0
"""Limits in µV of the median standard deviation within an epoch. Scalp EEG has 1 to 100 µV. Volts,
millivolts or nanovolts that are labelled as µV are beyond the limits."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """Epochs of an EEG recording that were not rejected."""

    values: Signals
    """Shape (E, C, T). In µV."""
    tried: int
    """Number of epochs before bad ones were excluded."""
    complaint: str
    """Sentence if they are too few, without a full stop."""


def cut_epochs(recording: Recording, view: EegView) -> Epochs:
    """Prepare a run: reference, filter, resample, cut, subtract baselines, exclude bad epochs.

    Every continuous segment is filtered, resampled and cut separately. Segments that are too short
    for the filter are not used. An epoch is bad if it crosses an end or a break of the recording,
    overlaps a span that is marked as bad, exceeds the view's peak to peak on a channel, or has a
    constant channel.

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
    sound = list[Signals]()
    amplitudes = list[float]()
    tried = len(onsets)
    segments = _long_enough(recording, view)
    for segment, inside in events_within(onsets, segments, recording.rate):
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
    fine = view.rate * prepared.step
    offset = prepared.first / recording.rate
    before = -round(view.start * view.rate) if view.baseline and view.events else 0
    for places in prepared.found:
        first = int(places[0])
        last = int(places[-1])
        inside = first >= 0 and last < prepared.signals.shape[1]
        start = offset + first / fine
        stop = offset + (last + 1) / fine
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
    """Return why a recording can't be used, if it lacks channels, events or length."""
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
        return f"{recording.path} {what} {least_seconds(view):.1f} s, the minimum for the filter"
    return ""


def least_seconds(view: EegView) -> float:
    """Return the seconds that a continuous segment must have."""
    return max(_filter_seconds(view), WINDOW)


def _long_enough(recording: Recording, view: EegView) -> list[tuple[int, int]]:
    """List the continuous segments that are long enough for the filter."""
    least = least_seconds(view) * recording.rate
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

    Epochs are cut from a fine grid of times, since a coarse one would shift their events.

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
            f"{recording.path} has {recording.rate:g} samples per second, not enough for the "
            f"study's pass band up to {high:g} Hz. Leave the participant out, or ask for a "
            "narrower band."
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
    """Return the fine samples per sample of the study, by the recording's rate if it fits."""
    own = recorded / rate
    fits = recorded >= FINE and abs(own - round(own)) < 1e-9
    return round(own) if fits else int(np.ceil(FINE / rate))


def _filter_seconds(view: EegView) -> float:
    """Return the length of MNE's filter: its transitions are a quarter of the edge, at least 2 Hz.

    The lower transition is at most as wide as the edge itself.
    """
    edges = [edge for edge in view.filter if edge]
    return max(ROLL_OFF / min(max(edge / 4, 2.0), edge) for edge in edges)


def _places(
    onsets: Sequence[float], view: EegView, step: int, samples: int
) -> Iterator[NDArray[np.intp]]:
    """Yield the prepared samples of every epoch, or of every window without events."""
    if view.events:
        epoch = step * np.arange(round(view.start * view.rate), round(view.stop * view.rate) + 1)
        for onset in onsets:
            yield round(onset * view.rate * step) + epoch
        return
    window = step * np.arange(round(WINDOW * view.rate))
    hop = max(len(window) // 2, 1) * step
    for start in range(0, samples - int(window[-1]), hop):
        yield start + window
