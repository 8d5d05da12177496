"""One simulated participant of a consortium with images and EEG, in a hospital's files."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.simulation.dataset import MadeUpRun, stored_image, write_run
from consortium.space.grid import Grid
from tests.support.fusion import CORRELATIONS, waves
from tests.support.recordings import WRITERS, Tape, write_tape

Array = NDArray[np.float64]

SPACE = "MNI152NLin2009cAsym"
CONTRAST = "desc-faces_statmap"
"""End of the contrast images' names."""
ELECTRODES = {
    "Fp1": (-0.31, 0.95), "Fp2": (0.31, 0.95), "F7": (-0.81, 0.59), "F3": (-0.41, 0.55),
    "Fz": (0.0, 0.5), "F4": (0.41, 0.55), "F8": (0.81, 0.59), "T7": (-1.0, 0.0),
    "C3": (-0.5, 0.0), "Cz": (0.0, 0.0), "C4": (0.5, 0.0), "T8": (1.0, 0.0),
    "P7": (-0.81, -0.59), "P3": (-0.41, -0.55), "Pz": (0.0, -0.5), "P4": (0.41, -0.55),
    "P8": (0.81, -0.59), "O1": (-0.31, -0.95), "O2": (0.31, -0.95),
}  # fmt: skip
"""The 10-20 system's channels on a disc: right and front are positive, an ear is at 1."""
SOURCES_AT = ((0.0, -0.9), (0.0, -0.4), (0.4, 0.1), (-0.4, 0.1), (0.0, 0.6), (0.7, -0.4))
"""Where on that disc a source's potential is largest."""
TRIALS = ("target", "standard")
POTENTIAL = 8.0
"""Peak in µV of a potential of strength 1."""
SPREAD = 0.45
"""Standard deviation of a source's topography on that disc."""


@dataclass(frozen=True)
class FusionRecipe:
    """Settings of the simulation.

    Parameters
    ----------
    sites : tuple of str
        Names; each becomes a folder.
    subjects : int
        Participants of each site.
    seed : int
        Decides every value.
    correlations : tuple of float
        Between the two modulation profiles of each of the K sources, at most 6.
    volumes : int
        Volumes of a series; none is written for 0.
    resolution : float
        Voxel edge of the stored images in mm.
    repetition_time : float
        Seconds.
    trials : int
        Trials of each of the two types, a second apart.
    rate : int
        EEG samples per second.
    modulation : float
        Standard deviation of a network's and a potential's strength, whose mean is 1.
    noise : float
        EEG noise per sample in µV, where the potentials are up to about 8 µV.
    one_sided : int
        Interval of participants without images, each followed by one without EEG; 0 for none.
    formats : tuple of str
        Endings of the sites' recordings, in turn.
    task : str
    """

    sites: tuple[str, ...]
    subjects: int
    seed: int
    correlations: tuple[float, ...] = CORRELATIONS
    volumes: int = 60
    resolution: float = 12.0
    repetition_time: float = 2.0
    trials: int = 20
    rate: int = 200
    modulation: float = 0.3
    noise: float = 5.0
    one_sided: int = 10
    formats: tuple[str, ...] = tuple(WRITERS)
    task: str = "oddball"


@dataclass(frozen=True, eq=False)
class Person:
    """One participant to write: place, format, and profiles (K each)."""

    home: Path
    ending: str
    generator: np.random.Generator
    image: Array
    potential: Array
    with_images: bool
    with_eeg: bool

    @property
    def label(self) -> str:
        """Without ``sub-``."""
        return self.home.name.removeprefix("sub-")


@dataclass(frozen=True, eq=False)
class Setting:
    """Common values of all participants."""

    recipe: FusionRecipe
    grid: Grid
    names: tuple[str, ...]
    maps: NDArray[np.float32]

    @cached_property
    def topographies(self) -> Array:
        """Weights of the sources (K) on the channels (C), shape (C, K)."""
        places = np.array(list(ELECTRODES.values()))[:, None]
        centres = np.array(SOURCES_AT[: self.maps.shape[1]])[None]
        return np.asarray(np.exp(-0.5 * ((places - centres) ** 2).sum(axis=2) / SPREAD**2))


def write_person(person: Person, setting: Setting) -> None:
    """Write a participant's images and EEG, if they have them."""
    recipe = setting.recipe
    if person.with_images:
        _write_series(person, setting)
        _write_contrast(person, setting)
    if person.with_eeg:
        stem = f"sub-{person.label}_task-{recipe.task}"
        write_tape(person.home / "eeg", stem, _tape(person, setting), person.ending)


def _write_series(person: Person, setting: Setting) -> None:
    """Write networks whose deviation over time is 1 plus the modulation, in white noise."""
    recipe, grid = setting.recipe, setting.grid
    if not recipe.volumes:
        return
    courses = person.generator.standard_normal((len(person.image), recipe.volumes))
    courses -= courses.mean(axis=1, keepdims=True)
    courses *= ((1 + recipe.modulation * person.image) / courses.std(axis=1))[:, None]
    noise = person.generator.standard_normal((grid.features, recipe.volumes))
    values = 1000 + 20 * (setting.maps @ courses) + 5 * noise
    run = MadeUpRun(person.label, recipe.task, SPACE, recipe.repetition_time)
    series = stored_image(values.astype(np.float32), grid.mask, grid.affine, recipe.repetition_time)
    write_run(person.home.parent, run, series)


def _write_contrast(person: Person, setting: Setting) -> None:
    """Write networks times the participant's profile, in white noise."""
    noise = 0.2 * person.generator.standard_normal(setting.grid.features)
    image = setting.grid.image(setting.maps @ person.image + noise)
    stem = f"sub-{person.label}_task-{setting.recipe.task}_space-{SPACE}"
    (person.home / "func").mkdir(parents=True, exist_ok=True)
    nib.save(image, person.home / "func" / f"{stem}_{CONTRAST}.nii.gz")


def _tape(person: Person, setting: Setting) -> Tape:
    """Return trials of two types in turn, a second apart; only the first evokes the potentials."""
    recipe, generator = setting.recipe, person.generator
    seconds = 2 * recipe.trials + 4
    times = np.arange(recipe.rate) / recipe.rate
    strength = POTENTIAL * (1 + recipe.modulation * person.potential)
    evoked = (setting.topographies * strength) @ waves(times, len(strength))
    signals = recipe.noise * generator.standard_normal((len(ELECTRODES), seconds * recipe.rate))
    events = []
    for trial in range(2 * recipe.trials):
        start = (trial + 2) * recipe.rate
        if trial % 2 == 0:
            signals[:, start : start + recipe.rate] += evoked
        events.append((start / recipe.rate, TRIALS[trial % 2]))
    return Tape(tuple(ELECTRODES), recipe.rate, signals, tuple(events))
