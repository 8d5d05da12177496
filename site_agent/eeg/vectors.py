"""A participant's EEG as one vector: the mean of epochs, or band power, per channel.

A participant's vector depends only on that participant's recordings and the study file.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.errors import DataError
from consortium.study.data_section import DataSection
from consortium.views.eeg import EegView
from site_agent.data.cache import BlockCache, vector_key
from site_agent.data.scaling import Vector, scale_vector
from site_agent.data.survey import Reason, SkippedPerson
from site_agent.eeg.damage import only_data_errors
from site_agent.eeg.epochs import WINDOW, Epochs, cut_epochs
from site_agent.eeg.files import find_recordings
from site_agent.eeg.reading import read_recording
from site_agent.eeg.recording import Signals
from site_agent.engines.base import Engine

FAINTEST = 1e-6
"""µV²/Hz that power is raised to before its logarithm; no amplifier is as quiet."""


def read_recordings(
    folder: Path, view: EegView, data: DataSection, cache: Path, engine: Engine
) -> tuple[dict[str, Vector], list[SkippedPerson]]:
    """Read a view's vectors from a data set's EEG recordings.

    Epochs of all of a participant's runs are pooled. A participant without recording, without the
    study's channels or events, or with too few good epochs is excluded. A damaged recording must be
    fixed first. Raises NobodyError if no participant has a recording of the task. Raises
    ConfigurationError if MNE is not installed, or the cache can't be written.

    Parameters
    ----------
    folder : Path
        The site's data set.
    data : DataSection
        The study's; it chooses among a participant's recordings.
    cache : Path
        The site's folder for computed values. A file that is touched is read again.
    engine : Engine
        Engine on which recordings are read.

    Returns
    -------
    vectors : dict of str to array, shape (D_view,)
        By participant's label, without ``sub-``; channel by channel.
    skipped : list of Skipped
        All other participants: ``no-view``, ``unusable``, ``not-chosen`` by their recordings'
        names, or ``does-not-fit`` without enough good epochs.
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
    """Return the mean over epochs (E, C, T), channel by channel, shape (C * T,)."""
    return np.asarray(epochs.mean(axis=0).ravel())


def band_power(epochs: Signals, view: EegView) -> Vector:
    """Return the mean power density of every band and channel, in dB of µV²/Hz, shape (C * bands,).

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
    """Reader of participants, which stores their values for later runs."""

    def __init__(self, folder: Path, view: EegView, cache: BlockCache) -> None:
        self.folder = folder
        self.view = view
        self.cache = cache

    def person(self, found: tuple[str, tuple[Path, ...] | SkippedPerson]) -> Vector | SkippedPerson:
        """Return one participant's vector, or why there is none, given label and recordings."""
        label, paths = found
        view = self.view
        if isinstance(paths, SkippedPerson):
            return paths
        try:
            values = self._values(label, paths)
            if isinstance(values, SkippedPerson):
                return values
            with only_data_errors(paths[0]):
                return scale_vector(values, view.scale, view.center, view.normalize, paths[0])
        except DataError as error:
            return SkippedPerson(label, "unusable", str(error))

    def _values(self, label: str, paths: tuple[Path, ...]) -> NDArray[np.float32] | SkippedPerson:
        with only_data_errors(paths[0]):
            key = vector_key(paths, self.view)
        stored = self.cache.find(key, (len(self.view.labels), 1))
        if stored is not None:
            return stored[:, 0]
        with only_data_errors(paths[0]):
            values = self._read(label, paths)
        if isinstance(values, SkippedPerson):
            return values
        narrow = values.astype(np.float32)
        self.cache.store(key, narrow[:, None])
        return narrow

    def _read(self, label: str, paths: tuple[Path, ...]) -> Vector | SkippedPerson:
        view = self.view
        runs = [self._epochs(path) for path in paths]
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

    def _epochs(self, path: Path) -> Epochs:
        with only_data_errors(path):
            return cut_epochs(read_recording(path, self.view.channels), self.view)
