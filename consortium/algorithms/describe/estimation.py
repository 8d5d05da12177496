"""Estimates of means and standard deviations by group, with their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Release
from consortium.algorithms.describe.entries import Variable
from consortium.algorithms.describe.kernels.clipping_bias import (
    mean_bias,
    square_bias,
    usual_lost,
)
from consortium.algorithms.describe.kernels.quantiles import cell_shares
from consortium.algorithms.describe.learned import Counts, LearnedUnits
from consortium.base.array import Array

if TYPE_CHECKING:
    from consortium.algorithms.describe.centre import Describe

_LEAST_KEPT = 0.2
_LEAST_DOUBT = 0.01
"""Standard deviation that is added to that of the usual mean of 1 - c."""
_KURTOSIS = 3.0, 30.0
"""Limits of a column's fourth moment over the square of its variance."""


@dataclass(frozen=True, eq=False)
class MomentEstimates:
    """Means and variances of the columns with limits, where limits are -1 and 1. Rows x d."""

    means: Array
    mean_noise: Array
    """Standard deviations of noise and clipping bias."""
    variances: Array
    variance_noise: Array
    persons: Array
    """Participants with a value."""
    persons_noise: Array
    """Standard deviations of their noise."""
    kurtosis: Array
    scales: Array
    """Learned scales of the columns, length d."""

    @property
    def mean_errors(self) -> Array:
        """Standard errors of the means, with chance among participants."""
        chance = np.maximum(self.variances, 0.0) / np.maximum(self.persons, 1.0)
        return np.asarray(np.sqrt(np.square(self.mean_noise) + chance))

    @property
    def variance_errors(self) -> Array:
        """Standard errors of the variances, with chance among participants."""
        chance = np.square(self.variances) * (self.kurtosis - 1) / np.maximum(self.persons, 1.0)
        return np.asarray(np.sqrt(np.square(self.variance_noise) + chance))


@dataclass(frozen=True)
class _Estimate:
    """A mean and a variance, each with its noise."""

    mean: float
    mean_noise: float
    variance: float
    variance_noise: float


def estimate_moments(
    plan: Describe, counts: Counts, learned: LearnedUnits, release: Release
) -> MomentEstimates:
    """Return means and variances of all groups and of all participants."""
    clipped = _Clipped.read(plan, counts, learned, release)
    numbers = [
        (each, cells)
        for each, cells in zip(plan.entries.variables, counts.cells, strict=True)
        if each.kind == "number"
    ]
    groups = len(plan.entries.levels)
    shape = (counts.rows, len(numbers))
    names = [field.name for field in fields(MomentEstimates) if field.name != "scales"]
    found = {name: np.zeros(shape) for name in names}
    for column, (variable, cells) in enumerate(numbers):
        filled = cells[:, : variable.filled]
        found["persons"][:, column] = present(counts, variable, cells)
        missing = counts.noise if variable.gaps else np.zeros(counts.rows)
        found["persons_noise"][:, column] = np.hypot(counts.persons_noise, missing)
        parts = []
        form = _form(variable, cell_shares(filled[-1]))
        for row in range(groups):
            binned = _from_bins(variable, filled[row], float(counts.noise[row]))
            own = clipped.estimate(row, column, float(found["persons"][row, column]), form)
            parts.append(_combine(own, binned))
        if counts.rows > groups:
            parts.append(_pool(parts, found["persons"][:groups, column], counts))
        found["means"][:, column] = [part.mean for part in parts]
        found["mean_noise"][:, column] = [part.mean_noise for part in parts]
        found["variances"][:, column] = [part.variance for part in parts]
        found["variance_noise"][:, column] = [part.variance_noise for part in parts]
        found["kurtosis"][:, column] = form.kurtosis
    return MomentEstimates(**found, scales=learned.scales)


