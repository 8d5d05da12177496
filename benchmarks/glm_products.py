"""``python -m benchmarks.glm_products [RUNS]``: products and squares in the formula of `glm`.

Participants of 8 sites, whose ages differ between sites; the group's fraction grows with age;
outcomes depend on age and its square. The stated mean of ages is correct, half a standard deviation
and two off; outcomes are Gaussian, vary half again as much in patients, vary more with age, or have
long tails. Releases have noise of the exact distribution. *Missed* is the frequency with which a 95
% interval does not contain the effect at the stated mean, ``none`` and ``some`` if the contrast's
own effect is 0 and if it is not. *Withheld* is the fraction of withheld outcomes.
"""

from itertools import product

import numpy as np

from benchmarks.glm_data import Array
from benchmarks.glm_runs import Trial, mean_of, noise_of, run_trial, trial_of
from benchmarks.timing import command, show

SITES, OUTCOMES = 8, 20
USUAL = 0.25  # standard deviation of ages, in the vector's unit
SCALE = 1.2  # stated standard deviation of the outcomes
EFFECT = 0.3
ASKED = {
    "patients, square": ("dx1", "dx1 + age1 + I(age1**2)"),
    "patients, product": ("dx1", "dx1 * age1 + I(age1**2)"),
    "interaction": ("dx1:age1", "dx1 * age1 + I(age1**2)"),
}
KINDS = ("Gaussian", "ratio 1.5", "grows with age", "lognormal")


def spread_of(kind: str, z: Array, group: Array, generator: np.random.Generator) -> Array:
    """Return residuals of the outcomes, OUTCOMES x n."""
    found = np.sqrt(0.75) * generator.standard_normal((OUTCOMES, len(z)))
    found = found + 0.5 * generator.standard_normal(len(z))
    if kind == "lognormal":
        return np.asarray((np.exp(0.8 * found) - np.exp(0.32)) / 1.3)
    if kind == "ratio 1.5":
        return np.asarray(found * np.where(group > 0, 1.5, 1.0))
    return found * np.clip(1 + 0.3 * z, 0.3, 2.5) if kind == "grows with age" else found


def study_of(
    kind: str, name: str, persons: int, off: float, effect: float, generator: np.random.Generator
) -> tuple[Trial, float]:
    """Return a study, and the true effect as it would be reported."""
    asked, formula = ASKED[name]
    site = np.sort(generator.integers(SITES, size=persons))
    z = np.clip(generator.standard_normal(persons) + generator.normal(0, 0.7, SITES)[site], -3, 3)
    group = (generator.random(persons) < 0.4 + 0.1 * np.tanh(z)).astype(np.float64)
    y = spread_of(kind, z, group, generator) + 0.4 * generator.standard_normal((20, SITES))[:, site]
    own = (group - 0.5) * (z if ":" in asked else 1.0)
    y = y - 0.4 * z + 0.15 * (z**2 - 1) + effect * own
    # Without levels a group is -2 and 2 of the public deviations, and their product over 2.5.
    told = effect / 2 / 0.8 if ":" in asked else effect
    age = {"age1": {"mean": off * USUAL, "deviation": USUAL}}
    trial = trial_of(
        y,
        group > 0,
        USUAL * z[None],
        site,
        names=("age",),
        contrasts={"it": asked},
        formula=formula,
        covariates=age,
        norms={"deviation": SCALE},
        anyway=True,
        **({"groups": {}} if ":" in asked else {}),
    )
    return trial, told / SCALE


def one_run(
    kind: str, name: str, persons: int, off: float, effect: float, seed: int
) -> tuple[float, float]:
    """Return the fraction of intervals without the truth, and of withheld outcomes."""
    generator = np.random.default_rng(seed)
    trial, truth = study_of(
        kind=kind,
        name=name,
        persons=persons,
        off=off,
        effect=effect,
        generator=generator,
    )
    epsilon = 4.0 if persons < 1000 else 8.0
    found = run_trial(trial, noise_of(epsilon, SITES), generator).arrays
    if "low" not in found:
        return np.nan, np.nan
    held = (found["low"] <= truth) & (truth <= found["high"])
    return 1 - mean_of(held, ~found["withheld"]), float(found["withheld"].mean())


def main(runs: int = 20) -> None:
    """Print the table."""
    rows = []
    for name, kind, persons, off in product(ASKED, KINDS, (800, 3000), (0.0, 0.5, 2.0)):
        missed, withheld = zip(
            *(
                np.nanmean(
                    [
                        one_run(
                            kind=kind,
                            name=name,
                            persons=persons,
                            off=off,
                            effect=e,
                            seed=n,
                        )
                        for n in range(runs)
                    ],
                    axis=0,
                )
                for e in (0.0, EFFECT)
            ),
            strict=True,
        )
        cell = [name, kind, str(persons), f"{off:g}"]
        rows.append([*cell, *(f"{each:.3f}" for each in missed), f"{np.mean(withheld):.2f}"])
    columns = ["contrast", "outcomes", "participants", "mean off", "none", "some", "withheld"]
    show(f"Products and squares, {runs} studies each; ε 4 and 8", columns, rows)


if __name__ == "__main__":
    command(main)
