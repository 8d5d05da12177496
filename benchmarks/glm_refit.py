"""``python -m benchmarks.glm_refit [RUNS [FOLDER]]``: several models from one release of `glm`.

1,000 simulated participants at eight sites with 68 outcomes; a privacy loss of ε = 4 in all. The
release has six columns: group, age, their product, the square of age, head size and sex. The
models are group with any part of the others. The same models are also fitted by `glm` as 16
studies, each with a sixteenth of the budget (of μ²). Errors are stated ones over those of pooled
least squares of the same model. Coverage is that of 95 % intervals, of the effect that least
squares of the model find in the outcomes without residuals. With a FOLDER of `benchmarks.real`,
the effect of autism is computed with and without age and sex from one release.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.glm_data import Array, People, Unkind, make_people
from benchmarks.glm_runs import AGE_SCALE, least_squares, make_trial, noise_of, run_trial
from benchmarks.real import USUAL_AGE, read, trial_of_real
from benchmarks.timing import command, in_processes, show
from consortium.algorithms.base import Result
from consortium.coordinator.refit import Refit, fit_again
from consortium.report.coefficients import ReleasedCoefficients, released_coefficients
from consortium.report.tables import plain_table

PERSONS, OUTCOMES, SITES, EPSILON = 1000, 68, 8, 4.0
WHOLE = "dx1 * age1 + I(age1**2) + icv1 + sex1"
AGES = ("", "age1", "dx1:age1", "I(age1**2)")
"""Steps by which age joins a model."""
MODELS = tuple(
    (AGES[1 : 1 + steps], icv, sex)
    for steps, icv, sex in product(range(4), (False, True), (False, True))
)


def formula_of(model: tuple[tuple[str, ...], bool, bool]) -> str:
    """Return a model's formula."""
    ages, icv, sex = model
    return " + ".join(["dx1", *ages, *(["icv1"] if icv else []), *(["sex1"] if sex else [])])


def design_of(people: People, formula: str) -> Array:
    """Return the columns of a model and of the sites, as the study counts them."""
    group = people.group.astype(np.float64)
    age, icv, sex = people.covariates
    sign = 2 * group - 1
    columns = {
        "dx1": group,
        "age1": age,
        "dx1:age1": sign * age,
        "I(age1**2)": age**2,
        "icv1": icv,
        "sex1": sex,
    }
    site = np.unique(people.site)[:, None] == people.site
    return np.vstack([*(columns[name] for name in formula.split(" + ")), site])


