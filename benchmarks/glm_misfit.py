"""``python -m benchmarks.glm_misfit [RUNS [CELL ...]]``: `glm` with wrong norms.

Participants are those of `glm_data`, with stated norms that are correct, wrong in location, of
wrong size, or missing. Further rows have unequal variances of unequal groups, sites whose
outcomes and ages correlate, two sites, or a single outcome. Releases have noise of the exact
distribution (one colluding site, δ = 1e-5). Errors are in the outcomes' true standard deviations.
*Size* is the frequency of p below 0.05 without effect, *FDP* the fraction of discoveries that are
false, and coverage that of 95 % intervals without and with an effect.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.glm_data import Array, Cell, People, Unkind, deviation_within, make_people
from benchmarks.glm_liar import Odd, odd_people, wrong_groups
from benchmarks.glm_runs import (
    AGE_SCALE,
    Trial,
    judged,
    least_squares,
    make_trial,
    mean_of,
    noise_of,
    run_trial,
)
from benchmarks.timing import Tally, command, heading, in_processes, line
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.power import forecast_power
from consortium.views.table import TableView

USUAL: Cell = (800, 20, 8)
_KIND = Unkind(norms=0.0)
_WIDE = 1.4  # standard deviation of ages if sites differ in them


@dataclass(frozen=True)
class Misfit:
    """Row of the table."""

    cell: Cell = USUAL
    epsilon: float = 4.0
    off: float = 0.0
    """Distance of stated locations from the true ones, in standard deviations; with ``signs``, up
    or down at random."""
    signs: bool = False
    scale: float = 1.0
    """Stated standard deviation divided by the true one."""
    missing: bool = False
    """Whether no norms are stated: outcomes have limits, five standard deviations to each side."""
    ratio: float = 1.0
    """Standard deviation of the second group's outcomes divided by that of the first's."""
    rare: float | None = None
    """Fraction of the second group, if it is the same at all sites."""
    effect: float = 0.8
    """Size of nonzero effects, which a fraction ``part`` of the outcomes has."""
    part: float = 0.25
    ages: float = 0.0
    """Correlation of sites' mean ages with sites' levels of all outcomes."""
    gaps: float = 0.0
    """Fraction of missing values, twice as large in the second group as in the first."""
    older: float = 0.0
    """Increase of the second group's missing values per standard deviation of age, as a
    logarithm."""
    few: int = 0
    """Number of sites that have participants of the second group; 0 for all."""
    slope: bool = False
    """Whether the contrast is the slope of age."""
    declared: bool = False
    """Whether sites' means of the covariates are declared."""
    apart: float = 0.3
    """Difference of the groups in age, in its standard deviations."""
    offsets: float = 0.6
    """Standard deviation of sites' levels, in standard deviations within groups and sites."""
    narrow: float = 1.0
    """True standard deviation of age and head size divided by the stated one."""
    odd: Odd | None = None
    analysis: dict[str, Any] = field(default_factory=dict)


_PLAIN = Odd()


def _odd(
    odd: Odd = _PLAIN,
    cell: Cell = (3000, 24, 8),
    epsilon: float = 8.0,
    *,
    missing: bool = True,
    **given: Any,
) -> Misfit:
    """Return a row of `glm_liar`, with many participants and little noise, and no norms."""
    return Misfit(cell, epsilon, odd=odd, missing=missing, **given)


def _rare_at(few: int) -> Misfit:
    """Return a row with a group of a fifth that varies more, at some of eight unequal sites."""
    return Misfit((1500, 16, 8), 8.0, rare=0.2, ratio=1.6, offsets=1.0, few=few)


