"""A site of simulated participants whose prepared blocks are in its cache, in any number.

A few blocks are drawn. Every participant's file is one of them under another name. So a round reads
as much as with real data, and the disk stores only a few blocks.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Query
from consortium.kernels.power import start_basis
from consortium.privacy.bounds import Bound
from consortium.space.grid import Grid
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.cache import BlockCache, block_key
from site_agent.data.survey import RecordingRun, Subject, Survey
from site_agent.engines.base import Engine, Threads
from site_agent.images.series import SiteDataset

BOUND, COMPONENTS = Bound(0.5), 20
DRAWN = 8
"""Blocks that differ."""


@dataclass(frozen=True)
class Size:
    """Participants' numbers of features and volumes."""

    features: int
    volumes: int

    def __str__(self) -> str:
        return f"{self.features:,} x {self.volumes}"


def dataset(folder: Path, size: Size, persons: int, engine: Engine) -> SiteDataset:
    """Return a site whose participants' blocks are prepared."""
    grid = Grid(np.ones((size.features, 1, 1), dtype=np.bool_), np.eye(4))
    data = SiteDataset(folder, DataSection(), Space(grid), "subject", folder / "cache", engine)
    subjects = tuple(
        Subject(f"{number:06}", (RecordingRun(folder / f"{number:06}"),))
        for number in range(persons)
    )
    data.__dict__["survey"] = Survey(subjects, (size.volumes,) * persons, ())
    return data


def prepare(folder: Path, size: Size, persons: int) -> None:
    """Write every participant's block, of low rank and noise, as if it had been prepared."""
    data, draws = dataset(folder, size, persons, Threads()), np.random.default_rng(0)
    cache = BlockCache(folder / "cache")
    networks = draws.standard_normal((size.features, 20), dtype=np.float32)
    kinds: list[Path] = []
    for subject in data.survey.subjects:
        subject.runs[0].bold.touch()
        key = block_key(subject, data.data, data.space.target)
        if len(kinds) == DRAWN:
            (cache.folder / f"{key}.npy").hardlink_to(kinds[int(subject.label) % DRAWN])
            continue
        courses = draws.standard_normal((20, size.volumes), dtype=np.float32)
        block = networks @ courses
        block += draws.standard_normal(block.shape, dtype=np.float32)
        block /= np.linalg.norm(block) / np.float32(np.sqrt(size.volumes))
        cache.store(key, block)
        kinds.append(cache.folder / f"{key}.npy")


def queries(features: int) -> dict[str, tuple[str, dict[str, object], Query]]:
    """Return queries to a site by name: algorithm, its parameters besides the number, and query."""
    basis = start_basis(features, COMPONENTS, 0)
    unmix: dict[str, Array] = {"whitening": basis, "unmixing": np.eye(COMPONENTS)}
    return {
        "pca second moment": ("pca", {}, Query("pca", "second_moment")),
        "pca power": ("pca", {}, Query("pca", "power", {"basis": basis})),
        "ica rotation": ("ica", {"score": "tanh"}, Query("ica", "rotation", unmix)),
        "group_ica projectors": ("group_ica", {"basis": "voxels"}, Query("", "projectors")),
    }


def answer(data: SiteDataset, name: str) -> bytes:
    """Return a site's statistic."""
    algorithm, analysis, asked = queries(data.features)[name]
    stated = {"components": COMPONENTS, **analysis}
    parameters = REGISTRY[algorithm].Parameters.model_validate(stated)
    shape = data.extent.shape((len(data.lengths),), (sum(data.lengths),), data.unit)
    plan = REGISTRY[algorithm](parameters, shape)
    return plan.statistics[asked.statistic](plan, data, asked, BOUND).tobytes()