def released_of(result: Result) -> ReleasedCoefficients:
    """Return the coefficients of a result as a run's folder has them."""
    tables = (plain_table(result.tables[name]) for name in ("coefficients", "coefficients-errors"))
    single, errors = (
        [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in tables
    )
    return released_coefficients(single, errors)


def one_run(number: int) -> dict[str, dict[str, float]]:
    """Return stated errors over pooled ones, and coverage, of each model."""
    generator = np.random.default_rng((number, 56))
    people = make_people(PERSONS, OUTCOMES, SITES, generator, unkind=Unkind(norms=0.05))
    trial = make_trial(people, formula=WHOLE, contrasts="all")
    noise = noise_of(EPSILON, SITES)
    released = released_of(run_trial(trial, noise, generator))
    chosen = [int(entry.removeprefix("brain")) - 1 for _, entry in released.labels]
    expected = np.outer(people.truth, people.group) + people.slopes @ people.covariates
    unit = people.deviation
    found = dict[str, dict[str, float]]()
    for model in MODELS:
        formula = formula_of(model)
        design = design_of(people, formula)
        pooled = least_squares(design, people.outcomes)[1] / unit
        truth = least_squares(design, expected)[0] / unit
        again = fit_again(released, Refit(formula=formula)).estimates[0]
        alone = run_trial(
            make_trial(people, formula=formula, covariates=_norms(formula)),
            noise * np.sqrt(len(MODELS)),
            generator,
        )
        half = 1.96 * again.widths
        inside = np.abs(again.effects - truth[chosen]) <= half
        found[formula] = {
            "refit": _ratio(again.errors, pooled[chosen]),
            "study": _ratio(alone.arrays["error"], pooled),
            "coverage": float(inside.mean()),
        }
    return found


def _norms(formula: str) -> dict[str, dict[str, float]]:
    scales = {"age1": 1 / AGE_SCALE, "icv1": 1 / AGE_SCALE, "sex1": 1.0}
    named = set(formula.split(" + "))
    return {n: {"mean": 0.0, "deviation": d} for n, d in scales.items() if n in named}


def _ratio(errors: Array, pooled: Array) -> float:
    """Return the ratio over outcomes that are reported; NaN if none is."""
    told = np.isfinite(errors)
    if not told.any():
        return float("nan")
    return float(np.sqrt(np.mean(np.square(errors[told])) / np.mean(np.square(pooled[told]))))


REAL_EPSILONS = (4.0, 8.0)
REAL = ("diagnosis + age + sex", "diagnosis + sex", "diagnosis + age", "diagnosis")


def real(folder: Path, runs: int) -> None:
    """Print effects of autism with and without age, in the participants of `benchmarks.real`."""
    people = read(folder)
    trial = trial_of_real(people, "autism", norms=True)
    asked = trial.parameters.model_copy(update={"contrasts": "all"})
    columns = {
        "diagnosis": people.autism,
        "age": (people.age - USUAL_AGE["mean"]) / USUAL_AGE["deviation"],
        "sex": people.sex,
    }
    site = np.unique(people.site)[:, None] == people.site
    rows = []
    for epsilon in REAL_EPSILONS:
        noise = noise_of(epsilon, len(trial.shape.subjects))
        results = [
            run_trial(replace(trial, parameters=asked), noise, np.random.default_rng((n, 57)))
            for n in range(runs)
        ]
        for formula in REAL:
            design = np.vstack([*(columns[name] for name in formula.split(" + ")), site])
            pooled = least_squares(design.astype(np.float64), people.outcomes)
            each = [_against(result, formula, pooled, people.names) for result in results]
            means = np.mean(each, axis=0)
            rows.append([f"{epsilon:g}", formula, *(f"{value:.2f}" for value in means)])
    show(
        f"Autism in {len(people.site):,} participants, {len(people.names)} outcomes, {runs} runs",
        ["ε", "model", "rms error over pooled SE", "stated SE over pooled", "pooled in interval"],
        rows,
    )


def _against(
    result: Result, formula: str, pooled: tuple[Array, Array, Array], names: Sequence[str]
) -> tuple[float, float, float]:
    """Return a refit's errors over the pooled one, and how often its interval has the pooled."""
    released = released_of(result)
    found = fit_again(released, Refit(formula=formula)).estimates[0]
    places = [names.index(entry) for _, entry in released.labels]
    unit = result.arrays["deviation"][places]
    off = found.effects * unit - pooled[0][places]
    inside = np.abs(off) <= 1.96 * found.widths * unit
    own = pooled[1][places]
    return _ratio(off, own), _ratio(found.errors * unit, own), float(inside.mean())


def main(runs: int = 10, folder: Path | None = None) -> None:
    """Print a row for each model."""
    if folder is not None:
        real(folder, runs)
        return
    each = list(in_processes(one_run, runs))
    rows = []
    for model in MODELS:
        formula = formula_of(model)
        own = [run[formula] for run in each]
        means = {name: np.nanmean([one[name] for one in own]) for name in own[0]}
        rows.append([formula, *(f"{means[n]:.2f}" for n in ("refit", "study", "coverage"))])
    show(
        f"{PERSONS:,} participants, {OUTCOMES} outcomes, ε = {EPSILON:g} in all, {runs} runs",
        ["model", "refit: SE over pooled", "16 studies: SE over pooled", "coverage of refit"],
        rows,
    )


if __name__ == "__main__":
    command(main)
