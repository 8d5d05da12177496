"""Results of the first round: location and scale of the outcomes, and the covariate adjustment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consortium.algorithms import coverage
from consortium.algorithms.base import PlannedRelease, Release
from consortium.algorithms.glm.centring import Centring
from consortium.algorithms.glm.kernels.contrast_regression import SITE_VARIANCE, TOTAL_DEVIATION
from consortium.algorithms.glm.kernels.covariate_adjustment import Adjustment, CovariateSums, adjust
from consortium.algorithms.glm.kernels.learned_norms import (
    MISSING_WIDTH,
    STATED_WIDTH,
    LearnedNorms,
    LookSums,
    learn_norms,
    squared_norm_ratio,
)
from consortium.algorithms.glm.ring import pair_weight
from consortium.base.array import Array
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.noisy_shares import EstimatedShares
from consortium.privacy.block_bounds import Block, BlocksBound

if TYPE_CHECKING:
    from consortium.algorithms.glm.centre import Glm

_LEFT_OF_WAY = 0.07  # share of a large shift that clipping leaves uncorrected
_LEAST_INFORMATION = 0.1  # relative to that of units whose rows are all of one group
_LEAST_SPREAD = 0.03  # smallest ŝ² of a slope's column
_MOST_TOTAL = 100.0  # relative to the usual variance


@dataclass(frozen=True, eq=False)
class Learned:
    """Values from the first rounds of `glm` that later rounds use."""

    norms: LearnedNorms
    location: Array
    scales: Array
    """Location and scale of the outcomes for the last round, in the vector's unit. Length V."""
    adjustment: Adjustment
    noise: dict[str, float]
    """Standard deviation of the noise in contrast and moment, in sums over participants; 0 without
    covariates."""
    spread: float
    """ŝ, standard deviation of a slope's column within sites, given covariates. Otherwise 1."""
    total: float
    """Variance of the outcomes about the learned centres, including differences of sites, relative
    to the usual one. Of outcomes in learned standard deviations."""
    ratio: float
    """Learned standard deviations relative to the stated ones; 1 if none are stated, as the learned
    ones are then the unit."""
    unit: float
    """Size of one of ``scales`` in the unit of reported effects, the standard deviation within
    groups and sites."""

    def missed(self, squares: Array | float = 1.0) -> Array | float:
        """Return the variance of the learned centres, in squared learned standard deviations.

        Formula: noise variance + mean of (0.07 d)², d being the distance from the initial centre.
        Clipping in the first round shortens participants who are far from the initial centre most,
        so the learned centre does not move the whole distance. The 0.07 is a choice.

        Parameters
        ----------
        squares : array or float
            Σ a² for means of outcomes with weights a; 1 for single outcomes.
        """
        way = _LEFT_OF_WAY * self.norms.shift / self.norms.factor
        return self.norms.missed(squares) + float(np.mean(np.square(way)))

    def heard(self, plan: Glm) -> dict[str, Array]:
        """Return the arguments of the last round's query."""
        found = {"location": self.location, "scales": self.scales}
        if plan.design.clipped_columns:
            found["centres"] = self.adjustment.centres
        if plan.covariates:
            found["slopes"] = self.adjustment.slopes
        return found | ({"spread": np.array([self.spread])} if plan.columns.slope else {})


def persons_in(plan: Glm, release: Release) -> Array:
    """Return the estimated n_s of the sites in a release, and 0 for the others."""
    counts = np.zeros(len(plan.shape.units))
    counts[list(plan.present(release))] = plan.units_in(release)
    return counts