CELLS: dict[str, Misfit] = {
    "right norms": Misfit(),
    "right norms, ε 1": Misfit(epsilon=1.0),
    "right norms, ε 8": Misfit(epsilon=8.0),
    ".5 off, ratio 1.5": Misfit(off=0.5, ratio=1.5),
    "1 off, ratio 1.5": Misfit(off=1.0, ratio=1.5),
    "2 off, ratio 1.5": Misfit(off=2.0, ratio=1.5),
    "2 off, ratio 1.5, ε 8": Misfit(off=2.0, ratio=1.5, epsilon=8.0),
    "3 off, ratio 1.5": Misfit(off=3.0, ratio=1.5),
    "5 off, ratio 1.5": Misfit(off=5.0, ratio=1.5),
    "8 off, ratio 1.5": Misfit(off=8.0, ratio=1.5),
    "11 off, ratio 1.5": Misfit(off=11.0, ratio=1.5),
    "1 off, 1.2 in half": Misfit(off=1.0, effect=1.2, part=0.5),
    "deviation × 3": Misfit(scale=3.0),
    "deviation × 1/3": Misfit(scale=1 / 3),
    "missing, ratio 1.5": Misfit(missing=True, off=1.0, ratio=1.5),
    "missing, ratio 1.5, ε 1": Misfit(missing=True, off=1.0, ratio=1.5, epsilon=1.0),
    "missing, ratio 1.5, ε 8": Misfit(missing=True, off=1.0, ratio=1.5, epsilon=8.0),
    "rare 15 %, SD 2": Misfit(rare=0.15, ratio=2.0),
    "rare 15 %, SD 2, ε 8": Misfit(rare=0.15, ratio=2.0, epsilon=8.0),
    "V = 1, 1 off, ratio 1.5": Misfit((800, 1, 8), off=1.0, ratio=1.5),
    "V = 1, no effect": Misfit((800, 1, 8), off=1.0, ratio=1.5, part=0.0),
    "V = 5, 1 off, n = 400": Misfit((400, 5, 8), off=1.0),
    "two sites, 1 off": Misfit((800, 20, 2), off=1.0),
    "1,000 x 68, missing, ratio 1.5": Misfit((1000, 68, 8), missing=True, off=1.0, ratio=1.5),
    "1,000 x 68, missing, ratio 1.5, ε 1": Misfit(
        (1000, 68, 8), missing=True, off=1.0, ratio=1.5, epsilon=1.0
    ),
    "4,000 x 68, 33, each ±1 off, 1.3": Misfit((4000, 68, 33), off=1.0, signs=True, ratio=1.3),
    "1,000 x 400, each ±1 off, 1.3": Misfit((1000, 400, 8), off=1.0, signs=True, ratio=1.3),
    "10 % missing": Misfit(missing=True, gaps=0.1),
    "10 % missing, ε 8": Misfit(missing=True, gaps=0.1, epsilon=8.0),
    "10 % missing, more in older patients": Misfit(missing=True, gaps=0.1, older=0.7),
    "10 % missing, more in older patients, ε 8": Misfit(
        missing=True, gaps=0.1, older=0.7, epsilon=8.0
    ),
    "patients at 3 of 8 sites, 20 %, SD 1.6, ε 8": _rare_at(3),
    "patients at 8 of 8 sites, 20 %, SD 1.6, ε 8": _rare_at(0),
    "only these 3 sites": replace(_rare_at(0), cell=(560, 16, 3)),
    "1,000 x 68, 5 % missing": Misfit((1000, 68, 8), missing=True, gaps=0.05),
    "groups 1.2 apart in age": Misfit(apart=1.2),
    "the same, covariates' deviations × 1/2": Misfit(apart=1.2, narrow=2.0),
    "the same, × 1/3, ε 8": Misfit(apart=1.2, narrow=3.0, epsilon=8.0),
    "3,000 x 24, ε 8, 1.2 apart, × 2/3": Misfit((3000, 24, 8), 8.0, apart=1.2, narrow=1.5),
    "levels of sites 2 apart": Misfit(offsets=2.0),
    "levels of sites 2 apart, ε 8": Misfit(offsets=2.0, epsilon=8.0),
    "sites with other ages": Misfit(ages=0.8),
    "sites with other ages, ε 8": Misfit(ages=0.8, epsilon=8.0),
    "sites with other ages, 2,000, ε 1": Misfit((2000, 20, 8), ages=0.8, epsilon=1.0),
    "the same, declared": Misfit((2000, 20, 8), ages=0.8, epsilon=1.0, declared=True),
    "other ages, ε 4, declared": Misfit(ages=0.8, declared=True),
    "slope of age": Misfit(slope=True),
    "slope of age, 1 off, missing": Misfit(slope=True, missing=True, off=1.0),
    "slope, sites with other ages": Misfit(slope=True, ages=0.8),
    "slope, other ages, declared": Misfit(slope=True, ages=0.8, declared=True),
    "slope, other ages, declared, ε 8": Misfit(slope=True, ages=0.8, declared=True, epsilon=8.0),
    "3,000 x 24, ε 8": _odd(),
    "the same, .3 in half": _odd(effect=0.3, part=0.5),
    "the same, 1.2 in half": _odd(effect=1.2, part=0.5),
    "the same, location ±1.5, deviation ×2 or ×½": _odd(
        missing=False, off=1.5, signs=True, scale=2.0
    ),
    "heavy tails, ratio 1.5": _odd(Odd("alike", "heavy", 1.5)),
    "participants far off, ratio 1.5": _odd(Odd("alike", "outliers", 1.5)),
    "participants far above": _odd(Odd("alike", "one-sided")),
    "participants far above, ratio 1.5": _odd(Odd("alike", "one-sided", 1.5)),
    "skewed": _odd(Odd("alike", "skewed")),
    "skewed, ratio 1.25": _odd(Odd("alike", "skewed", 1.25)),
    "skewed, ratio 1.5": _odd(Odd("alike", "skewed", 1.5)),
    "skewed, ratio 1.5, 800, ε 4": _odd(Odd("alike", "skewed", 1.5), (800, 24, 8), 4.0),
    "skewed, ratio 1.5, 2,000 x 68, ε 4": _odd(Odd("alike", "skewed", 1.5), (2000, 68, 8), 4.0),
    "skewed, ratio 1.5, V = 1": _odd(Odd("alike", "skewed", 1.5), (2000, 1, 8), part=0.0),
    "skewed to either side, ratio 1.5": _odd(Odd("alike", "either", 1.5)),
    "either side, ratio 1.5, 2,000 x 68, ε 4": _odd(
        Odd("alike", "either", 1.5), (2000, 68, 8), 4.0
    ),
    "either side, rare 15 %, ratio 2": _odd(Odd("alike", "either", 2.0, part=0.15)),
    "skewed, rare 15 %, ratio 2": _odd(Odd("alike", "skewed", 2.0, part=0.15)),
    "slope, 3,000 x 24, ε 8": _odd(slope=True, part=0.0),
    "slope, skewed, deviation grows by .2": _odd(
        Odd("alike", "skewed", grows=0.2), slope=True, part=0.0
    ),
    "slope, skewed, grows by .4": _odd(Odd("alike", "skewed", grows=0.4), slope=True, part=0.0),
    "slope, either side, grows by .2": _odd(
        Odd("alike", "either", grows=0.2), slope=True, part=0.0
    ),
    "slope, skewed, grows by .2, 800, ε 4": _odd(
        Odd("alike", "skewed", grows=0.2), (800, 24, 8), 4.0, slope=True, part=0.0
    ),
    "binary, .5": _odd(Odd("alike", "even"), effect=0.3),
    "binary, .15": _odd(Odd("alike", "rare"), effect=0.3),
    "scanners × 3, rare 20 %, ratio 2": _odd(Odd("alike", "normal", 2.0, 3.0, 0.2)),
    "three big and twenty small sites": _odd(Odd("few big", scanners=2.0)),
    "one huge and ten small sites": _odd(Odd("one huge", scanners=2.0)),
    "sites of other ages": _odd(Odd(older=1.0)),
    "sites of other ages, declared": _odd(Odd(older=1.0), declared=True),
    "sites of other ages, few big": _odd(Odd("few big", older=1.0)),
    "sites of other ages, 800, ε 4": _odd(Odd(older=1.0), (800, 24, 8), 4.0),
    "10 % missing, 3,000 x 24": _odd(gaps=0.1),
    "smooth, 100 outcomes": _odd(Odd(smooth=True), (3000, 100, 8)),
    "few big, skewed, ratio 1.5, gaps, ages": _odd(
        Odd("few big", "skewed", 1.5, 2.0, older=0.5), gaps=0.05
    ),
    "a tenth in the wrong group": _odd(Odd(wrong=0.1)),
}


