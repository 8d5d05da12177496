"""`glm` on the cortex: maps of a difference in thickness on fsaverage5, released in its modes.

``python -m benchmarks.glm_surface [RUNS [PERSONS]]`` prints a table with a row for each number of
participants, smoothness and ε: errors of maps, their forecasts, those of the largest site by itself
and without privacy, and the coverage of intervals. Maps have every sixteenth vertex and the modes'
anchors. The released numbers are coefficients of the mesh's modes, as many as with all vertices.
"""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.glm import best_alone
from benchmarks.glm_data import Array, People, Unkind, make_people
from benchmarks.glm_runs import Trial, judged, least_squares, make_trial, noise_of, run_trial
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.base import SurfacePlaces
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.outcome_correlation import FWHM_PER_SIGMA
from consortium.algorithms.glm.power import forecast_power, why_hopeless
from consortium.space.mesh import read_mesh
from consortium.space.study_space import surface_places
from consortium.views.meshes import MeshFiles

PERSONS, SITES, SMOOTHNESS, STEP = (1460, 4380), 12, (15.0, 20.0), 16
LEVELS = (4.0, 8.0)
DEVIATION = 1.07  # public, within groups and sites, with what covariates explain
_HEIGHT = 0.5  # standard deviations of the difference
_WIDTH = 20.0  # mm
COLUMNS = (
    "participants | tails | FWHM | ε | numbers | worth it | RMSE | forecast | forecast / RMSE | "
    "first round's / RMSE | stated / RMSE | largest site | chance | coverage | false positives"
)
_LOG = 0.8  # standard deviation of a logarithm, for a skewness of 3.7
_PATCHES = 34  # patches of each hemisphere
_SEEN = 0.999  # fraction of a field's variance that is drawn


@lru_cache(maxsize=1)
def places() -> SurfacePlaces:
    """Return the vertices of fsaverage5, from nilearn."""
    return surface_places(read_mesh(MeshFiles("fsaverage5", None, None), Path()))


@lru_cache(maxsize=1)
def some_places(step: int) -> SurfacePlaces:
    """Return every ``step``-th vertex of fsaverage5, and the anchors."""
    whole = places()
    found = []
    where = []
    start = 0
    for side in whole.modes:
        rows = np.union1d(np.arange(0, len(side.vectors), step), side.anchors)
        anchors = np.searchsorted(rows, side.anchors)
        found.append(replace(side, vectors=side.vectors[rows], anchors=anchors))
        where.append(whole.coordinates[start + rows])
        start += len(side.vectors)
    return SurfacePlaces(np.concatenate(where), lambda: tuple(found))


@lru_cache(maxsize=2)
def patches(where: SurfacePlaces) -> tuple[Array, ...]:
    """Return averages of the vertices nearest to each of 34 anchors: 34 x V, by hemisphere."""
    parts = np.split(where.coordinates, [len(where.modes[0].vectors)])
    rows = [
        np.argmin(cdist(part, part[side.anchors[:_PATCHES]]), axis=1)
        == np.arange(_PATCHES)[:, None]
        for side, part in zip(where.modes, parts, strict=True)
    ]
    return tuple(each / each.sum(axis=1, keepdims=True) for each in rows)


@lru_cache(maxsize=4)
def _waves(where: SurfacePlaces, smoothness: float, *, patched: bool) -> tuple[Array, ...]:
    """Return factors of white noise, for each hemisphere; rows of vertices have norm one."""
    found = []
    for side, means in zip(where.modes, patches(where), strict=True):
        weights, _ = side.heat((smoothness / FWHM_PER_SIGMA) ** 2)
        weights = weights[: 1 + int(np.searchsorted(np.cumsum(weights), _SEEN * weights.sum()))]
        waves = side.vectors[:, : len(weights)] * np.sqrt(weights)
        waves /= np.linalg.norm(waves, axis=1, keepdims=True)
        found.append(means @ waves if patched else waves)
    return tuple(found)


def _fields(count: int, generator: np.random.Generator, waves: tuple[Array, ...]) -> Array:
    """Return smooth fields along both cortices, or means of these, V x count."""
    each = (side @ generator.standard_normal((side.shape[1], count)) for side in waves)
    return np.concatenate(list(each))


def difference(where: SurfacePlaces) -> Array:
    """Return the true difference, length V: a hill on the left."""
    away = np.square(where.coordinates - (-45, -20, 45)).sum(axis=1)
    left = np.arange(len(away)) < len(where.modes[0].vectors)
    return np.asarray(_HEIGHT * left * np.exp(-0.5 * away / _WIDTH**2))


@dataclass(frozen=True)
class UnkindMaps:
    """Difficult features of maps; by default only sites' levels and covariates."""

    heavy: bool = False
    """Whether maps have tails of t with five degrees of freedom."""
    variances: float = 1.0
    """Largest variance of a scanner divided by the smallest."""
    ratio: float = 1.0
    """Standard deviation of patients divided by that of the others."""
    off: float = 0.0
    """Distance by which the stated location and mean age are too low, in standard deviations."""
    wide: float = 1.0
    """Stated standard deviation divided by the true one."""
    ages: float = 0.0
    """Standard deviation of sites' mean ages, which correlate with sites' levels."""
    effect: float = 1.0
    """Factor on the difference."""
    skewed: bool = False
    """Whether values are lognormal, of skewness 3.7."""
    part: tuple[float, float] = (0.25, 0.75)
    """Range of patients' fraction of a site."""
    declared: bool = False
    """Whether sites declare their means of columns."""


