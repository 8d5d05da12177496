"""Difficult simulated data for `glm`, with several features of real consortia at once.

Site sizes are unequal, groups have proportions from a quarter to three quarters (with eight sites
or more, one site has only one group), scanners differ in location and scale, outcomes have heavy
tails and a common factor, covariates depend on group and site and affect the outcomes, and public
norms are wrong.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

Array = NDArray[np.float64]
Cell = Annotated[tuple[int, int, int], BeforeValidator(lambda text: text.split("x"))]
"""Participants, outcomes and sites; on a command line such as 1000x152x8."""

EFFECTS = (0.25, 0.5)
COVARIATES = ("age", "icv", "sex")
_EXPLAINED = 0.15  # variance of an outcome within sites that the covariates explain


@dataclass(frozen=True)
class Unkind:
    """Difficult features of the data; by default all together."""

    tails: bool = True
    """Whether outcomes have the tails of t with five degrees of freedom instead of Gaussian
    ones."""
    variances: float = 2.0
    """Largest variance of a scanner divided by the smallest."""
    parts: tuple[float, float] = (0.25, 0.75)
    """Range of the second group's fraction of a site's participants."""
    alone: bool = True
    """Whether one of eight sites or more has participants of one group only."""
    offsets: float = 0.6
    """Standard deviation of the sites' offsets in every outcome."""
    norms: float = 0.1
    """Error of public norms: relative error of the standard deviations, and two thirds of the error
    of the locations, in standard deviations."""


@dataclass(frozen=True, eq=False)
class People:
    """Participants of a consortium."""

    outcomes: Array
    """In units of the standard deviation within groups and sites, V x n."""
    group: NDArray[np.bool_]
    """Whether a participant belongs to the second group, length n."""
    covariates: Array
    """Age, volume of the head and sex (-1 or 1), 3 x n."""
    site: NDArray[np.int64]
    """Site of each participant, ascending integers, length n."""
    truth: Array
    """Effects of group, in the outcomes' unit, length V."""
    slopes: Array
    """Effects of the covariates, V x 3."""
    deviation: Array
    location: Array
    """Public norms: standard deviation within groups and sites, with a relative error of 10 %, and
    location, with an error of 0.15 total standard deviations. Length V."""

    def design(self, chosen: NDArray[np.bool_] | None = None) -> Array:
        """Return columns of group, covariates and a constant for each site, for least squares."""
        keep = np.ones(len(self.group), dtype=bool) if chosen is None else chosen
        present = np.unique(self.site[keep])
        dummies = (self.site[keep][None, :] == present[:, None]).astype(np.float64)
        return np.vstack([self.group[keep].astype(np.float64), self.covariates[:, keep], dummies])


def deviation_within(outcomes: Array, group: NDArray[np.bool_], site: NDArray[np.int64]) -> Array:
    """Return each outcome's standard deviation within groups and sites, length V."""
    own = outcomes.copy()
    for cell in np.unique(2 * site + group):
        chosen = 2 * site + group == cell
        own[:, chosen] -= own[:, chosen].mean(axis=1, keepdims=True)
    return np.asarray(own.std(axis=1))


def site_sizes(persons: int, sites: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return unequal sizes, the largest about six times the smallest."""
    shares = np.exp(generator.uniform(-0.9, 0.9, sites))
    sizes = np.maximum((persons * shares / shares.sum()).astype(np.int64), 6)
    sizes[int(np.argmax(sizes))] += persons - int(sizes.sum())
    return sizes


def make_people(
    persons: int,
    entries: int,
    sites: int,
    generator: np.random.Generator,
    *,
    effect: float = 1.0,
    unkind: Unkind = Unkind(),
) -> People:
    """Draw a consortium; ``effect`` multiplies all true effects."""
    sizes = site_sizes(persons, sites, generator)
    site = np.repeat(np.arange(sites), sizes)
    proportions = generator.uniform(*unkind.parts, sites)
    if unkind.alone and sites >= 8:
        proportions[int(generator.integers(sites))] = 0.0
    counts = np.rint(proportions * sizes).astype(int)
    group = np.concatenate(
        [generator.permutation(np.arange(n) < k) for n, k in zip(sizes, counts, strict=True)]
    )
    covariates = _covariates(group, site, sites, generator)
    truth = np.zeros(entries)
    each = max(1, entries // 8)
    places = generator.permutation(entries)[: 2 * each]
    signs = generator.choice([-1.0, 1.0], len(places))
    truth[places[:each]] = EFFECTS[0]
    truth[places[each:]] = EFFECTS[1]
    truth[places] *= effect * signs
    within = _residuals(entries, site, sites, generator, unkind)
    slopes = generator.normal(0, [[0.3], [0.2], [0.15]], (3, entries)).T
    offsets = unkind.offsets * generator.standard_normal((entries, sites))
    outcomes = offsets[:, site] + slopes @ covariates + np.outer(truth, group) + within
    usual = float(np.sqrt(1 + unkind.offsets**2 + _EXPLAINED))
    deviation = float(np.sqrt(1 + _EXPLAINED)) * np.exp(
        unkind.norms * generator.standard_normal(entries)
    )
    location = 1.5 * unkind.norms * generator.standard_normal(entries) * usual
    return People(
        outcomes=outcomes,
        group=group,
        covariates=covariates,
        site=site,
        truth=truth,
        slopes=slopes,
        deviation=deviation,
        location=location,
    )


def _covariates(
    group: NDArray[np.bool_], site: NDArray[np.int64], sites: int, generator: np.random.Generator
) -> Array:
    shift = 0.4 * generator.standard_normal((3, sites))[:, site]
    gap = np.array([[0.3], [-0.2], [0.25]]) * (group - 0.5)
    values = 0.9 * generator.standard_normal((3, len(group))) + shift + gap
    values[2] = np.where(values[2] > 0, 1.0, -1.0)
    return np.asarray(values)


def _residuals(
    entries: int,
    site: NDArray[np.int64],
    sites: int,
    generator: np.random.Generator,
    unkind: Unkind,
) -> Array:
    """Return residuals with heavy tails, a common factor, and scanners of unequal variance."""
    loadings = generator.uniform(0.3, 0.78, entries)
    shape = entries, len(site)
    heavy = unkind.tails
    own = generator.standard_t(5, shape) / np.sqrt(5 / 3) if heavy else generator.normal(size=shape)
    shared = generator.standard_normal(len(site))
    values = loadings[:, None] * shared + np.sqrt(1 - loadings**2)[:, None] * own
    width = np.log(unkind.variances) / 2
    scale = np.sqrt(np.exp(generator.uniform(-width, width, sites)))
    return np.asarray(values * scale[site])
