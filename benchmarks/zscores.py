"""``python -m benchmarks.zscores FOLDER``: scores at home, in real participants.

FOLDER has the files of `benchmarks.glm_open`. Each hospital of fcon1000 scores its own
participants. The reference are scores by pooled least squares of all hospitals: values less the
expected ones by age, sex and site, over the pooled standard deviation. *Own* is least squares of
the hospital alone. *Chart* has slopes and spread of the open cohort, of other hospitals, and the
hospital's own level. *Study* has the coefficients of one private run at ε = 4 or 8, with the open
cohort's location and deviations as stated norms.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.glm_data import Array
from benchmarks.glm_open import Cohort, comparisons, trial_of_cohort
from benchmarks.glm_refit import released_of
from benchmarks.glm_runs import noise_of, run_trial
from benchmarks.timing import command, show
from consortium.algorithms.glm.kernels.open_regression import fit_within
from consortium.kernels.home_scores import home_scores

EPSILONS = (4.0, 8.0)
SIZES = ((12, 30), (30, 80), (80, 1000), (12, 1000))


def _columns(people: Cohort) -> Array:
    age = (people.columns["age"] - 40.0) / 15.0
    return np.stack([age, people.columns["sex"]])


def _fit(people: Cohort) -> tuple[Array, Array]:
    """Return slopes and standard deviation within sites."""
    fit = fit_within(people.outcomes, _columns(people), people.site)
    return fit.slopes, fit.deviation


def _scores(people: Cohort, slopes: Array, deviation: Array) -> Array:
    expected = slopes @ _columns(people) / deviation[:, None]
    values = people.outcomes / deviation[:, None]
    everybody = np.ones(values.shape[1], dtype=bool)
    return home_scores(values, expected, expected, everybody).scores


def _study(folder: Path, epsilon: float) -> tuple[Array, Array]:
    """Return slopes on the columns of `_columns` and deviations, of one private run."""
    case = next(each for each in comparisons(folder) if each.name.startswith("sex, fcon1000"))
    trial = trial_of_cohort(case, "norms")
    parameters = trial.parameters.model_copy(update={"contrasts": "all"})
    noise = noise_of(epsilon, len(trial.shape.subjects))
    result = run_trial(replace(trial, parameters=parameters), noise, np.random.default_rng(59))
    released = released_of(result)
    names = [entry.name for entry in released.entries]
    deviation = result.arrays["deviation"]
    slopes = np.zeros((len(deviation), 2))
    unit = 15.0 / parameters.covariates["age"].deviation
    for (_, entry), own in zip(released.labels, released.values, strict=True):
        slopes[case.private.names.index(entry)] = (
            own[names.index("age")] * unit,
            own[names.index("sex")],
        )
    return deviation[:, None] * slopes, deviation


def main(folder: Path) -> None:
    """Print the distance of scores from those of pooled data, by the hospital's size."""
    case = next(each for each in comparisons(folder) if each.name.startswith("age, fcon1000"))
    pooled, chart = _fit(case.private), _fit(case.open)
    studies = {f"study, ε = {epsilon:g}": _study(folder, epsilon) for epsilon in EPSILONS}
    rows = []
    for least, most in SIZES:
        numbers = hospitals = 0
        off: dict[str, list[float]] = {name: [] for name in ("own", "chart", *studies)}
        for site in np.unique(case.private.site):
            own = case.private.chosen(case.private.site == site)
            if not least <= own.outcomes.shape[1] < most:
                continue
            right = _scores(own, *pooled)
            numbers += right.size
            hospitals += 1
            ways = {"own": _fit(own), "chart": chart, **studies}
            for name, way in ways.items():
                off[name].append(float(np.sum(np.square(_scores(own, *way) - right))))
        cells = [f"{np.sqrt(sum(each) / numbers):.3f}" for each in off.values()]
        rows.append([f"{least} to {most - 1}", str(hospitals), *cells])
    show(
        "Scores at home: rms distance from scores of pooled data, in standard deviations",
        ["participants", "hospitals", "only its own data", "chart of open data", *studies],
        rows,
    )


if __name__ == "__main__":
    command(main)
