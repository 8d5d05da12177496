"""`glm` on the cortex: maps of a difference in thickness on fsaverage5, released in its modes.

``python -m benchmarks.glm_surface [RUNS [PERSONS]]`` prints a table with a row for each number of
participants, ε and model: how far off maps are and were forecast to be, and how often intervals
held the truth.
"""

import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.glm import Tally
from benchmarks.glm_data import People, make_people
from benchmarks.glm_runs import Array, Trial, least_squares, make_trial, noise_of, run_trial
from consortium.algorithms.base import SurfacePlaces
from consortium.algorithms.glm.kernels.outcome_correlation import FWHM_PER_SIGMA
from consortium.space.kept_modes import surface_places
from consortium.space.mesh import read_mesh
from consortium.views.meshes import MeshFiles

PERSONS, SITES, SMOOTHNESS = (1460, 4380), 12, 20.0
LEVELS = (4.0, 8.0)
_DEVIATION = 1.23  # public, over that within groups and sites
_HEIGHT, _WIDTH = 0.5, 20.0  # of the difference, in deviations and mm
COLUMNS = (
    "participants",
    "ε",
    "numbers",
    "RMSE",
    "pooled RMSE",
    "forecast / RMSE",
    "stated / RMSE",
    "coverage",
    "false positives",
    "tails",
)


@lru_cache(maxsize=1)
def places() -> SurfacePlaces:
    """Vertices of fsaverage5, which nilearn carries."""
    return surface_places(read_mesh(MeshFiles("fsaverage5", None, None), Path()))


def surface_fields(
    count: int, generator: np.random.Generator, smoothness: float, *, heavy: bool = False
) -> Array:
    """Smooth fields of variance one along both cortices, V x count."""
    found = []
    for side in places().modes:
        weights, _ = side.heat((smoothness / FWHM_PER_SIGMA) ** 2)
        draws = generator.standard_normal((len(weights), count))
        found.append(side.vectors @ (np.sqrt(weights)[:, None] * draws))
    fields = np.concatenate(found)
    fields /= fields.std(axis=1, keepdims=True) if count > 50 else fields.std()
    if heavy:  # of Student's t with five degrees of freedom, by participant
        fields *= np.sqrt(3.0 / generator.chisquare(5, count))
    return np.asarray(fields)


def difference() -> Array:
    """The true difference, length V: a hill on the left."""
    away = np.square(places().coordinates - (-45, -20, 45)).sum(axis=1)
    left = np.arange(len(away)) < len(places().modes[0].vectors)
    return np.asarray(_HEIGHT * left * np.exp(-0.5 * away / _WIDTH**2))


def people_on_surfaces(
    persons: int, generator: np.random.Generator, smoothness: float, *, heavy: bool = False
) -> People:
    """Participants with maps; group and covariates are those of `glm_data`."""
    truth = difference()
    count = len(truth)
    people = make_people(persons, 1, SITES, generator, effect=0.0)
    values = surface_fields(persons, generator, smoothness, heavy=heavy)
    values += 0.6 * surface_fields(SITES, generator, smoothness)[:, people.site]
    slopes = surface_fields(3, generator, smoothness) * (0.3, 0.2, 0.15)
    values += slopes @ people.covariates + np.outer(truth, people.group)
    return replace(
        people,
        outcomes=values,
        truth=truth,
        slopes=slopes,
        deviation=np.full(count, _DEVIATION),
        location=np.zeros(count),
    )


def trial_on_surfaces(people: People, **analysis: object) -> Trial:
    """Put them into a study whose vertices have places."""
    trial = make_trial(people, basis="smooth", **analysis)
    name = next(name for name, size in trial.shape.views if size == len(people.outcomes))
    there = {name: places()}
    for site in trial.sites:
        site.extent = replace(site.extent, surface_places=there)
    return replace(trial, shape=replace(trial.shape, surface_places=there))


def measured(
    runs: int, persons: int, smoothness: float = SMOOTHNESS, *, heavy: bool = False
) -> tuple[dict[float, Tally], Tally]:
    """What runs of a study come to at every ε, and pooled."""
    tallies, pool, truth = {e: Tally() for e in LEVELS}, Tally(), difference()
    for number in range(runs):
        generator = np.random.default_rng((number, persons, 34))
        people = people_on_surfaces(persons, generator, smoothness, heavy=heavy)
        trial = trial_on_surfaces(people, smoothness=smoothness)
        pooled = least_squares(people.design(), people.outcomes)[0]
        pool.add(square=float(np.mean((pooled - truth) ** 2)))
        for epsilon, tally in tallies.items():
            result = run_trial(trial, noise_of(epsilon, SITES), np.random.default_rng((number, 35)))
            found = {name: _DEVIATION * v for name, v in result.arrays.items()}
            null = truth < 0.01
            tally.add(
                square=float(np.mean((found["effect"] - truth) ** 2)),
                stated=float(np.mean(found["error"] ** 2)),
                covered=float(np.mean((found["low"] <= truth) & (truth <= found["high"]))),
                false=float(np.mean(result.arrays["p"][null] < 0.05)),
                forecast=(_DEVIATION * float(result.numbers["forecast_error"])) ** 2,
                numbers=float(result.numbers["smooth_maps"]),
            )
    return tallies, pool


def main(runs: int, sizes: tuple[int, ...]) -> None:
    """Print the table in Markdown."""
    print(f"{runs} runs a row\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for persons in sizes:
        for heavy in (False, True):
            tallies, pool = measured(runs, persons, heavy=heavy)
            for epsilon, tally in tallies.items():
                error = tally.root("square")
                cells = [
                    f"{persons:,}",
                    f"{epsilon:g}",
                    f"{tally.mean('numbers'):.0f}",
                    f"{error:.3f}",
                    f"{pool.root('square'):.3f}",
                    *(f"{tally.root(name) / error:.3f}" for name in ("forecast", "stated")),
                    *(f"{tally.mean(name):.3f}" for name in ("covered", "false")),
                    "heavy" if heavy else "Gaussian",
                ]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    asked = tuple(map(int, sys.argv[2:3])) or PERSONS
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, asked)
