"""``python -m benchmarks.glm_smooth [RUNS [CUTOFF]]``: `glm` on smooth images, in voxels and waves.

A thousand participants at eight sites have images of 10 x 10 x 10 voxels of 8 mm, smoothed with a
kernel of 1.2 voxels (standard deviation; 22.6 mm FWHM). Effects of scanners and covariates are also
smooth. The difference has a peak of half a standard deviation and a width of 1.7 voxels (standard
deviation), as a difference of a few voxels has after smoothing. Releases have noise of the exact
distribution (one colluding site, δ = 1e-5); errors are in standard deviations within groups and
sites. ``CUTOFF`` is relative to the smoothness (default: chosen by the plan). It uses one process.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.glm_data import Array, People, make_people
from benchmarks.glm_runs import Trial, judged, least_squares, make_trial, noise_of, run_trial
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.base import Places
from consortium.algorithms.glm.kernels.outcome_correlation import FWHM_PER_SIGMA

PERSONS, SITES, EDGE, VOXEL, WIDTH = 1000, 8, 10, 8.0, 1.2
SMOOTHNESS = WIDTH * VOXEL * FWHM_PER_SIGMA
LEVELS = (2.0, 4.0, 8.0)
PLACES = Places(VOXEL * np.argwhere(np.ones((EDGE, EDGE, EDGE))), VOXEL**3)
_MARGIN = 5  # voxels that are smoothed with the others and then removed
_DEVIATION = 1.07  # public, within groups and sites, with what covariates explain
COLUMNS = (
    "ε | released | numbers | cutoff over FWHM | RMSE | coverage | false positives | "
    "stated / RMSE | forecast / RMSE | peak over pooled | found"
)


def difference() -> Array:
    """Return the true difference, length V."""
    away = np.square(PLACES.coordinates / VOXEL - (3, 3, 4)).sum(axis=1)
    return np.asarray(0.5 * np.exp(-0.5 * away / 1.7**2))


def smooth_fields(count: int, generator: np.random.Generator, width: float = WIDTH) -> Array:
    """Return smooth Gaussian fields of variance one, V x count."""
    side = EDGE + 2 * _MARGIN
    values = gaussian_filter(
        generator.standard_normal((count, side, side, side)), (0, width, width, width)
    )
    inside = slice(_MARGIN, -_MARGIN)
    found = values[:, inside, inside, inside].reshape(count, -1).T
    return np.asarray(found / found.std())


def people_of_images(generator: np.random.Generator, width: float = WIDTH) -> People:
    """Return participants with images; group and covariates are those of `glm_data`."""
    people = make_people(PERSONS, EDGE**3, SITES, generator, effect=0.0)
    truth = difference()
    values = smooth_fields(PERSONS, generator, width)
    values += 0.6 * smooth_fields(SITES, generator, width)[:, people.site]
    slopes = smooth_fields(3, generator, width) * (0.3, 0.2, 0.15)
    values += slopes @ people.covariates + np.outer(truth, people.group)
    count = len(truth)
    return replace(
        people,
        outcomes=values,
        truth=truth,
        slopes=slopes,
        deviation=np.full(count, _DEVIATION),
        location=np.zeros(count),
    )


def trial_of_images(people: People, **analysis: object) -> Trial:
    """Create a study whose voxels have places."""
    trial = make_trial(people, **analysis)
    for site in trial.sites:
        site.extent = replace(site.extent, image_places=PLACES)
    return replace(trial, shape=replace(trial.shape, image_places=PLACES))


@lru_cache(maxsize=8)  # smoothing the images takes as long as analysing them
def _people(number: int, width: float) -> People:
    return people_of_images(np.random.default_rng((number, 16)), width)


def measured(
    runs: int, analysis: dict[str, object], width: float = WIDTH
) -> tuple[dict[float, Tally], Tally]:
    """Return statistics of the runs of a study at every ε, and of pooled data."""
    tallies = {e: Tally() for e in LEVELS}
    pool = Tally()
    truth = difference()
    top = int(np.argmax(truth))
    for number in range(runs):
        people = _people(number, width)
        trial = trial_of_images(people, **analysis)
        pooled = least_squares(people.design(), people.outcomes)[0]
        pool.add(square=float(np.mean((pooled - truth) ** 2)), peak=float(pooled[top]))
        for epsilon, tally in tallies.items():
            noise = noise_of(epsilon, SITES)
            result = run_trial(trial, noise, np.random.default_rng((number, 17)))
            null = truth < 0.01
            large = truth > 0.25
            tally.add(
                **judged(result.arrays, truth, null, _DEVIATION),
                forecast=(_DEVIATION * float(result.numbers["forecast_error"])) ** 2,
                peak=_DEVIATION * float(result.arrays["effect"][top]),
                power=float(np.mean(result.arrays["q"][large] <= 0.05)),
                numbers=float(result.numbers.get("smooth_maps", len(truth))),
                cutoff=2 * float(result.numbers.get("finest_detail_mm", 0.0)) / SMOOTHNESS,
            )
    return tallies, pool


def _row(epsilon: float, name: str, tally: Tally, pool: Tally) -> list[str]:
    error = tally.root("square")
    cutoff = tally.mean("cutoff")
    return [
        f"{epsilon:g}",
        name,
        f"{tally.mean('numbers'):.0f}",
        f"{cutoff:.2f}" if cutoff else "–",
        f"{error:.3f}",
        *tally.texts("covered", "size"),
        *tally.over(error, "stated", "forecast"),
        f"{tally.mean('peak') / pool.mean('peak'):.2f}",
        *tally.texts("power", digits=2),
    ]


def main(runs: int = 10, cutoff: float | None = None) -> None:
    """Print the table in Markdown, the rows of a study as soon as they are known."""
    smooth: dict[str, object] = {"basis": "smooth", "smoothness": SMOOTHNESS}
    if cutoff is not None:
        smooth["cutoff"] = cutoff * SMOOTHNESS
    rougher = {**smooth, "smoothness": 0.75 * SMOOTHNESS}
    studies: dict[str, dict[str, object]] = {
        "voxels": {},
        "waves": smooth,
        "waves, smoothness stated 25 % too small": rougher,
    }
    print(f"{runs} runs a row\n")
    heading(COLUMNS)
    for name, analysis in studies.items():
        tallies, pool = measured(runs, analysis)
        for epsilon, tally in tallies.items():
            line(*_row(epsilon, name, tally, pool))
    print(f"\nPooled: RMSE {pool.root('square'):.3f}, peak {pool.mean('peak'):.3f}")


if __name__ == "__main__":
    command(main)
