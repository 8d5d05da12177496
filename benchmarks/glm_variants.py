"""``python -m benchmarks.glm_variants [RUNS [PERSONSxOUTCOMESxSITES ε]]``: special cases of `glm`.

Counted groups, sites that drop out, means of outcomes, and maps of smooth images, with the
difficult participants of `glm_data` and releases of the exact noise distribution (one colluding
site, δ = 1e-5), in one process. Errors are in public standard deviations; a forecast is the plan's,
which does not include drop-out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.glm_data import COVARIATES, Array, Cell, People, make_people
from benchmarks.glm_runs import Trial, judged, make_trial, noise_of, run_trial
from benchmarks.timing import Tally, command, heading, line
from consortium.algorithms.base import Result
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.power import forecast_power

CELLS = ((400, 20, 8), (1000, 20, 8), (1000, 68, 8))
EPSILON = 4.0
ALIKE = 0.24  # slope of every outcome on every covariate if all are alike
_EDGE = 24  # voxels at an edge of the square smooth images
_SMOOTH = 2.4  # voxels, standard deviation of the kernel
COLUMNS = (
    "variant | RMSE | coverage | false positives | false discoveries | stated / RMSE | "
    "forecast / RMSE"
)
Variant = Callable[[People, int], tuple[Trial, tuple[frozenset[int], ...]]]
_ALL: tuple[frozenset[int], ...] = ()


def _stated(people: People, sites: int) -> tuple[Trial, tuple[frozenset[int], ...]]:
    del sites
    return make_trial(people), _ALL


def _wrongly(part: float) -> Variant:
    """Return a variant with groups wrong by a fraction of each site's participants."""

    def make(people: People, sites: int) -> tuple[Trial, tuple[frozenset[int], ...]]:
        del sites
        groups = make_trial(people).parameters.groups
        return make_trial(people, groups=wrong_groups(groups, part)), _ALL

    return make


def wrong_groups(groups: Mapping[str, Sequence[float]], part: float) -> dict[str, tuple[int, int]]:
    """Return groups with a fraction of each site's participants moved to the other one.

    The direction alternates by site, and sites' numbers stay correct.
    """
    wrong = {}
    for number, (site, (first, second)) in enumerate(groups.items()):
        many = round(first + second)
        moved = round(part * many) * (-1) ** number
        other = min(max(round(second) + moved, 1), many - 1)
        wrong[site] = (many - other, other)
    return wrong


def _halves(people: People, sites: int) -> tuple[Trial, tuple[frozenset[int], ...]]:
    del sites
    return make_trial(people, shares=0.5, groups={}), _ALL


