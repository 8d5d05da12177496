"""``python -m benchmarks.glm_surface_stress [RUNS [SITES ...]]``: difficult maps with t and F.

1,460 participants at 6, 12 or 33 sites with maps of 20 mm FWHM as in `glm_surface`, ε = 8. *t* is
the difference in every vertex, in a smooth basis. *F* is a factor of three levels, patients and two
kinds of others, in the means of 68 patches, from a release of all coefficients. *Size* is the
frequency of p below 0.05 without a difference, withheld or not. Noise has the exact distribution.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.glm_data import COVARIATES, Array, People
from benchmarks.glm_runs import AGE_SCALE, Trial, judged, noise_of, run_trial, trial_of
from benchmarks.glm_surface import (
    STEP,
    UnkindMaps,
    people_on_surfaces,
    some_places,
    trial_on_surfaces,
)
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.glm.tables import COEFFICIENTS, ERRORS
from consortium.coordinator.contrast import compare_coefficients, joint
from consortium.report.coefficients import released_coefficients

PERSONS, SITES, SMOOTHNESS, EPSILON = 1460, (6, 12, 33), 20.0, 8.0
_MORE = 15  # runs of F for each run of t, which has three hundred times as many numbers
_ALL = UnkindMaps(heavy=True, variances=4.0, ratio=1.5, off=0.5, wide=2.0, ages=1.0)
CELLS = {
    "nothing hard": UnkindMaps(),
    "no difference": UnkindMaps(effect=0.0),
    "heavy tails": UnkindMaps(heavy=True),
    "variances of scanners up to 4 times as large": UnkindMaps(variances=4.0),
    "ratio 1.5": UnkindMaps(ratio=1.5),
    "half off, ratio 1.5": UnkindMaps(off=0.5, ratio=1.5),
    "two off, ratio 1.5": UnkindMaps(off=2.0, ratio=1.5),
    "deviation x 1/2, ratio 1.5": UnkindMaps(wide=0.5, ratio=1.5),
    "deviation x 2, ratio 1.5": UnkindMaps(wide=2.0, ratio=1.5),
    "sites of other ages": UnkindMaps(ages=1.0),
    "rare 15 %, ratio 2": UnkindMaps(ratio=2.0, part=(0.1, 0.2)),
    "skewed, ratio 1.5": UnkindMaps(ratio=1.5, skewed=True),
    "skewed, rare 15 %, ratio 2": UnkindMaps(ratio=2.0, part=(0.1, 0.2), skewed=True),
    "all of them": _ALL,
    "nothing hard, means declared": UnkindMaps(declared=True),
    "sites of other ages, means declared": UnkindMaps(ages=1.0, declared=True),
    "all together, means declared": replace(_ALL, declared=True),
}
COLUMNS = "cell | sites | t | coverage | withheld | stated / RMSE | F | F found | coverage"


def _stated(people: People, unkind: UnkindMaps) -> dict[str, Any]:
    """Return public mean and deviation of every column, and sites' means if they are declared."""
    usual = ((-unkind.off, unkind.wide, AGE_SCALE), (0.0, 1.0, AGE_SCALE), (0.0, 1.0, 1.0))
    names = [f"{name}1" for name in COVARIATES]
    covariates = {}
    means = {}
    for name, row, (mean, deviation, scale) in zip(names, people.covariates, usual, strict=True):
        covariates[name] = {"mean": mean / scale, "deviation": deviation / scale}
        means[name] = _means(people, row / scale)
    return {"covariates": covariates, "site_means": means if unkind.declared else {}}


def _means(people: People, values: Array) -> dict[str, float]:
    return {f"s{k}": float(values[people.site == k].mean()) for k in np.unique(people.site)}


def trial_of_levels(people: People, unkind: UnkindMaps, generator: np.random.Generator) -> Trial:
    """Return a study of all coefficients, with two kinds of others besides patients."""
    second = np.where(~people.group & (generator.random(len(people.group)) < 0.5), 1.0, -1.0)
    columns = people.covariates[:2] / AGE_SCALE, people.covariates[2:], second
    stated = _stated(people, unkind)
    stated["covariates"]["second1"] = {"mean": second.mean(), "deviation": second.std()}
    if unkind.declared:
        stated["site_means"]["second1"] = _means(people, second)
    norms = {name: tuple(getattr(people, name).tolist()) for name in ("location", "deviation")}
    return trial_of(
        people.outcomes,
        people.group,
        np.vstack(columns),
        people.site,
        names=(*COVARIATES, "second"),
        contrasts="all",
        anyway=True,
        norms=norms,
        **stated,
    )


def _people(
    generator: np.random.Generator, unkind: UnkindMaps, sites: int, *, patched: bool = False
) -> People:
    return people_on_surfaces(
        PERSONS,
        generator,
        SMOOTHNESS,
        some_places(STEP),
        unkind=unkind,
        sites=sites,
        patched=patched,
    )


def by_t(unkind: UnkindMaps, sites: int, number: int) -> dict[str, float]:
    """Return the statistics of a run in vertices."""
    generator = np.random.default_rng((number, sites, 68))
    people = _people(generator, unkind, sites)
    trial = trial_on_surfaces(
        people, some_places(STEP), smoothness=SMOOTHNESS, **_stated(people, unkind)
    )
    found = run_trial(trial, noise_of(EPSILON, sites), generator).arrays
    each = judged(found, people.truth, np.abs(people.truth) < 0.01, people.deviation)
    return {**each, "t": each["size"], "withheld": float(found["withheld"].mean())}


def by_f(unkind: UnkindMaps, sites: int, number: int) -> dict[str, float]:
    """Return the statistics of a run in patches."""
    generator = np.random.default_rng((number, sites, 69))
    people = _people(generator, unkind, sites, patched=True)
    trial = trial_of_levels(people, unkind, generator)
    tables = run_trial(trial, noise_of(EPSILON, sites), generator).tables
    lines = (
        [dict(zip(tables[name].columns, row, strict=True)) for row in tables[name].rows]
        for name in (COEFFICIENTS, ERRORS)
    )
    released = released_coefficients(*lines)
    p = np.array([row[5] for row in joint(released, ["dx1", "second1"]).rows])
    each = np.array([row[2:] for row in compare_coefficients(released, "dx1").rows])
    low, high = people.deviation * each[:, 5:].T
    truth = people.truth
    large = people.truth > 0.25
    return {
        "F": float(np.mean(p[np.abs(truth) < 0.01] < 0.05)),
        "power": float(np.mean(p[large] < 0.05)) if large.any() else 0.0,
        "covered": float(np.mean((low <= truth) & (truth <= high))),
    }


def main(runs: int = 4, *counts: int) -> None:
    """Print the table in Markdown, a row as soon as it is known."""
    print(f"{runs} runs of t a row\n")
    heading(COLUMNS)
    for sites, (name, unkind) in product(counts or SITES, CELLS.items()):
        t = Tally()
        f = Tally()
        for number in range(_MORE * runs):
            f.add(**by_f(unkind, sites, number))
        for number in range(runs):
            t.add(**by_t(unkind, sites, number))
        sizes = t.texts("t", "covered", "withheld")
        ratio = t.over(t.root("square"), "stated", digits=2)
        line(name, f"{sites}", *sizes, *ratio, *f.texts("F", "power", "covered"))


if __name__ == "__main__":
    command(main)
