"""Runs of `glm` with releases of the exact noise distribution, and reference methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from benchmarks.glm_data import COVARIATES, Array, People
from benchmarks.studies import result_of
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release, Result, Shape
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.kernels.contrast_regression import false_discovery
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.open_cohort import OpenTable
from consortium.engine.unit_counts import UnitCounts
from consortium.privacy.gdp import mu_of
from consortium.privacy.lattice import Lattice
from consortium.simulation.array_data import ArrayData

GLM = REGISTRY["glm"]
AGE_SCALE = 8.0  # divisor of the simulated covariates, for values within -1 and 1
_LIMIT = 3.0  # standard deviations that become 1 for `regression`


@dataclass(frozen=True, eq=False)
class Trial:
    """Consortium with the data that `glm` uses."""

    parameters: GlmParameters
    sites: tuple[ArrayData, ...]
    shape: Shape


def make_trial(people: People, **analysis: object) -> Trial:
    """Create a study with outcomes, group and covariates of simulated participants."""
    covariates = np.vstack([people.covariates[:2] / AGE_SCALE, people.covariates[2:]])
    norms = {
        "location": tuple(people.location.tolist()),
        "deviation": tuple(people.deviation.tolist()),
    }
    scales = dict(zip(COVARIATES, (1 / AGE_SCALE, 1 / AGE_SCALE, 1), strict=True))
    usual = {f"{name}1": {"mean": 0, "deviation": scale} for name, scale in scales.items()}
    given: dict[str, Any] = {"norms": norms, "covariates": usual, "anyway": True, **analysis}
    columns = people.outcomes, people.group, covariates, people.site
    return trial_of(*columns, names=COVARIATES, **given)


def make_open_trial(people: People, cohort: People, **analysis: object) -> Trial:
    """Create the study of `make_trial` with the table of an open cohort in place of norms."""
    trial = make_trial(people, **analysis)
    given = trial.parameters.model_dump(exclude={"norms", "explained"}, exclude_unset=True)
    parameters = GlmParameters.model_validate(given | {"open": "cohort.tsv"})
    return replace(
        trial,
        parameters=parameters,
        shape=replace(trial.shape, open_cohort=open_table_of(cohort)),
    )


def open_table_of(people: People) -> OpenTable:
    """Return simulated participants as an open cohort's table, in the units of `make_trial`."""
    columns = {f"brain{n}": row for n, row in enumerate(people.outcomes, 1)}
    columns |= {"dx1": np.where(people.group, 1.0, -1.0)}
    scales = AGE_SCALE, AGE_SCALE, 1.0
    for name, values, scale in zip(COVARIATES, people.covariates, scales, strict=True):
        columns[f"{name}1"] = values / scale
    cells = [[f"s{n}" for n in people.site], *(map(repr, row.tolist()) for row in columns.values())]
    return OpenTable(("site", *columns), tuple(zip(*cells, strict=True)), "0" * 64)


def trial_of(
    outcomes: Array,
    group: NDArray[np.bool_],
    columns: Array,
    site: NDArray[np.int64],
    *,
    names: Sequence[str] = (),
    **analysis: Any,
) -> Trial:
    """Create a study with any participants, who are sorted by site."""
    names = names or tuple(f"z{n}" for n in range(len(columns)))
    views = (("brain", len(outcomes)), ("dx", 1), *((name, 1) for name in names))
    table = np.vstack([outcomes, np.where(group, 1.0, -1.0), columns])
    parts = np.split(np.arange(len(site)), np.flatnonzero(np.diff(site)) + 1)
    values: dict[str, Any] = {
        "outcomes": "brain",
        "formula": " + ".join(["dx1", *(f"{name}1" for name in names)]),
        "contrasts": {"patients": "dx1"},
        "groups": {
            f"s{n}": [int((~group[part]).sum()), int(group[part].sum())]
            for n, part in enumerate(parts)
        },
        **analysis,
    }
    sizes = tuple(len(part) for part in parts)
    shape = Shape(
        features=len(table),
        subjects=sizes,
        samples=sizes,
        unit="subject",
        voxels=0,
        views=views,
        sites=tuple(values["groups"]),
    )
    sites = tuple(TableData(table[:, part], views) for part in parts)
    return Trial(GlmParameters.model_validate(values), sites, shape)


class TableData(ArrayData):
    """Site with a table in memory, without a block for each participant."""

    def __init__(self, table: Array, views: tuple[tuple[str, int], ...]) -> None:
        super().__init__([table[:, :1]], views=views)
        self._whole = table
        self.lengths = [1] * table.shape[1]

    def table(self) -> Array:
        """Return all participants side by side."""
        return self._whole


def noise_of(epsilon: float, sites: int, *, colluding: int = 1, delta: float = 1e-5) -> float:
    """Return noise over sensitivity of a release with the whole budget, against the coalition."""
    return 1 / (mu_of(epsilon, delta) * np.sqrt((sites - colluding) / sites))


