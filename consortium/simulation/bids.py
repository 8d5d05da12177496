"""A simulated consortium on disk: one BIDS data set per site, and the true maps separately."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.simulation.dataset import (
    MadeUpRun,
    require_empty,
    start_derivatives,
    stored_image,
    write_indented,
    write_run,
)
from consortium.simulation.networks import network_maps
from consortium.simulation.signals import Array, MadeUpAnatomy, SignalLevels, anatomy, scan
from consortium.space.grid import Grid, template_grid

SPACE = "MNI152NLin2009cAsym"


@dataclass(frozen=True)
class Scanner:
    """How a site's scanner differs from the recipe's levels."""

    gain: float = 1.0
    """Factor on every value."""
    noise: float = 1.0
    """Factor on a voxel's noise."""


@dataclass(frozen=True)
class Patients:
    """Participants whose networks differ. They are the last of every site."""

    share: float
    """Fraction of every site's participants, rounded."""
    weights: dict[str, float]
    """Factors of a patient's networks, by name."""

    def among(self, size: int) -> int:
        """Return their number among a site's participants."""
        return round(self.share * size)


@dataclass(frozen=True)
class Recipe:
    """Sizes, levels and noise of the data sets to simulate."""

    sites: tuple[str, ...]
    """Names; each becomes a folder."""
    subjects: int | tuple[int, ...]
    """M_s, for all sites or one number per site."""
    seed: int
    """Decides every value, whatever the number of workers."""
    volumes: int | tuple[int, int] = 100
    """T, or the range it is drawn from subject by subject, both ends included."""
    networks: int = 12
    """R, the first of the table of known networks."""
    resolution: float = 8.0
    """Voxel edge of the stored images in mm."""
    repetition_time: float = 2.0
    """Seconds."""
    task: str = "rest"
    """BIDS label."""
    levels: SignalLevels = field(default_factory=SignalLevels)
    """How strong signal and nuisances are."""
    scanners: tuple[Scanner, ...] = ()
    """One for each site, or none if all are alike."""
    patients: Patients | None = None
    """With them, ``participants.tsv`` has each participant's diagnosis, age and sex."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Subjects of each site."""
        if isinstance(self.subjects, int):
            return (self.subjects,) * len(self.sites)
        return self.subjects


@dataclass(frozen=True)
class Job:
    """One simulated participant to write: data set, label, seed, scanner and diagnosis."""

    site: str
    subject: str
    folder: Path
    seed: np.random.SeedSequence
    scanner: Scanner
    patient: bool


@dataclass(frozen=True)
class MadeUp:
    """Folders of a simulated consortium, and its true maps."""

    sites: dict[str, Path]
    """Each site's BIDS data set."""
    truth: Path
    """Folder with ``networks.nii.gz``, ``mask.nii.gz``, ``courses.npz`` and ``truth.json``."""


def make_consortium(
    folder: Path,
    recipe: Recipe,
    *,
    workers: int = 2,
    progress: Callable[[str], None] = lambda _site: None,
) -> MadeUp:
    """Write a consortium's data sets and, next to them, the true maps, which no site sees.

    Raises OutputError if one of these folders has files already. Raises DataError if the recipe
    requires more networks than are known. Raises ValueError if the recipe does not have one number
    of subjects per site.

    Parameters
    ----------
    folder : Path
        Gets ``<site>/bids`` per site and ``truth``.
    workers : int
        Threads; compression and random numbers, which take the time, run in parallel.
    progress : callable
        Called with the site's name after each subject.

    Returns
    -------
    MadeUp
    """
    grid = template_grid(recipe.resolution)
    names, maps = network_maps(grid.affine, grid.shape, grid.mask, count=recipe.networks)
    common = anatomy(grid, maps)
    made = MadeUp({site: folder / site / "bids" for site in recipe.sites}, folder / "truth")
    require_empty(made.truth)
    jobs = list(_jobs(made, recipe))
    weights = np.ones(len(names))
    if recipe.patients:
        weights *= [recipe.patients.weights.get(name, 1.0) for name in names]
    courses: dict[str, Array] = {}
    with ThreadPoolExecutor(workers) as pool:
        written = pool.map(lambda job: _write_subject(job, common, recipe, weights), jobs)
        for job, course in zip(jobs, written, strict=True):
            courses[f"{job.site}_sub-{job.subject}"] = course
            progress(job.site)
    _write_truth(
        folder=made.truth, grid=grid, maps=maps, names=names, recipe=recipe, courses=courses
    )
    return made


def _jobs(made: MadeUp, recipe: Recipe) -> Iterator[Job]:
    """Start every data set and list its subjects, each with a seed of its own."""
    scanners = recipe.scanners or (Scanner(),) * len(recipe.sites)
    each = zip(recipe.sites, recipe.sizes, scanners, strict=True)
    for number, (site, size, scanner) in enumerate(each):
        subjects = [f"{index + 1:03d}" for index in range(size)]
        well = size - (recipe.patients.among(size) if recipe.patients else 0)
        columns = {}
        if recipe.patients:
            columns = _people(np.random.SeedSequence(recipe.seed, spawn_key=(number,)), size, well)
        start_derivatives(
            made.sites[site], f"Simulated resting-state data of {site}", subjects, columns
        )
        for index, subject in enumerate(subjects):
            seed = np.random.SeedSequence(recipe.seed, spawn_key=(number, index))
            yield Job(
                site=site,
                subject=subject,
                folder=made.sites[site],
                seed=seed,
                scanner=scanner,
                patient=index >= well,
            )


def _people(seed: np.random.SeedSequence, size: int, well: int) -> dict[str, list[str]]:
    """Return the columns of ``participants.tsv``."""
    generator = np.random.default_rng(seed)
    ages = generator.integers(18, 66, size)
    sexes = generator.choice(["F", "M"], size)
    diagnoses = ["control"] * well + ["patient"] * (size - well)
    return {"diagnosis": diagnoses, "age": [str(age) for age in ages], "sex": list(sexes)}


def _write_subject(
    job: Job, common: MadeUpAnatomy, recipe: Recipe, weights: NDArray[np.float64]
) -> Array:
    """Draw and write one subject; returns the true courses (R x T)."""
    generator = np.random.default_rng(job.seed)
    volumes = recipe.volumes
    if not isinstance(volumes, int):
        volumes = int(generator.integers(volumes[0], volumes[1], endpoint=True))
    levels = replace(recipe.levels, noise=recipe.levels.noise * job.scanner.noise)
    drawn = scan(generator, common, volumes, levels, weights if job.patient else None)
    grid = common.grid
    pause = recipe.repetition_time
    run = MadeUpRun(job.subject, recipe.task, SPACE, pause)
    scanned = drawn.volumes * np.float32(job.scanner.gain)
    image = stored_image(scanned, grid.mask, grid.affine, pause)
    write_run(job.folder, run, image, drawn.confounds)
    return drawn.courses


def _write_truth(
    folder: Path,
    grid: Grid,
    maps: Array,
    names: tuple[str, ...],
    recipe: Recipe,
    courses: dict[str, Array],
) -> None:
    """Write the maps as images, and names, recipe and time series next to them."""
    folder.mkdir(parents=True)
    nib.save(grid.image(maps), folder / "networks.nii.gz")
    nib.save(grid.image(np.ones(grid.features)), folder / "mask.nii.gz")
    np.savez(folder / "courses.npz", **courses)  # type: ignore[arg-type]
    write_indented(folder / "truth.json", {"networks": list(names), "recipe": asdict(recipe)})