def _lost(people: People, sites: int) -> tuple[Trial, tuple[frozenset[int], ...]]:
    """Return a study in which one site answers only the round of counts."""
    gone = frozenset({sites // 2})
    return make_trial(people), (frozenset(), gone, gone)


def _lost_later(people: People, sites: int) -> tuple[Trial, tuple[frozenset[int], ...]]:
    """Return a study in which one site does not answer the outcomes' round."""
    return make_trial(people), (frozenset(), frozenset(), frozenset({sites // 2}))


def _lost_at_first(people: People, sites: int) -> tuple[Trial, tuple[frozenset[int], ...]]:
    """Return a study in which one site misses the covariates' round."""
    return make_trial(people), (frozenset(), frozenset({sites // 2}), frozenset())


VARIANTS: dict[str, Variant] = {
    "groups stated rightly": _stated,
    "groups stated wrongly, by a twentieth": _wrongly(0.05),
    "groups stated wrongly, by a tenth": _wrongly(0.1),
    "a half of every site expected": _halves,
    "a site lost after the counts": _lost,
    "a site lost after the look": _lost_later,
    "a site that missed the look": _lost_at_first,
}


def noted(tally: Tally, result: Result, truth: Array, prefix: str = "") -> None:
    """Compare a run's effects, or those on means of outcomes, with the truth, in the tally."""
    found = {name: result.arrays[f"{prefix}{name}"] for name in ("effect", "error", "p", "q")}
    limits = {name: result.arrays[f"{prefix}{name}"] for name in ("low", "high")}
    null = truth == 0
    told = found["q"] <= 0.05
    tally.add(
        **judged(found | limits, truth, null),
        falsely=float((told & null).sum() / max(1, told.sum())),
    )


def row_of(name: str, tally: Tally) -> list[str]:
    """Return the cells of a row, with dashes for tests if every outcome has an effect."""
    error = tally.root("square")
    sizes = tally.texts("size", "falsely")
    sizes = sizes if np.isfinite(tally.found["size"]).any() else ["–", "–"]
    rest = tally.over(error, "stated", "forecast")
    return [name, f"{error:.3f}", *tally.texts("covered"), *sizes, *rest]


def _variant(cell: Cell, runs: int, epsilon: float, make: Variant) -> Tally:
    tally = Tally()
    noise = noise_of(epsilon, cell[2])
    for number in range(runs):
        generator = np.random.default_rng((number, 11, *cell))
        people = make_people(*cell, generator)
        trial, missing = make(people, cell[2])
        result = run_trial(trial, noise, generator, missing)
        plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
        noted(tally, result, people.truth / people.deviation)
        tally.add(forecast=forecast_power(plan).error ** 2)
    return tally


def _alike(people: People, offset: float, generator: np.random.Generator) -> People:
    """Return participants with equal effects of covariates, and of sites, on all outcomes."""
    slopes = generator.choice([-1.0, 1.0], len(COVARIATES)) * ALIKE
    offsets = offset * generator.standard_normal(int(people.site.max()) + 1)
    same = slopes @ people.covariates + offsets[people.site]
    own = people.outcomes - people.slopes @ people.covariates
    slopes = np.tile(slopes, (len(own), 1))
    # The common part is added to the sites' own offsets.
    return replace(people, outcomes=own + same, slopes=slopes)


def _means(cell: Cell, runs: int, epsilon: float, size: int, alike: float | None = None) -> Tally:
    """Return statistics of means of neighbouring outcomes, whose effects are those of single ones.

    ``alike`` is the standard deviation of sites' offsets if they and covariates act equally on all.
    """
    tally = Tally()
    noise = noise_of(epsilon, cell[2])
    entries = cell[1]
    parts = np.array_split(np.arange(entries), max(entries // size, 1))
    names = {f"g{n}": [f"brain{v + 1}" for v in part] for n, part in enumerate(parts)}
    for number in range(runs):
        generator = np.random.default_rng((number, 12, *cell))
        people = make_people(*cell, generator)
        people = people if alike is None else _alike(people, alike, generator)
        result = run_trial(make_trial(people, averages=names), noise, generator)
        truth = people.truth / people.deviation
        each = np.array([truth[part].mean() for part in parts])
        noted(tally, result, each, "average_")
    return tally


def _smooth(values: Array) -> Array:
    """Return smoothed images (_EDGE² x N)."""
    square = values.reshape(_EDGE, _EDGE, -1)
    smoothed = gaussian_filter(square, (_SMOOTH, _SMOOTH, 0), mode="wrap")
    return np.asarray(smoothed.reshape(_EDGE**2, -1))


def _coarse(values: Array, block: int) -> Array:
    """Return means of images over squares of ``block`` by ``block`` voxels."""
    edge = _EDGE // block
    parts = values.reshape(edge, block, edge, block, -1)
    return np.asarray(parts.mean(axis=(1, 3)).reshape(edge**2, -1))


def _maps(cell: Cell, runs: int, epsilon: float, block: int) -> Tally:
    """Return statistics of smooth images with an effect in a corner of a fifth of them.

    The effect is half a standard deviation. ``block`` voxels of an edge become one; effects are in
    standard deviations of the resulting voxels.
    """
    persons, _, sites = cell
    tally = Tally()
    noise = noise_of(epsilon, sites)
    entries = (_EDGE // block) ** 2
    place = np.zeros((_EDGE, _EDGE))
    place[: _EDGE // 2, : _EDGE // 2 - 2] = 0.5
    for number in range(runs):
        generator = np.random.default_rng((number, 13, *cell))
        people = make_people(persons, entries, sites, generator, effect=0.0)
        own = _smooth(generator.standard_normal((_EDGE**2, persons)))
        whole = own.std()
        own = _coarse(own, block)
        scale = own.std()
        offsets = _smooth(generator.standard_normal((_EDGE**2, sites)))
        outcomes = own / scale + 0.6 * _coarse(offsets, block)[:, people.site] / scale
        truth = _coarse(place.reshape(-1, 1), block)[:, 0] * whole / scale
        outcomes += people.slopes @ people.covariates + np.outer(truth, people.group)
        people = replace(people, outcomes=outcomes, truth=truth)
        result = run_trial(make_trial(people), noise, generator)
        noted(tally, result, people.truth / people.deviation)
        told = result.arrays["q"] <= 0.05
        full = np.isclose(truth, 0.5 * whole / scale)
        tally.add(power=float(told[full].mean()))
    return tally


def main(runs: int = 10, asked: Cell | None = None, epsilon: float = EPSILON) -> None:
    """Print a table in Markdown for every cell, a row as soon as it is known."""
    cells = (asked,) if asked else CELLS
    for cell in cells:
        persons, entries, sites = cell
        print(
            f"\n{persons:,} participants x {entries} outcomes, {sites} sites, ε = {epsilon:g}, "
            f"{runs} runs\n"
        )
        heading(COLUMNS)
        for name, make in VARIANTS.items():
            line(*row_of(name, _variant(cell, runs, epsilon, make)))
        means = [(size, alike) for size in (5, 10) for alike in (None, 0.6)]
        for size, alike in (*means, (entries, 1.2)):
            name = f"means of {size} outcomes"
            name += "" if alike is None else f", all alike, offsets of {alike:g}"
            line(*row_of(name, _means(cell, runs, epsilon, size, alike)))
    for block in (4, 2, 1):
        tally = _maps(cells[-1], runs, epsilon, block)
        name = f"{(_EDGE // block) ** 2} voxels of smooth maps, power {tally.mean('power'):.2f}"
        line(*row_of(name, tally))


if __name__ == "__main__":
    command(main)