def present(counts: Counts, variable: Variable, cells: Array) -> Array:
    """Return the number of described participants of each row with a value; at least 1."""
    missing = cells[:, -1] if variable.gaps else 0.0
    return np.asarray(np.maximum(counts.persons - missing, 1.0))


@dataclass(frozen=True, eq=False)
class _Clipped:
    """Sums of the second round, over participants."""

    values: Array
    squares: Array
    """Sums of clipped values and of their squares, groups x d."""
    noise: float
    squares_noise: float
    lost: Array
    """Mean of 1 - c of each group, with c the clipping factors."""
    summed: Array
    """Participants whose values are in the sums, over those who were counted, of each group."""
    unsure: Array
    """Relative standard deviation of the numbers of participants in the sums."""
    learned: LearnedUnits
    counts: Counts
    gaps: tuple[bool, ...]

    @classmethod
    def read(
        cls, plan: Describe, counts: Counts, learned: LearnedUnits, release: Release
    ) -> _Clipped:
        """Return the sums of a release."""
        persons = float(plan.units_in(release).sum())
        sums, noise = plan.releases[1].block_sums(release, persons)
        groups, numbers = learned.centres.shape
        moments = sums["moments"].reshape(groups, 2, numbers)
        root = math.sqrt(2.0) * plan.reach
        lost, summed, unsure = _persons_in_sums(plan, counts, release, sums, noise)
        return cls(
            values=moments[:, 0],
            squares=root * moments[:, 1],
            noise=noise["moments"],
            squares_noise=root * noise["moments"],
            lost=lost,
            summed=summed,
            unsure=unsure,
            learned=learned,
            counts=counts,
            gaps=tuple(each.gaps for each in plan.entries.numbers),
        )

    def estimate(self, row: int, column: int, persons: float, form: _Form) -> _Estimate:
        """Return mean and variance of a column in a group with this many values."""
        numbers = len(self.gaps)
        scale = float(self.learned.scales[column])
        lost = float(self.lost[row])
        missed = float(self.counts.noise[row]) if self.gaps[column] else 0.0
        unsure = math.hypot(float(self.unsure[row]), missed / persons)
        summed = persons * float(self.summed[row])
        divisor = summed * (1 - lost)
        mean = float(self.values[row, column]) / divisor
        noise = self.noise / divisor
        square = float(self.squares[row, column]) / (summed * (1 - lost) ** 2)
        variance = square - mean**2 + noise**2
        size = max(variance, 1.0)
        mean_noise = (
            noise,
            mean_bias(lost, numbers, form.skewness) * math.sqrt(size),
            mean * unsure,
        )
        variance_noise = (
            self.squares_noise / summed,
            2 * mean * noise,
            square_bias(lost, numbers, form.kurtosis) * size,
            square * unsure,
        )
        return _Estimate(
            float(self.learned.centres[row, column]) + scale * mean,
            scale * math.hypot(*mean_noise),
            scale**2 * variance,
            scale**2 * math.hypot(*variance_noise),
        )


def _persons_in_sums(
    plan: Describe,
    counts: Counts,
    release: Release,
    sums: dict[str, Array],
    noise: dict[str, float],
) -> tuple[Array, Array, Array]:
    """Return the mean of 1 - c, the part of the counted participants, and its relative deviation.

    If a site answered only one of the rounds, the participants in the sums are known from the
    clipping factors, whose mean is then assumed to be the usual one.
    """
    groups = len(sums["kept"])
    persons = np.maximum(counts.persons[:groups], 1.0)
    if plan.present(release) == counts.sites:
        lost = _lost(plan, counts, sums["kept"], noise["kept"])
        return lost, np.ones(groups), counts.persons_noise[:groups] / persons
    lost = np.full(groups, usual_lost(plan.margin) if plan.shape.noise else 0.0)
    summed = np.maximum(sums["kept"] / (1 - lost), 1.0)
    return lost, summed / persons, noise["kept"] / summed


