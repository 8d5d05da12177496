"""Numbers of participants in groups and cells, and the centre and scale of each column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Release
from consortium.algorithms.describe.entries import Variable
from consortium.base.array import Array
from consortium.kernels.simplex import project_to_simplex

if TYPE_CHECKING:
    from consortium.algorithms.describe.centre import Describe

LEAST_SCALE = 1e-3
"""Smallest scale, where half the distance between a column's limits is 1."""
_CLEAR = 0.5
"""Part of the noise that a number of participants in a bin is reduced by."""
_CLEARLY = 2.0
"""Factor on the noise's variance that a group's distance from the common centre must exceed."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of `describe`. Rows are the groups, and all participants last."""

    persons: Array
    """Participants in each row."""
    persons_noise: Array
    """Standard deviations of their noise."""
    cells: tuple[Array, ...]
    """Participants in the cells of each variable, rows x cells."""
    noise: Array
    """Standard deviation of the noise in a cell, by row."""
    sites: tuple[int, ...]
    """Sites whose participants were counted."""

    @property
    def rows(self) -> int:
        """Number of groups, plus one for all participants if there are groups."""
        return len(self.persons)


@dataclass(frozen=True, eq=False)
class LearnedUnits:
    """Centres and scales of the columns with limits, as they are sent to the sites."""

    centres: Array
    """Groups x d, from -1 to 1."""
    scales: Array
    """Length d."""


def estimate_counts(plan: Describe, release: Release) -> Counts:
    """Return the counts of groups and cells that the first round of `describe` released.

    The groups' numbers are adjusted to the number of all participants, which sites send with noise
    of its own, in proportion to the noise.
    """
    total = float(plan.units_in(release).sum())
    unsure = release.units_deviation * math.sqrt(len(plan.present(release)))
    sums, noise = plan.releases[0].block_sums(release, total)
    many = len(plan.entries.levels)
    persons = np.array([total])
    deviations = np.array([unsure])
    if many > 1:
        persons, deviations = _adjusted(sums["groups"], noise["groups"], total, unsure)
        persons = np.append(persons, total)
        deviations = np.append(deviations, unsure)
    sizes = [many * each.cells for each in plan.entries.variables]
    parts = np.split(sums["cells"], np.cumsum(sizes)[:-1])
    cells = tuple(_with_all(part.reshape(many, -1)) for part in parts)
    rows = np.full(many, noise["cells"])
    if many > 1:
        rows = np.append(rows, noise["cells"] * math.sqrt(many))
    return Counts(persons, deviations, cells, rows, plan.present(release))


def learn_columns(plan: Describe, counts: Counts) -> LearnedUnits:
    """Return the centre of each column in each group, and the column's scale within groups."""
    variables = plan.entries.variables
    pairs = zip(variables, counts.cells, strict=True)
    found = [_learn(plan, each, cells, counts) for each, cells in pairs if each.kind == "number"]
    centres = np.stack([centre for centre, _ in found], axis=1)
    return LearnedUnits(centres, np.array([scale for _, scale in found]))


def _adjusted(groups: Array, noise: float, total: float, unsure: float) -> tuple[Array, Array]:
    """Return the groups' numbers given that of all participants, and their deviations."""
    variance = noise**2
    apart = len(groups) * variance + unsure**2
    gain = variance / apart if apart else 0.0
    persons = groups + gain * (total - float(groups.sum()))
    return persons, np.full(len(groups), math.sqrt(variance * (1 - gain)))


def _with_all(cells: Array) -> Array:
    return cells if len(cells) == 1 else np.vstack([cells, cells.sum(axis=0)])


def _learn(plan: Describe, variable: Variable, cells: Array, counts: Counts) -> tuple[Array, float]:
    """Return the centres of a column in all groups, and its scale, where limits are -1 and 1."""
    filled = cells[:, : variable.filled]
    places = (np.arange(variable.bins) + 0.5) * 2 / variable.bins - 1
    shares = [clear_shares(*each) for each in zip(filled, counts.noise, strict=True)]
    means = np.array([share @ places for share in shares])
    common = float(means[-1])
    spread = float(shares[-1] @ np.square(places - common))
    width = 2 / variable.bins
    many = len(plan.entries.levels)
    centres = np.full(many, common)
    if many > 1:
        noise = counts.noise[:-1] * np.sqrt(np.square(places).sum())
        noise = noise / np.maximum(filled[:-1].sum(axis=1), 1.0)
        apart = means[:-1] - common
        with np.errstate(all="ignore"):
            part = 1 - np.minimum(1.0, _CLEARLY * np.square(noise) / np.square(apart))
        moved = np.where(apart == 0, 0.0, part * apart)
        weights = np.maximum(counts.persons[:-1], 0.0)
        weights = weights / max(float(weights.sum()), 1e-12)
        spread = spread - float(weights @ np.square(moved))
        centres = common + moved
    scale = math.sqrt(max(spread, width**2 / 12, LEAST_SCALE**2))
    return centres, scale


def clear_shares(cells: Array, noise: float) -> Array:
    """Return shares of participants in bins, with numbers reduced by a part of their noise.

    Noise in empty bins near a column's limits would otherwise widen its scale.
    """
    clear = np.maximum(cells - _CLEAR * noise, 0.0)
    total = float(clear.sum())
    if not total > 0:
        return project_to_simplex(cells / max(float(cells.sum()), 1.0))
    return np.asarray(clear / total)
