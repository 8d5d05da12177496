"""Real EEG files of a few channels, for the tests of their reader."""

from pathlib import Path

import numpy as np

from consortium.views.eeg import EegView
from tests.support.recordings import Tape, write_tape

CHANNELS = ("Fp1", "Cz", "Pz", "Oz")
RATE = 250
TASK = "oddball"


def tiny_tape(seed: int = 0, trials: int = 24, channels=CHANNELS, rate: int = RATE) -> Tape:
    """Smooth noise of about 10 µV, and two trial types in turn, 1.2 s apart."""
    generator = np.random.default_rng(seed)
    seconds = int(np.ceil(1.2 * trials)) + 4
    white = generator.standard_normal((len(channels), seconds * rate))
    kernel = np.hanning(rate // 10)
    smooth = [np.convolve(row, kernel / np.linalg.norm(kernel), mode="same") for row in white]
    kinds = ("target", "standard")
    events = tuple((2 + 1.2 * n, kinds[n % 2]) for n in range(trials))
    return Tape(channels, rate, 10 * np.array(smooth), events)


def erp_view(**changes) -> EegView:
    """Return a view of the mean over the targets on three of the channels."""
    values = {
        "name": "erp",
        "source": "eeg",
        "task": TASK,
        "channels": ["Cz", "Pz", "Oz"],
        "events": ["target"],
        "normalize": False,
        "scale": 1.0,
    }
    return EegView.model_validate(values | changes)


def record(dataset: Path, label: str, tape: Tape, ending: str = ".vhdr", run: str = "") -> Path:
    """Write a participant's recording into a BIDS folder."""
    stem = f"sub-{label}_task-{TASK}{run and f'_run-{run}'}"
    return write_tape(dataset / f"sub-{label}" / "eeg", stem, tape, ending)


def table(path: Path, suffix: str) -> Path:
    """Return the BIDS table next to a recording."""
    return path.with_name(f"{path.name.split('_eeg.')[0]}_{suffix}.tsv")
