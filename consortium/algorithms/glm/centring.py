"""Centring of the contrast in each site: by released counts for groups, none for a slope."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import PlannedRelease, Release
from consortium.algorithms.glm.groups import Groups, capped_weights
from consortium.algorithms.glm.kernels.group_counts import COUNT_NOISE, estimate_proportions
from consortium.base.array import Array
from consortium.privacy.block_bounds import BlocksBound

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_FAR = 0.25
_CLEARLY = 3.0
"""A released count is reported as unexpected if it differs by this share of a site's participants,
and by this many standard deviations of its noise."""
_NAMED = 5
_LEAST_SPREAD = 1e-4  # least mean of q (1 - q): sums are divided by it


@dataclass(frozen=True, eq=False)
class Centring:
    """Groups and weights of all sites, as stated in the study or as counted in a first round."""

    groups: Groups
    weights: Array
    """a_s, length S."""
    count_variances: Array
    """Variance of Σ t̃ of a site, length S: the variance of its number of participants in the
    second group, given the released count. 0 for a slope."""

    def among(self, persons: Array) -> Centring:
        """Return the centring of the sites that answered, which have ``persons`` above 0."""
        variances = np.where(persons > 0, self.count_variances, 0.0)
        return replace(
            self, groups=replace(self.groups, persons=persons), count_variances=variances
        )

    @property
    def information(self) -> tuple[float, float]:
        """N_a = Σ a n q (1 - q) and N_u = Σ a² n q (1 - q), both positive.

        Noisy counts can show no participants of one group, so both have a lower limit.
        """
        least = _LEAST_SPREAD * float(self.groups.persons.sum())
        found, squares = self.groups.information(self.weights)
        return max(found, least), max(squares, least)

    @property
    def offsets(self) -> float:
        """Σ a_s² v_s: variance of T from errors of counts, relative to that of sites' levels."""
        return float(self.weights**2 @ self.count_variances)


def count_sentences(plan: Glm) -> tuple[str, ...]:
    """Return a sentence on the release of the groups' numbers of participants, if any."""
    if plan.columns.slope:
        return ()
    noise = COUNT_NOISE * plan.shape.noise / math.sqrt(plan.clipping.shares["counts"])
    sentence = (
        f"Each site's number of participants of '{_group(plan)}' is released with noise of "
        f"about {noise:.2g} participants; the privacy guarantee covers it."
    )
    return (sentence,)


def counted_sentences(plan: Glm, centring: Centring) -> tuple[str, ...]:
    """Return a warning if released counts clearly contradict the shares that the study expects."""
    groups = centring.groups
    persons = np.maximum(centring.groups.persons, 1)
    found = groups.proportions
    expected = plan.groups.proportions
    noise = np.sqrt(centring.count_variances) / persons
    far = (np.abs(found - expected) > np.maximum(_FAR, _CLEARLY * noise)) & (groups.persons > 0)
    if plan.columns.slope or not far.any():
        return ()
    names = plan.shape.sites or tuple(f"site {n + 1}" for n in range(len(far)))
    sites = [
        f"{names[n]} ({100 * found[n]:.0f} % instead of {100 * expected[n]:.0f} %)"
        for n in np.flatnonzero(far)
    ]
    some = ", ".join(sites[:_NAMED]) + (f" and {len(sites) - _NAMED} more" * (len(sites) > _NAMED))
    sentence = (
        f"The released counts of '{_group(plan)}' differ from those that the study expects at "
        f"{some}. Intervals are based on the counts, but the plan and its forecast are for other "
        "groups. Check that the level has the same name in the tables."
    )
    return (sentence,)


def _group(plan: Glm) -> str:
    """Return the level that is counted, or its column if levels have no names."""
    entry = plan.columns.group
    return entry.compared[0] or entry.label


def expected_centring(plan: Glm) -> Centring:
    """Return the centring by the groups that the study expects."""
    return Centring(plan.groups, plan.clipping.weights, np.zeros(len(plan.groups.persons)))


def counted_centring(
    plan: Glm, stage: PlannedRelease, release: Release, persons: Array
) -> Centring:
    """Return the contrast's centring in each site by released counts.

    ``persons`` is n_s for the sites that counted, and 0 for the others.
    """
    bound = stage.bound
    assert isinstance(bound, BlocksBound)  # noqa: S101 - for the type checker
    total = float(persons.sum())
    halves = bound.split(release.values * total)["counts"]
    noise = COUNT_NOISE * bound.deviations(release.deviation * total)["counts"]
    found, count_variances = estimate_proportions(
        halves + persons / 2, persons, plan.groups.proportions, noise
    )
    everybody = plan.groups.persons
    missing = np.where(persons > 0, count_variances, np.square(everybody) / 4)
    weights = capped_weights(found, plan.clipping.contrast_reach)
    return Centring(replace(plan.groups, proportions=found), weights, missing)