def read_first_round(
    plan: Glm, centring: Centring, stage: PlannedRelease, release: Release
) -> Learned:
    """Return location, scale and covariate adjustment from the sums of the first round."""
    answered = centring.among(persons_in(plan, release))
    persons = answered.groups.persons
    sums, noise = stage.block_sums(release, float(persons.sum()))
    norms = _norms(plan, persons, sums, noise)
    # One standard deviation is added, as noise would otherwise look like site differences.
    kept = (float(sums["kept"][0]) + noise["kept"]) / float(persons.sum())
    total = _total(plan, norms, kept, block_of(stage, "location").norm)
    start = plan.deviation
    columns = plan.columns
    adjustment, own = _adjust(plan, answered, sums, noise)
    spread = 1.0
    if columns.slope:
        left = adjustment.information * (1 - adjustment.explained) / float(persons.sum())
        spread = float(np.sqrt(max(left, _LEAST_SPREAD)))
    ratio = norms.factor if plan.in_stated_units else 1.0
    unit = plan.narrowed * TOTAL_DEVIATION * ratio
    location = columns.location + start * norms.shift
    scales = start * norms.factor
    return Learned(
        norms=norms,
        location=location,
        scales=scales,
        adjustment=adjustment,
        noise=own,
        spread=spread,
        total=total,
        ratio=ratio,
        unit=unit,
    )


def block_of(stage: PlannedRelease, name: str) -> Block:
    """Return the bound of a block of a release."""
    assert isinstance(stage.bound, BlocksBound)  # noqa: S101 - for the type checker
    return stage.bound.block(name)


def _total(plan: Glm, norms: LearnedNorms, kept: float, reach: float) -> float:
    """Return the variance about the learned centres, relative to the usual one.

    It is at least the part within sites.
    """
    usual = plan.outcomes * plan.outcome_correlation.root
    about_start = squared_norm_ratio(max(kept, 0.0), reach, plan.outcome_correlation)
    centre = float(np.square(plan.outcome_correlation.encode(norms.shift[:, None])).sum()) / usual
    found = (about_start - centre) / norms.factor**2
    return float(np.clip(found, 1 - SITE_VARIANCE, _MOST_TOTAL))


def _norms(
    plan: Glm, persons: Array, sums: dict[str, Array], noise: dict[str, float]
) -> LearnedNorms:
    own = {name: noise[name] for name in ("location", "kept", "size")}
    kept = float(sums["kept"][0])
    size = float(sums["size"][0])
    shares = _shares(plan, sums, noise, float(persons.sum()))
    look = LookSums(sums["location"], kept, size, shares, own)
    pairs = pair_weight(persons)
    width = STATED_WIDTH if plan.in_stated_units else MISSING_WIDTH
    return learn_norms(
        sums=look,
        outcome_correlation=plan.outcome_correlation,
        persons=float(persons.sum()),
        pairs=pairs,
        width=width,
        most=plan.most_log,
    )


def _shares(
    plan: Glm, sums: dict[str, Array], noise: dict[str, float], participants: float
) -> EstimatedShares:
    """Return the estimated shares of participants who have each outcome; 1 without gaps."""
    if coverage.ABSENT not in sums:
        return EstimatedShares(np.ones(plan.outcomes), np.zeros(plan.outcomes))
    return coverage.estimate_coverage(
        sums[coverage.ABSENT] / participants,
        noise[coverage.ABSENT] / participants,
        plan.parameters.views,
        plan.shape,
        plan.parameters.outcome_views,
    )


def _adjust(
    plan: Glm, centring: Centring, sums: dict[str, Array], noise: dict[str, float]
) -> tuple[Adjustment, dict[str, float]]:
    """Return the covariate adjustment and its noise; nothing is adjusted without covariates."""
    persons = centring.groups.persons
    released = plan.released_means
    p = plan.covariates
    means = np.zeros((len(persons), len(released)))
    means[:, released] = sums.get("means", np.zeros(0)).reshape(len(persons), -1)
    own: dict[str, Any] = {n: noise.get(n, 0.0) for n in ("contrast", "moment", "means", "column")}
    covariates = CovariateSums(
        contrast=sums.get("contrast", np.zeros(0)),
        moment=unpack_symmetric(sums["moment"]) if p else np.zeros((0, 0)),
        means=means,
        noisy=released,
        noise=own,
        column=float(sums["column"][0]) if plan.columns.slope else None,
    )
    information = centring.information[0]
    if plan.design.grouped and not plan.columns.slope:
        information = max(float(sums["column"][0]), _LEAST_INFORMATION * information)
    return adjust(covariates, persons, centring.weights, information), own