def people_of(misfit: Misfit, generator: np.random.Generator) -> People:
    """Return the participants of a row, in units in which a true standard deviation is 1."""
    persons, entries, sites = misfit.cell
    if misfit.odd:
        people = odd_people(
            odd=misfit.odd,
            persons=persons,
            entries=entries,
            effect=misfit.effect,
            part=misfit.part,
            draw=generator,
        )
        return _with_norms(misfit, _asked_of(misfit, people, generator), generator)
    kind = replace(_KIND, offsets=misfit.offsets)
    if misfit.rare is not None:
        kind = replace(kind, parts=(misfit.rare, misfit.rare), alone=False)
    people = make_people(persons, entries, sites, generator, effect=0.0, unkind=kind)
    if misfit.few:
        people = replace(people, group=people.group & (people.site < misfit.few))
    people = _groups_apart(people, misfit.apart)
    values = people.outcomes
    truth = np.zeros(entries)
    residual = values - people.slopes @ people.covariates
    centre = np.stack([residual[:, people.site == s].mean(axis=1) for s in range(sites)], axis=1)
    own = residual - centre[:, people.site]
    values = values + own * np.where(people.group, misfit.ratio - 1, 0.0)
    if misfit.ages:
        values, people = _together(values, people, misfit.ages, sites, generator)
    many = max(round(misfit.part * entries), 1) if misfit.part else 0
    chosen = generator.permutation(entries)[:many]
    truth[chosen] = misfit.effect * generator.choice([-1.0, 1.0], len(chosen))
    if not misfit.slope:
        values = values + np.outer(truth, people.group)
    people = _asked_of(misfit, replace(people, outcomes=values, truth=truth), generator)
    return _with_norms(misfit, people, generator)


