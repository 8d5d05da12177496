"""A made-up consortium on disk: one BIDS data set per site, the truth apart from them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import nibabel as nib
import numpy as np

from consortium.space.grid import Grid, template_grid
from consortium.synthetic.dataset import (
    Run,
    require_empty,
    start_dataset,
    stored_image,
    write_json,
    write_run,
)
from consortium.synthetic.networks import network_maps
from consortium.synthetic.signals import Anatomy, Array, Levels, anatomy, scan

SPACE = "MNI152NLin2009cAsym"


@dataclass(frozen=True)
class Recipe:
    """What to make up.

    Parameters
    ----------
    sites : tuple of str
        Names; each becomes a folder.
    subjects : int or tuple of int
        M_s, for all sites or one number per site.
    seed : int
        Decides every value, whatever the number of workers.
    volumes : int or (int, int)
        T, or the range it is drawn from subject by subject, both ends included.
    networks : int
        R, the first of the table of known networks.
    resolution : float
        Voxel edge of the stored images in mm.
    repetition_time : float
        Seconds.
    task : str
        BIDS label.
    levels : Levels
        How strong signal and nuisances are.
    """

    sites: tuple[str, ...]
    subjects: int | tuple[int, ...]
    seed: int
    volumes: int | tuple[int, int] = 100
    networks: int = 12
    resolution: float = 8.0
    repetition_time: float = 2.0
    task: str = "rest"
    levels: Levels = field(default_factory=Levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Subjects of each site."""
        if isinstance(self.subjects, int):
            return (self.subjects,) * len(self.sites)
        return self.subjects


@dataclass(frozen=True)
class Job:
    """One subject to write: folder of its data set, label, and its own seed."""

    site: str
    subject: str
    folder: Path
    seed: np.random.SeedSequence


@dataclass(frozen=True)
class MadeUp:
    """Where everything is.

    Parameters
    ----------
    sites : dict of str to Path
        Each site's BIDS data set.
    truth : Path
        Folder with ``networks.nii.gz``, ``mask.nii.gz``, ``courses.npz`` and ``truth.json``.
    """

    sites: dict[str, Path]
    truth: Path


def make_consortium(
    folder: Path,
    recipe: Recipe,
    *,
    workers: int = 2,
    progress: Callable[[str], None] = lambda _site: None,
) -> MadeUp:
    """Write a consortium's data sets and, beside them, the truth that no site sees.

    Parameters
    ----------
    folder : Path
        Gets ``<site>/bids`` per site and ``truth``.
    recipe : Recipe
    workers : int
        Threads; compression and random numbers, which take the time, run in parallel.
    progress : callable
        Called with the site's name after each subject.

    Returns
    -------
    MadeUp

    Raises
    ------
    OutputError
        If a data set's folder or the truth's holds files already.
    DataError
        If there are fewer known networks than the recipe asks for.
    ValueError
        If the recipe does not give one number of subjects per site.
    """
    grid = template_grid(recipe.resolution)
    names, maps = network_maps(grid.affine, grid.shape, grid.mask, count=recipe.networks)
    common = anatomy(grid, maps)
    made = MadeUp({site: folder / site / "bids" for site in recipe.sites}, folder / "truth")
    require_empty(made.truth)
    jobs = list(_jobs(made, recipe))
    courses: dict[str, Array] = {}
    with ThreadPoolExecutor(workers) as pool:
        written = pool.map(lambda job: _write_subject(job, common, recipe), jobs)
        for job, course in zip(jobs, written, strict=True):
            courses[f"{job.site}_sub-{job.subject}"] = course
            progress(job.site)
    _write_truth(made.truth, grid, maps, names, recipe, courses)
    return made


def _jobs(made: MadeUp, recipe: Recipe) -> Iterator[Job]:
    """Start every data set and list its subjects, each with a seed of its own."""
    for number, (site, size) in enumerate(zip(recipe.sites, recipe.sizes, strict=True)):
        subjects = [f"{index + 1:03d}" for index in range(size)]
        start_dataset(made.sites[site], f"Made-up resting-state data of {site}", subjects)
        for index, subject in enumerate(subjects):
            seed = np.random.SeedSequence(recipe.seed, spawn_key=(number, index))
            yield Job(site, subject, made.sites[site], seed)


def _write_subject(job: Job, common: Anatomy, recipe: Recipe) -> Array:
    """Draw and write one subject; returns the true courses (R x T)."""
    generator = np.random.default_rng(job.seed)
    volumes = recipe.volumes
    if not isinstance(volumes, int):
        volumes = int(generator.integers(volumes[0], volumes[1], endpoint=True))
    drawn = scan(generator, common, volumes, recipe.levels)
    grid, pause = common.grid, recipe.repetition_time
    run = Run(job.subject, recipe.task, SPACE, pause)
    image = stored_image(drawn.volumes, grid.mask, grid.affine, pause)
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
    """Write the maps as images, and names, recipe and courses beside them."""
    folder.mkdir(parents=True)
    nib.save(grid.image(maps), folder / "networks.nii.gz")
    nib.save(grid.image(np.ones(grid.features)), folder / "mask.nii.gz")
    np.savez(folder / "courses.npz", **courses)  # type: ignore[arg-type]
    write_json(folder / "truth.json", {"networks": list(names), "recipe": asdict(recipe)})