def run_trial(
    trial: Trial,
    noise: float,
    generator: np.random.Generator,
    missing: Sequence[frozenset[int]] = (),
    plan: Glm | None = None,
    lattices: Mapping[str, Lattice] | None = None,
) -> Result:
    """Run the analysis; every release has Gaussian noise of the planned distribution.

    The trial's shape has the nominal numbers of participants, and its sites have the true ones,
    which each release counts with noise. ``missing`` contains the sites that do not answer, for
    every round; the noise stays the same. ``plan`` is that of the study with this noise, if it
    exists already. With ``lattices``, by stage, sites round as a private round does; without, they
    do not round.
    """
    shape = replace(trial.shape, noise=noise)
    plan = plan or Glm(trial.parameters, shape)
    planned = {release.stage: release for release in plan.releases}
    sizes = np.array([site.units for site in trial.sites], dtype=np.float64)
    nominal = np.array(shape.subjects, dtype=np.float64)
    counts = UnitCounts(shape.subjects)
    turns = chain(missing, repeat(frozenset[int]()))

    def answer(query: Query) -> Release:
        stage = planned[query.stage]
        gone = next(turns)
        asked = query
        local = plan.statistics[query.statistic]
        answering = [n for n in range(len(sizes)) if n not in gone]
        means = [
            local(plan, trial.sites[n], replace(asked, site=n), stage.bound) for n in answering
        ]
        if lattices:
            step = lattices[query.stage].step
            shares = sizes[answering, None] / nominal[answering].sum()
            total = step * np.rint(shares * means / step).sum(axis=0)
        else:
            total = sizes[answering] @ np.stack(means) / nominal[answering].sum()
        deviation = stage.bound.spread / nominal[answering].sum() * noise / np.sqrt(stage.share)
        total = total + deviation * generator.standard_normal(len(total))
        unsure = deviation * nominal[answering].sum() / stage.count_weight
        counts.add(
            answering, sizes[answering] + unsure * generator.standard_normal(len(answering)), unsure
        )
        found = counts.estimate
        part = found[answering].sum() / nominal[answering].sum()
        units = tuple(found.tolist())
        return Release(total / part, deviation / part, tuple(answering), units, counts.deviation)

    return result_of(plan, answer)


def by_regression(
    people: People, tried: NDArray[np.int64], noise: float, generator: np.random.Generator
) -> Array:
    """Return effects estimated by `regression`, for each outcome, with columns for the sites.

    ``noise`` is relative to the sensitivity of a release with an outcome's share of the budget.
    """
    algorithm = REGISTRY["regression"]
    found = []
    design = people.design()
    design[0] = 2 * design[0] - 1
    design[1:3] = np.clip(design[1:3] / _LIMIT, -1, 1)
    design = design[:-1]  # the last site is the reference of the constant
    views = (("x", len(design)), ("y", 1))
    parameters = algorithm.Parameters.model_validate(
        {"target": "y", "bound": float(np.sqrt(len(COVARIATES) + 2))}
    )
    for place in tried:
        unit = _LIMIT * people.deviation[place]
        target = np.clip((people.outcomes[place] - people.location[place]) / unit, -1, 1)
        site = TableData(np.vstack([design, target]), views)
        sizes = (len(target),)
        shape = Shape(
            features=len(design) + 1,
            subjects=sizes,
            samples=sizes,
            unit="subject",
            voxels=0,
            views=views,
        )
        plan = algorithm(parameters, shape)
        stage, *_ = plan.planned()
        run = plan.run()
        query = next(run)
        mean = plan.statistics[query.statistic](plan, site, query, stage.bound)
        deviation = stage.bound.sensitivity(len(target)) * noise
        mean = mean + deviation * generator.standard_normal(len(mean))
        try:
            run.send(Release(mean, deviation, (0,)))
        except StopIteration as stop:
            result: Result = stop.value
            found.append(2 * unit * result.arrays["coefficients"][0, 0])
    return np.array(found)


def least_squares(design: Array, outcomes: Array) -> tuple[Array, Array, Array]:
    """Return the effect of the first column on every outcome, its standard error and p."""
    inverse = np.linalg.pinv(design @ design.T)
    slopes = inverse @ design @ outcomes.T
    residual = outcomes.T - design.T @ slopes
    freedom = design.shape[1] - np.linalg.matrix_rank(design)
    errors = np.sqrt(inverse[0, 0] * np.square(residual).sum(axis=0) / freedom)
    return slopes[0], errors, 2 * student.sf(np.abs(slopes[0] / errors), freedom)


def judged(
    found: Mapping[str, Array], truth: Array, null: NDArray[np.bool_], unit: float | Array = 1.0
) -> dict[str, float]:
    """Return squared errors, true and stated, coverage, and the frequency of p < 0.05 at no effect.

    ``unit`` is a factor on reported numbers. ``size`` is NaN if all outcomes have an effect.
    Withheld outcomes, whose numbers are missing, are excluded; all results are NaN if all are
    withheld.
    """
    effect, error, low, high = (unit * found[name] for name in ("effect", "error", "low", "high"))
    shown = np.isfinite(effect)
    null = null & np.isfinite(effect)
    return {
        "square": mean_of(np.square(effect - truth), shown),
        "stated": mean_of(np.square(error), shown),
        "covered": mean_of((low <= truth) & (truth <= high), shown),
        "size": mean_of(found["p"] < 0.05, null),
    }


def mean_of(values: NDArray[Any], chosen: NDArray[np.bool_]) -> float:
    """Return the mean of the chosen values; NaN if none is chosen."""
    return float(np.mean(values[chosen])) if chosen.any() else np.nan


def found_by(p: Array, rate: float = 0.05) -> NDArray[np.bool_]:
    """Return discoveries at a false discovery rate."""
    return np.asarray(false_discovery(p) <= rate)
