"""capeDJICA on simulated participants compared with group ICA: solvers, scores and shares."""

from typing import Any

import numpy as np

from benchmarks.network_people import EDGE, People, hard_people, plain_people
from benchmarks.network_pool import HARD, PLAIN, extent, matched
from benchmarks.studies import study_of
from benchmarks.timing import show
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation

VARIANTS: tuple[dict[str, Any], ...] = (
    {"pca_solver": "moment", "score": "volatility", "pca_share": 0.5, "pca_bound": 0.5},
    {"pca_solver": "moment", "score": "tanh", "pca_share": 0.8, "pca_bound": 0.3},
    {"pca_solver": "subspace", "score": "volatility", "pca_share": 0.8, "pca_bound": 0.3},
    {"pca_solver": "subspace", "score": "tanh", "pca_share": 0.8, "pca_bound": 0.3},
)


def sites_of(people: People, seed: int) -> list[ArrayData]:
    """Return every hospital's participants, with variance 1 per voxel as in `preprocess_person`."""
    blocks: list[list[Any]] = [[] for _ in people.sizes]
    for site, series in people.persons(seed):
        centred = series - series.mean(axis=1, keepdims=True)
        centred /= np.sqrt(np.mean(np.square(centred)) * len(centred))
        blocks[site].append(centred.astype(np.float32))
    return [ArrayData(each, places=extent().places) for each in blocks]


def run_study(sites: list[ArrayData], epsilon: float, seed: int, **analysis: Any) -> Any:
    """Run a whole study in this process."""
    study = study_of("ica", analysis, len(sites), epsilon, data={"resolution": EDGE})
    return Simulation(study, sites, seed).run()


def rounds(seeds: int = 2) -> None:
    """Measure the correlation with the true networks."""
    rows = []
    for name, people, size in (("plain", plain_people(PLAIN), 14), ("hard", hard_people(HARD), 20)):
        sites = sites_of(people, 0)
        for epsilon in (4.0, 8.0):
            for variant in VARIANTS:
                scores = []
                for seed in range(seeds):
                    result = run_study(sites, epsilon, seed, components=size, **variant)
                    scores.append(matched(result.arrays["mixing"], people.maps))
                told = [f"{np.median(scores):.2f}", f"{np.mean(scores):.2f}"]
                words = [str(variant[k]) for k in ("pca_solver", "score", "pca_share")]
                rows.append([name, f"{epsilon:g}", *words, *told])
    show(
        "capeDJICA, 400 participants: correlation with the truth",
        ["participants", "ε", "solver", "score", "pca_share", "median", "mean"],
        rows,
    )