def _lost(plan: Describe, counts: Counts, kept: Array, noise: float) -> Array:
    """Return the mean of 1 - c of each group, shrunk to the usual one in proportion to its noise.

    Without noise nothing is clipped.
    """
    groups = len(kept)
    if not plan.shape.noise:
        return np.zeros(groups)
    persons = np.maximum(counts.persons[:groups], 1.0)
    usual = usual_lost(plan.margin)
    prior = (2 * usual + _LEAST_DOUBT) ** 2
    variance = (noise**2 + np.square(counts.persons_noise[:groups])) / np.square(persons)
    found = 1 - kept / persons
    shrunk = (found * prior + usual * variance) / (prior + variance)
    return np.asarray(np.clip(shrunk, 0.0, 1 - _LEAST_KEPT))


def _places(variable: Variable) -> Array:
    """Return the middles of the bins, where limits are -1 and 1."""
    return np.asarray((np.arange(variable.bins) + 0.5) * 2 / variable.bins - 1)


def _from_bins(variable: Variable, cells: Array, noise: float) -> _Estimate:
    """Return mean and variance as if participants were in the middles of their bins."""
    places = _places(variable)
    total = float(cells.sum())
    if total <= 2 * noise * math.sqrt(len(cells)) or total < 1:
        return _Estimate(0.0, math.inf, 0.0, math.inf)
    width = 2 / variable.bins / math.sqrt(12)
    mean = float(cells @ places) / total
    around = np.square(places - mean)
    mean_noise = noise * math.sqrt(float(around.sum())) / total
    variance = float(cells @ around) / total + mean_noise**2
    own = noise * math.sqrt(float(np.square(around - variance).sum())) / total
    rounding = 2 * width * math.sqrt(max(variance, width**2))
    return _Estimate(mean, math.hypot(mean_noise, width), variance, math.hypot(own, rounding))


def _combine(one: _Estimate, other: _Estimate) -> _Estimate:
    """Return both estimates weighted by their precision."""
    mean, mean_noise = _weighted(one.mean, one.mean_noise, other.mean, other.mean_noise)
    variance, noise = _weighted(
        one.variance, one.variance_noise, other.variance, other.variance_noise
    )
    return _Estimate(mean, mean_noise, variance, noise)


def _weighted(one: float, error: float, other: float, its_error: float) -> tuple[float, float]:
    if not error or not math.isfinite(its_error):
        return one, error
    ratio = (error / its_error) ** 2
    part = 1 / (1 + ratio)
    return part * one + (1 - part) * other, error * math.sqrt(part)


def _pool(parts: list[_Estimate], persons: Array, counts: Counts) -> _Estimate:
    """Return mean and variance of all participants from those of the groups."""
    weights = persons / persons.sum()
    means, mean_noise, variances, noise = np.array(
        [(p.mean, p.mean_noise, p.variance, p.variance_noise) for p in parts]
    ).T
    mean = float(weights @ means)
    apart = means - mean
    unsure = counts.persons_noise[: len(parts)] / persons.sum()
    return _Estimate(
        mean,
        math.hypot(*(weights * mean_noise), *(apart * unsure)),
        float(weights @ (variances + np.square(apart))),
        math.hypot(
            *(weights * noise), *(2 * weights * apart * mean_noise), *(np.square(apart) * unsure)
        ),
    )


@dataclass(frozen=True)
class _Form:
    """Skewness and kurtosis of a column."""

    skewness: float
    kurtosis: float


def _form(variable: Variable, shares: Array) -> _Form:
    """Return the skewness and kurtosis of shares of participants in bins."""
    places = _places(variable)
    apart = places - float(shares @ places)
    variance = float(shares @ np.square(apart))
    least, most = _KURTOSIS
    if not variance > 0:
        return _Form(0.0, least)
    kurtosis = float(shares @ apart**4) / variance**2
    return _Form(float(shares @ apart**3) / variance**1.5, min(max(kurtosis, least), most))
