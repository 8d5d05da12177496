"""Participants that violate assumptions of `glm`: rows of `benchmarks.glm_misfit`.

This was written before reading the analysis. All terms act linearly and have mean zero. So the true
effect is the quantity that least squares over all participants estimates without bias, for any
tails, variances or sites.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.glm_data import Array, People

_OUT = 0.03  # fraction of the participants whose values are all outliers
_FAR = 6.0  # distance of outliers, in standard deviations
_AGE = 0.6  # standard deviation of age within a site


@dataclass(frozen=True)
class Odd:
    """Unusual features of the participants."""

    sites: str = "alike"
    """Eight of one size; three of a fifth each and twenty small ones; one of three quarters and ten
    small ones."""
    residual: str = "normal"
    """Distribution of residuals: Gaussian, t with 2.5 degrees of freedom, lognormal (with tails of
    all outcomes to one side, or of half of them to the other), with participants who are outliers
    in all outcomes (to either side, or to one), binary outcomes with a frequency of a tenth or a
    half."""
    group: float = 1.0
    """Standard deviation of the second group divided by that of the first."""
    scanners: float = 1.0
    """Largest standard deviation of a site divided by the smallest."""
    part: float = 0.4
    """Fraction of the second group, which varies by two fifths of it among sites."""
    older: float = 0.0
    """Standard deviation of sites' mean ages; levels of their outcomes correlate with it."""
    grows: float = 0.0
    """Increase of the logarithm of a participant's standard deviation per standard deviation of
    age."""
    smooth: bool = False
    """Whether outcomes are neighbours on a line, correlated over a tenth of it, instead of having a
    common factor."""
    wrong: float = 0.0
    """Fraction of the participants stated in the wrong group, alternating by site, with correct
    totals."""


def sizes_of(kind: str, persons: int) -> NDArray[np.int64]:
    """Return the number of participants of each site."""
    parts = {
        "alike": np.ones(8) / 8,
        "few big": np.repeat([0.2, 0.02], [3, 20]),
        "one huge": np.repeat([0.75, 0.025], [1, 10]),
    }[kind]
    sizes = np.rint(persons * parts).astype(np.int64)
    sizes[0] += persons - sizes.sum()
    return sizes


def _alike(odd: Odd, entries: int, persons: int, draw: np.random.Generator) -> Array:
    """Return correlated Gaussian outcomes."""
    own = draw.standard_normal((entries, persons))
    if not odd.smooth:
        shared = draw.uniform(0.2, 0.9, (entries, 1))
        return np.asarray(shared * draw.standard_normal(persons) + np.sqrt(1 - shared**2) * own)
    apart = np.subtract.outer(np.arange(entries), np.arange(entries)) / (entries / 10)
    values, vectors = np.linalg.eigh(np.exp(-np.square(apart) / 2))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ own)


def _residuals(odd: Odd, entries: int, persons: int, draw: np.random.Generator) -> Array:
    """Return residuals of mean 0 and standard deviation of about 1."""
    values = _alike(odd, entries, persons, draw)
    if odd.residual == "heavy":
        return values / np.sqrt(draw.chisquare(2.5, persons) / 2.5) / np.sqrt(5)
    if odd.residual in ("skewed", "either"):
        spread = 0.8
        mean = np.exp(spread**2 / 2)
        found = (np.exp(spread * values) - mean) / (mean * np.sqrt(np.expm1(spread**2)))
        if odd.residual == "either":
            found[::2] *= -1
        return np.asarray(found)
    if odd.residual in ("outliers", "one-sided"):
        sign = draw.choice([-1.0, 1.0], (entries, persons)) if odd.residual == "outliers" else 1.0
        far = draw.random(persons) < _OUT
        mean = 0.0 if odd.residual == "outliers" else _FAR * _OUT
        return np.asarray(values + _FAR * sign * far - mean)
    return values


def _binary(chance: Array, like: Array) -> Array:
    """Return 0 or 1 with these probabilities, correlated as the Gaussian numbers are."""
    return np.asarray(ndtr(like) < chance, dtype=np.float64)


def odd_people(
    odd: Odd, persons: int, entries: int, effect: float, part: float, draw: np.random.Generator
) -> People:
    """Return participants with an effect, in total deviations, in a fraction of the outcomes."""
    sizes = sizes_of(odd.sites, persons)
    site = np.repeat(np.arange(len(sizes)), sizes)
    share = np.clip(odd.part * draw.uniform(0.6, 1.4, len(sizes)), 0.05, 0.95)
    group = draw.random(persons) < share[site]
    ages = odd.older * draw.standard_normal(len(sizes))
    age = _AGE * draw.standard_normal(persons) + ages[site] + 0.4 * (group - 0.5)
    sex = np.where(draw.random(persons) < np.where(group, 0.65, 0.45), 1.0, -1.0)
    icv = 0.5 * sex + draw.standard_normal(persons)
    covariates = np.stack([age, icv, sex])
    slopes = draw.normal(0, [0.3, 0.2, 0.1], (entries, 3))
    levels = draw.normal(0, 0.5, (entries, len(sizes))) + np.outer(
        draw.normal(0, 0.4, entries), ages
    )
    chosen = draw.permutation(entries)[: round(part * entries)]
    truth = np.zeros(entries)
    truth[chosen] = effect * draw.choice([-1.0, 1.0], len(chosen))
    mean = levels[:, site] + slopes @ covariates
    scanner = np.exp(draw.uniform(-0.5, 0.5, len(sizes)) * np.log(odd.scanners))
    own = (age - ages[site]) / _AGE
    scale = scanner[site] * np.where(group, odd.group, 1.0) * np.exp(odd.grows * own)
    if odd.residual in ("rare", "even"):
        usual, unit = (0.15, 0.35) if odd.residual == "rare" else (0.5, 0.5)
        slopes = 0.05 * slopes
        truth = truth * unit
        raised = np.clip(0.1 * levels, -0.05, 0.05)[:, site] + slopes @ covariates
        chance = usual + raised + truth[:, None] * (group - 0.5)
        values = _binary(np.clip(chance, 0.0, 1.0), _alike(odd, entries, persons, draw))
    else:
        apart = _residuals(odd, entries, persons, draw) * scale
        unit_of = np.sqrt(np.square(mean - mean.mean(axis=1)[:, None]).mean(axis=1) + apart.var())
        truth = truth * unit_of
        values = mean + truth[:, None] * group + apart
    return People(
        outcomes=values,
        group=group,
        covariates=covariates,
        site=site,
        truth=truth,
        slopes=slopes,
        deviation=values.std(axis=1),
        location=values.mean(axis=1),
    )


def wrong_groups(people: People, part: float) -> dict[str, list[int]]:
    """Return group sizes with a fraction of the participants moved, alternating in direction."""
    groups = {}
    for s in range(int(people.site.max()) + 1):
        here = people.group[people.site == s]
        moved = int(np.clip(here.sum() + round((-1) ** s * part * len(here)), 0, len(here)))
        groups[f"s{s}"] = [len(here) - moved, moved]
    return groups
