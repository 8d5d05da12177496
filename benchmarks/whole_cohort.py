"""Maps of a cohort's networks from its files: group ICA compared with nilearn's CanICA."""

import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np

from benchmarks.network_peers import SIZE, canica
from benchmarks.network_pool import matched
from benchmarks.peers import installed
from benchmarks.studies import study_of
from benchmarks.table import Row, alternate
from consortium.algorithms.base import Array
from consortium.simulation.networks import network_maps
from consortium.simulation.simulation import Simulation
from consortium.space.study_space import Space, study_space
from site_agent.images.series import SiteDataset

SITES, PERSONS, VOLUMES = 4, 20, 100
EDGE, CUTOFF = 4.0, 22.0  # mm
EPSILON = 100.0
"""Privacy budget at which nearly all maps are found, so that they are also compared with nulls."""
_NOISE = 1.0
"""Standard deviation of a voxel's noise, over the peak of a network."""
_REPEATS = 1
"""A turn takes minutes of the processor."""


def whole_cohort() -> list[Row]:
    """Return the row of the one table: 80 participants, from gzipped files to maps."""
    study = study_of(
        "group_ica",
        {"components": SIZE, "cutoff": CUTOFF, "anyway": True},
        SITES,
        EPSILON,
        data={"resolution": EDGE, "detrend": "none"},
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        space = study_space(study, folder)
        truth, files = _made_up(space, folder)
        found: dict[str, Array] = {}

        def ours() -> None:
            with tempfile.TemporaryDirectory() as cache:
                sites = [
                    SiteDataset(each, study.data, space, "subject", Path(cache)) for each in files
                ]
                found["ours"] = Simulation(study, sites, 0).run().arrays["maps"]

        def peer() -> None:
            found["peer"] = canica(space.grid, [str(path) for each in files for path in each])

        mine, theirs = alternate(ours, peer, repeats=_REPEATS)
    scores = {name: float(np.mean(matched(maps, truth))) for name, maps in found.items()}
    work = f"{SITES * PERSONS} participants of {VOLUMES} volumes, files to maps"
    ours_is = f"{work}: correlation with the truth {scores['ours']:.2f}"
    peer_is = f"CanICA of nilearn {installed('nilearn')}: {scores['peer']:.2f}"
    return [Row(ours_is, mine, peer_is, theirs, "≤ 0.5")]


def _made_up(space: Space, folder: Path) -> tuple[Array, list[list[Path]]]:
    """Write each participant's file; return the true maps, and the files of each site."""
    grid = space.grid
    maps = network_maps(grid.affine, grid.shape, grid.mask)[1]
    generator = np.random.default_rng(0)
    files: list[list[Path]] = []
    for site in range(SITES):
        files.append([])
        for person in range(PERSONS):
            courses = generator.standard_normal((maps.shape[1], VOLUMES), dtype=np.float32)
            noise = generator.standard_normal((len(maps), VOLUMES), dtype=np.float32)
            series = 1000.0 + 20.0 * (maps @ courses + _NOISE * noise)
            path = folder / f"sub-{site}{person:02}_bold.nii.gz"
            nib.save(grid.image(np.asarray(series, dtype=np.float32)), path)
            files[-1].append(path)
    return maps, files
