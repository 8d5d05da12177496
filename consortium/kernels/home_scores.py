"""Scores of a hospital's own participants against a chart: how far each is from its expected value.

A chart has slopes, or curves, and a standard deviation of every outcome. The hospital's own level
of an outcome is the mean of its participants beyond the chart's expected values. Where the chart
has a location, and the deviation between hospitals, the level is the posterior mean of a normal
distribution. Scores contain the hospital's data without noise, so they must stay there.
"""

from dataclasses import dataclass

import numpy as np

from consortium.base.array import Array


@dataclass(frozen=True, eq=False)
class HomeScores:
    """Scores of participants, in standard deviations of each outcome."""

    scores: Array
    """Value less expected value, V x n; NaN where the value or a column is missing."""
    levels: Array
    """The hospital's own level beyond the chart's expected values, length V."""
    errors: Array
    """Standard error of the level, length V."""


def home_scores(
    values: Array,
    expected: Array,
    whole: Array,
    chosen: Array,
    location: Array | None = None,
    between: Array | None = None,
) -> HomeScores:
    """Compute scores of participants against expected values.

    Parameters
    ----------
    values : array, V x n
        Outcomes in the chart's standard deviations; NaN if missing.
    expected : array, V x n
        Expected values by the columns that scores are adjusted for, without the location.
    whole : array, V x n
        Expected values by all columns, from which the hospital's level is estimated.
    chosen : array of bool, length n
        Participants from whom the level is estimated.
    location : array, optional
        The chart's location, length V. Without one, the level is the hospital's mean.
    between : array, optional
        Standard deviation of levels between hospitals, length V. Together with ``location``.

    Returns
    -------
    HomeScores
        NaN for an outcome that none of the chosen participants has, if there is no location.
    """
    beyond = np.where(chosen, values - whole, np.nan)
    counts = np.isfinite(beyond).sum(axis=1)
    known = np.maximum(counts, 1)
    levels = np.where(np.isfinite(beyond), beyond, 0.0).sum(axis=1) / known
    levels = np.where(counts > 0, levels, np.nan)
    errors = np.where(counts > 0, 1 / np.sqrt(known), np.inf)
    if location is not None and between is not None:
        prior = np.square(between)
        kept = prior / (prior + np.square(errors))
        levels = location + kept * (np.where(counts > 0, levels, location) - location)
        errors = np.sqrt(np.where(counts > 0, kept / known, prior))
    return HomeScores(values - expected - levels[:, None], levels, errors)