def _groups_apart(people: People, apart: float) -> People:
    """Return participants whose groups differ by ``apart`` in age, with their outcomes."""
    if apart == Misfit.apart:
        return people
    covariates = people.covariates.copy()
    covariates[0] += (apart - Misfit.apart) * (people.group - 0.5)
    moved = people.slopes[:, :1] * (covariates[:1] - people.covariates[:1])
    return replace(people, covariates=covariates, outcomes=people.outcomes + moved)


def _asked_of(misfit: Misfit, people: People, generator: np.random.Generator) -> People:
    """Return participants with the slopes of a row: those of age, or 0 in half of the outcomes."""
    if not misfit.slope:
        return people
    truth = people.slopes[:, 0].copy()
    truth[generator.permutation(len(truth))[: len(truth) // 2]] = 0.0
    moved = np.outer(truth - people.slopes[:, 0], people.covariates[0])
    return replace(people, outcomes=people.outcomes + moved, truth=truth)


def _with_norms(misfit: Misfit, people: People, generator: np.random.Generator) -> People:
    """Return participants with the norms that a study states."""
    right = people.outcomes.mean(axis=1)
    usual = people.outcomes.std(axis=1)
    signs = generator.choice([-1.0, 1.0], len(usual)) if misfit.signs else np.ones(len(usual))
    location = right - misfit.off * usual * signs
    within = deviation_within(people.outcomes, people.group, people.site)
    return replace(people, deviation=misfit.scale**signs * within, location=location)


def _together(
    values: Array, people: People, part: float, sites: int, generator: np.random.Generator
) -> tuple[Array, People]:
    """Return participants whose sites' mean ages vary, and correlate with the outcomes' levels."""
    ages = generator.standard_normal(sites)
    levels = 0.6 * np.outer(generator.choice([-1.0, 1.0], len(values)), part * ages)
    covariates = people.covariates.copy()
    covariates[0] += ages[people.site] + 0.8 * (people.group - 0.5)
    moved = (
        values
        + levels[:, people.site]
        + people.slopes[:, :1] * (covariates[:1] - people.covariates[:1])
    )
    return moved, replace(people, covariates=covariates)


def trial_for(misfit: Misfit, people: People) -> Trial:
    """Return the study of a row."""
    analysis: dict[str, Any] = {"anyway": True, **misfit.analysis}
    if misfit.slope:
        analysis |= {"contrasts": {"age": "age1"}, "groups": {}}
    if misfit.odd and misfit.odd.wrong:
        analysis["groups"] = wrong_groups(people, misfit.odd.wrong)
    if misfit.declared:
        sites = range(int(people.site.max()) + 1)
        means = [people.covariates[:, people.site == s].mean(axis=1) for s in sites]
        each = {"age1": 0, "icv1": 1, "sex1": 2}
        analysis["site_means"] = {
            name: {f"s{s}": float(means[s][k] / (8.0 if k < 2 else 1.0)) for s in sites}
            for name, k in each.items()
        }
    if misfit.ages:
        scale = {"mean": 0, "deviation": 1 / 8}
        analysis["covariates"] = {
            "age1": {"mean": 0, "deviation": _WIDE / 8},
            "icv1": scale,
            "sex1": {"mean": 0, "deviation": 1},
        }
    if misfit.narrow != 1:
        scale = {"mean": 0, "deviation": 1 / 8 / misfit.narrow}
        levels = {"mean": 0, "deviation": 1}
        analysis["covariates"] = {"age1": scale, "icv1": scale, "sex1": levels}
    trial = make_trial(people, **analysis)
    if misfit.missing:
        trial = _without_norms(trial, people, misfit)
    names = tuple(f"s{s}" for s in range(len(trial.shape.subjects)))
    return replace(trial, shape=replace(trial.shape, sites=names))


def _without_norms(trial: Trial, people: People, misfit: Misfit) -> Trial:
    """Return the same study with limits five deviations about the location, and no norms."""
    usual = people.outcomes.std(axis=1)
    low, high = (people.location + sign * 5 * usual for sign in (-1, 1))
    columns = {
        f"brain{v + 1}": {"low": float(low[v]), "high": float(high[v])} for v in range(len(low))
    }
    names = [name for name, _ in trial.shape.views]
    plain = {"low": -1.0, "high": 1.0}
    levels = {"levels": ["control", "patient"]}
    views = [
        TableView.model_validate(
            {
                "name": n,
                "source": "table",
                "columns": each,
                "gaps": 3 * misfit.gaps * (n == "brain"),
            }
        )
        for n, each in (
            ("brain", columns),
            ("dx", {"dx1": levels}),
            *((n, {f"{n}1": plain}) for n in names[2:]),
        )
    ]
    said = trial.parameters.model_dump(exclude={"norms"}, exclude_none=True)
    given = GlmParameters.model_validate(said, context={"features": views})
    for site in trial.sites:
        table = site.table()
        count = len(low)
        table[:count] = (table[:count] - (low + high)[:, None] / 2) * 2 / (high - low)[:, None]
        older = np.exp(AGE_SCALE * misfit.older * table[count + 1])
        chance = np.where(table[count] > 0, 4 / 3 * older, 2 / 3) * misfit.gaps
        lost = np.random.default_rng(table.shape[1]).random((count, table.shape[1])) < chance
        table[:count][lost] = np.nan
    return replace(trial, parameters=given)


def one_run(misfit: Misfit, number: int) -> dict[str, float]:
    """Return the statistics of a run."""
    generator = np.random.default_rng((number, 31, *misfit.cell))
    people = people_of(misfit, generator)
    design = people.design()
    if misfit.slope:
        order = [1, 0, *range(2, len(design))]
        design = design[order]
    pooled = least_squares(design, people.outcomes)[0]
    trial = trial_for(misfit, people)
    noise = noise_of(misfit.epsilon, len(trial.sites))
    plan = Glm(trial.parameters, replace(trial.shape, noise=noise))
    result = run_trial(trial, noise, generator, plan=plan)
    unit = _WIDE if misfit.slope and misfit.ages else 1.0
    deviation = people.outcomes.std(axis=1)
    return counted(result, unit * people.truth, unit * pooled, deviation, plan)


def counted(
    result: Any, truth: Array, pooled: Array, deviation: Array, plan: Glm
) -> dict[str, float]:
    """Return a run's errors and decisions, in the outcomes' true standard deviations."""
    if "effect" not in result.arrays:
        return {"stopped": 1.0}
    unit = result.arrays["deviation"] / deviation
    truth = truth / deviation
    pooled = pooled / deviation
    effect, low, high = (result.arrays[n] * unit for n in ("effect", "low", "high"))
    null = truth == 0
    found = result.arrays["q"] <= plan.parameters.discoveries
    covered = (low <= truth) & (truth <= high)
    shown = ~result.arrays["withheld"]
    real = ~null & shown
    return {
        "stopped": 0.0,
        "withheld": float(result.arrays["withheld"].mean()),
        **judged(result.arrays, truth, null, unit),
        "false": float((found & null).sum() / max(1, found.sum())),
        "power": float(found[~null].mean()) if (~null).any() else np.nan,
        "covered null": mean_of(covered, null & shown),
        "covered real": mean_of(covered, real),
        "pooled": float(np.mean(np.square(pooled - truth))),
        "forecast": float(np.mean(np.square(forecast_power(plan).error * unit))),
        "again": float(np.mean(np.square(result.numbers["forecast_error"] * unit))),
        "slope": float(effect[real] @ truth[real] / (truth[real] @ truth[real]))
        if real.any()
        else np.nan,
    }


_COLUMNS = (
    "cell | size | FDP | withheld | coverage null | real | power | RMSE | "
    "SE/RMSE | RMSE/pooled | slope | forecast/SE | again/SE | stopped"
)


def row_of(name: str, tally: Tally) -> list[str]:
    """Return the cells of a row."""
    if "square" not in tally.found:
        return [name, "stopped"]
    error = tally.root("square")
    stated = tally.root("stated")
    return [
        name,
        *tally.texts("size", "false", "withheld"),
        *tally.texts("covered null", "covered real", "power"),
        f"{error:.3f}",
        f"{stated / error:.2f}",
        f"{error / tally.root('pooled'):.2f}",
        *tally.texts("slope", digits=2),
        *tally.over(stated, "forecast", "again", digits=2),
        *tally.texts("stopped", digits=2),
    ]


def main(runs: int = 10, *names: str) -> None:
    """Print the table, a row as soon as it is known."""
    print(f"{runs} runs a row\n")
    heading(_COLUMNS)
    for name in names or CELLS:
        tally = Tally()
        for numbers in in_processes(partial(one_run, CELLS[name]), runs):
            tally.add(**numbers)
        line(*row_of(name, tally))


if __name__ == "__main__":
    command(main)