def people_on_surfaces(
    persons: int,
    generator: np.random.Generator,
    smoothness: float,
    where: SurfacePlaces,
    *,
    unkind: UnkindMaps = UnkindMaps(),
    sites: int = SITES,
    patched: bool = False,
) -> People:
    """Return participants with maps, or patches' means, and otherwise as in `glm_data`."""
    hard = Unkind(parts=unkind.part)
    people = make_people(persons, 1, sites, generator, effect=0.0, unkind=hard)
    waves = _waves(where, smoothness, patched=patched)
    draw = partial(_fields, generator=generator, waves=waves)
    values = draw(persons)
    width = np.log(unkind.variances) / 4
    rows = np.concatenate([np.linalg.norm(side, axis=1) for side in waves])
    if unkind.skewed:
        fields = np.exp(values / rows[:, None] * _LOG)
        values = rows[:, None] * (fields - fields.mean()) / fields.std()
    if unkind.heavy:  # of Student's t with five degrees of freedom, by participant
        values *= np.sqrt(3.0 / generator.chisquare(5, persons))
    scanners = np.exp(generator.uniform(-width, width, sites))
    values *= np.where(people.group, unkind.ratio, 1.0) * scanners[people.site]
    level = unkind.ages * generator.standard_normal(sites)
    values += (0.6 * (draw(sites) + draw(1) * level))[:, people.site]
    covariates = people.covariates + np.outer((1, 0, 0), level[people.site])
    slopes = draw(3) * (0.3, 0.2, 0.15)
    truth = unkind.effect * difference(where)
    if patched:
        halves = np.split(truth, [len(where.modes[0].vectors)])
        truth = np.concatenate([rows @ h for rows, h in zip(patches(where), halves, strict=True)])
    values += slopes @ covariates + np.outer(truth, people.group)
    deviation = DEVIATION * rows
    return replace(
        people,
        outcomes=values,
        covariates=covariates,
        truth=truth,
        slopes=slopes,
        deviation=unkind.wide * deviation,
        location=-unkind.off * deviation,
    )


def trial_on_surfaces(people: People, where: SurfacePlaces, **analysis: object) -> Trial:
    """Create a study whose vertices have places."""
    trial = make_trial(people, basis="smooth", **analysis)
    name = next(name for name, size in trial.shape.views if size == len(people.outcomes))
    surface_places = {name: where}
    for site in trial.sites:
        site.extent = replace(site.extent, surface_places=surface_places)
    return replace(trial, shape=replace(trial.shape, surface_places=surface_places))


def measured(
    runs: int, persons: int, smoothness: float, *, heavy: bool = False
) -> tuple[dict[float, Tally], Tally]:
    """Return statistics of the runs of a study at every ε, and without privacy."""
    tallies = {e: Tally() for e in LEVELS}
    pool = Tally()
    where = some_places(STEP)
    unkind = UnkindMaps(heavy=heavy)
    truth = difference(where)
    for number in range(runs):
        generator = np.random.default_rng((number, persons, 34))
        people = people_on_surfaces(persons, generator, smoothness, where, unkind=unkind)
        trial = trial_on_surfaces(people, where, smoothness=smoothness)
        pooled = least_squares(people.design(), people.outcomes)[0]
        pool.add(
            pooled=float(np.mean((pooled - truth) ** 2)),
            alone=float(np.mean((best_alone(people)[0] - truth) ** 2)),
        )
        for epsilon, tally in tallies.items():
            noise = noise_of(epsilon, SITES)
            plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
            foretold = forecast_power(plan)
            result = run_trial(trial, noise, np.random.default_rng((number, 35)), plan=plan)
            tally.add(
                **judged(result.arrays, truth, truth < 0.01, DEVIATION),
                forecast=(DEVIATION * foretold.error) ** 2,
                updated=(DEVIATION * float(result.numbers["forecast_error"])) ** 2,
                feasible=float(not why_hopeless(plan, foretold)),
                numbers=float(result.numbers["smooth_maps"]),
            )
    return tallies, pool


def main(runs: int = 5, *sizes: int) -> None:
    """Print the table in Markdown, rows as soon as they are known."""
    print(f"{runs} runs a row\n")
    heading(COLUMNS)
    for persons, heavy, smoothness in product(sizes or PERSONS, (False, True), SMOOTHNESS):
        tallies, pool = measured(runs, persons, smoothness, heavy=heavy)
        for epsilon, tally in tallies.items():
            error = tally.root("square")
            line(
                f"{persons:,}",
                "heavy" if heavy else "Gaussian",
                f"{smoothness:g}",
                f"{epsilon:g}",
                f"{tally.mean('numbers'):.0f}",
                f"{100 * tally.mean('feasible'):.0f} %",
                *tally.over(1.0, "square", "forecast"),
                *tally.over(error, "forecast", "updated", "stated", digits=2),
                *pool.over(1.0, "alone", "pooled"),
                *tally.texts("covered", "size"),
            )


if __name__ == "__main__":
    command(main)
