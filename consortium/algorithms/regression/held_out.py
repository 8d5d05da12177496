"""AUC and calibration of the predicted probabilities on held-out participants.

The score of a participant is the logit of the predicted probability: coefficients that are
stabilized for prediction, and the constant of the participant's site. It is sorted into bins by the
sites, and counts of labels by bin are released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr, ndtri

from consortium.algorithms.base import Array, Release, Result, Table
from consortium.algorithms.findings import Finding, State
from consortium.algorithms.regression.kernels.binned_auc import (
    Estimate,
    estimate_auc,
    estimate_share,
)
from consortium.algorithms.regression.kernels.calibration import CalibrationLine, calibration_line
from consortium.algorithms.regression.kernels.logistic_from_moments import centres_of
from consortium.algorithms.regression.kernels.logistic_groups import (
    TWO_LEVELS,
    Entries,
    entries_of,
)
from consortium.algorithms.regression.kernels.score_bins import ScoreGroups, score_bins
from consortium.base.formatting import number, percent
from consortium.kernels.noisy_least_squares import Fit
from consortium.kernels.noisy_moment import NoisyMoment
from consortium.kernels.simplex import project_above
from consortium.kernels.stabilized_squares import covariance_within, stabilized_squares

if TYPE_CHECKING:
    from consortium.algorithms.regression.centre import Regression

BINS = 16
"""Bins of the score. With normal scores of an AUC of 0.8 they lower it by 0.001."""
ASSUMED_AUC = 0.75
"""AUC of the forecast."""
_FARTHEST = 8.0
_TOGETHER = 2
"""Bins in a row of the table of predicted and observed shares."""
_MOST_COLUMNS = 3
"""Columns of two levels that divide the groups of the score."""
_UNKNOWN = 0.9
"""Width of an interval of a share or an AUC without information."""
_MOST_ERROR = 1.0
"""Largest standard error of a calibration coefficient that is reported."""
_WIDEST_BINS = 1.25
"""Largest mean width of a bin, in logits, with which calibration is reported."""
_LEAST_TRAINING = 1.0


def training_release(plan: Regression, release: Release) -> Release:
    """Return a regression's mean over training participants, whose number a release counts.

    The statistic's first numbers are the moment, and the last ones the counts.
    """
    sites = len(plan.shape.units)
    whole = float(plan.units_in(release).sum())
    weight = plan.moment_norm
    present = list(plan.present(release))
    counted = release.values[-sites:][present] * whole / weight
    units = np.array(plan.training_shape.units, dtype=np.float64)
    units[present] = project_above(counted, _LEAST_TRAINING)
    scale = whole / float(units[present].sum())
    return replace(
        release,
        values=release.values[:-sites] * scale,
        deviation=release.deviation * scale,
        units=tuple(units.tolist()),
        units_deviation=release.deviation * whole / weight,
    )


def over_training(plan: Regression, release: Release, training: Release) -> Release:
    """Return the mean over training participants of a release over all participants."""
    trained = float(plan.units_in(training).sum())
    scale = float(plan.units_in(release).sum()) / trained
    return replace(release, values=release.values * scale, deviation=release.deviation * scale)


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """How a held-out participant's score is computed, and its bins."""

    slopes: Array
    """Of all explanatory entries, length P."""
    constants: Array
    """One for each site of the study, one for all, or none. Length S."""
    edges: Array
    means: Array
    """Mean score in each bin."""
    by_site: float
    """AUC of predicting by the site's constant only; 0.5 without sites' constants."""

    def query_weights(self, plan: Regression) -> Array:
        """Return the score's weights on a participant's z without the label."""
        return np.concatenate([self.slopes, self.constants / plan.intercept])


def score_model(plan: Regression, fit: Fit, factor: float, sites: tuple[int, ...]) -> ScoreModel:
    """Return the score by a training release.

    Parameters
    ----------
    factor : float
        From least-squares to logistic coefficients.
    sites : tuple of int
        Sites with a constant of their own in the fit.
    """
    slopes = factor * stabilized_squares(fit.moment)
    entries = entries_of(fit)
    weights = _in_moment(fit.moment, slopes)
    spread = math.sqrt(max(float(weights @ covariance_within(fit.moment) @ weights), 0.0))
    if not len(entries.parts):
        groups = ScoreGroups(np.ones(1), np.zeros(1), spread)
        return _binned(
            plan, entries, slopes=slopes, groups=groups, constants=np.zeros(0), by_site=0.5
        )
    labels, scores = _group_means(fit.moment, entries, slopes, weights, spread)
    centres = centres_of(spread, labels)
    groups = ScoreGroups(entries.parts, centres, spread)
    own = centres - scores
    constants = np.full(plan.constants, float(entries.parts @ own))
    constants[list(sites) if plan.constants > 1 else [0]] = own
    by_site = _auc_of_groups(entries.parts, labels)
    return _binned(
        plan, entries, slopes=slopes, groups=groups, constants=constants, by_site=by_site
    )


def _binned(
    plan: Regression,
    entries: Entries,
    *,
    slopes: Array,
    groups: ScoreGroups,
    constants: Array,
    by_site: float,
) -> ScoreModel:
    """Divide the groups by the columns of two levels that matter most, and choose bins."""
    two = (entries.squares >= TWO_LEVELS) & ~plan.several
    sizes = np.where(two, np.square(slopes) * entries.squares, 0.0)
    for place in np.argsort(-sizes, kind="stable")[:_MOST_COLUMNS]:
        if sizes[place] > 0:
            means = entries.centres[place] if len(entries.parts) else np.zeros(1)
            ones = (1.0 + np.clip(means, -1.0, 1.0)) / 2.0
            groups = groups.split(float(slopes[place]), np.resize(ones, len(groups.parts)))
    edges, means = score_bins(groups, BINS)
    return ScoreModel(slopes, constants, edges, means, by_site)


def _in_moment(moment: NoisyMoment, slopes: Array) -> Array:
    """Return slopes in the moment's coordinates."""
    count = moment.constants.start
    return np.asarray(np.linalg.pinv(moment.coefficients[: moment.entries, :count]) @ slopes)


def _group_means(
    moment: NoisyMoment, entries: Entries, slopes: Array, weights: Array, spread: float
) -> tuple[Array, Array]:
    """Return means of labels and of slopes times entries in each group, without the noise's part.

    Means of small groups are mostly noise and chance, and are drawn to the mean of all.
    """
    parts = np.where(moment.parts > 0, moment.parts, 1.0)
    noise = moment.deviation / np.sqrt(2.0) / (parts * moment.weights[moment.constants])
    persons = np.maximum(parts * moment.units, 1.0)
    labels = np.clip(entries.means, -1.0, 1.0)
    of_labels = np.square(noise / moment.weights[-1]) + (1.0 - np.square(labels)) / persons
    of_scores = np.square(noise * float(np.linalg.norm(weights))) + spread**2 / persons
    return (
        _shrunk(entries.means, entries.parts, of_labels),
        _shrunk(slopes @ entries.centres, entries.parts, of_scores),
    )


def _shrunk(values: Array, parts: Array, variances: Array) -> Array:
    middle = float(parts @ values)
    between = max(float(parts @ (np.square(values - middle) - variances)), 0.0)
    gain = between / np.maximum(between + variances, 1e-300)
    return middle + gain * (values - middle)


def _auc_of_groups(parts: Array, labels: Array) -> float:
    """Return the AUC if every participant has the score of the group."""
    ones = np.clip((1.0 + labels) / 2.0, 0.0, 1.0)
    order = np.argsort(ones, kind="stable")
    positives = (parts * ones)[order]
    negatives = (parts * (1.0 - ones))[order]
    if positives.sum() <= 0 or negatives.sum() <= 0:
        return 0.5
    below = np.cumsum(negatives) - negatives / 2.0
    return float(positives @ below / (positives.sum() * negatives.sum()))


@dataclass(frozen=True, eq=False)
class HeldOutCounts:
    """Released numbers of held-out participants in each bin."""

    positives: Array
    negatives: Array
    deviation: float
    """Of the noise in each of them."""

    @classmethod
    def of(cls, plan: Regression, release: Release) -> HeldOutCounts:
        """Turn a mean over all participants into numbers."""
        whole = float(plan.units_in(release).sum())
        negatives, positives = (release.values * whole).reshape(2, BINS)
        return cls(positives, negatives, release.deviation * whole)


def with_held_out(
    plan: Regression, result: Result, model: ScoreModel, counts: HeldOutCounts
) -> Result:
    """Add AUC and calibration on held-out participants to a result."""
    critical = -float(ndtri((1.0 - plan.parameters.confidence) / 2.0))
    auc = _auc_finding(model, counts, critical)
    arrays = {
        **result.arrays,
        "predictor_constants": model.constants,
        "held_out": np.vstack([counts.negatives, counts.positives]),
        "bin_edges": model.edges,
        "bin_scores": model.means,
    }
    tables = {
        "auc": _auc_table(plan, model, counts, auc, critical),
        "calibration": _calibration_table(plan, model, counts, critical),
        "predicted": _predicted_table(plan, model, counts, critical),
        "roc": _roc_table(plan, counts, critical),
    }
    captions = replace(
        result.captions,
        headline=f"{result.captions.headline} {_headline(auc)}".strip(),
        found=result.captions.found or auc.state == "found",
    )
    numbers = {**result.numbers, "held_out_noise": counts.deviation}
    return replace(
        result,
        arrays=arrays,
        numbers=numbers,
        tables={**result.tables, **tables},
        captions=captions,
    )


def _auc_finding(model: ScoreModel, counts: HeldOutCounts, critical: float) -> Finding:
    found = estimate_auc(counts.positives, counts.negatives, counts.deviation, critical)
    return _finding(found, found.low > max(0.5, model.by_site))


def _finding(estimate: Estimate, found: bool) -> Finding:
    state: State = "found" if found else "not found"
    if estimate.high - estimate.low >= _UNKNOWN:
        state = "withheld"
    return Finding(estimate.value, estimate.low, estimate.high, state)


def _headline(auc: Finding) -> str:
    if not auc.reported:
        return "The noise leaves no AUC on held-out participants."
    interval = f"{number(auc.low)} to {number(auc.high)}"
    found = "" if auc.state == "found" else ", which is not found to be better than chance or site"
    return f"The AUC on held-out participants is {number(auc.value)} ({interval}){found}."


def _auc_table(
    plan: Regression,
    model: ScoreModel,
    counts: HeldOutCounts,
    auc: Finding,
    critical: float,
) -> Table:
    noise = counts.deviation * float(np.sqrt(BINS))
    sums = float(counts.positives.sum()), float(counts.negatives.sum())
    persons = [
        Finding(
            max(many, 0.0), max(many - critical * noise, 0.0), max(many, 0.0) + critical * noise
        )
        for many in sums
    ]
    rows: list[tuple[str, Finding]] = [("AUC", auc)]
    if plan.constants > 1:
        rows.append(("AUC of predicting by the site only", Finding(model.by_site)))
    rows += [("participants with label 1", persons[0]), ("participants with label -1", persons[1])]
    return Table(
        "Prediction of held-out participants, who trained nothing, with "
        f"{_level(plan)} intervals for the noise of privacy and for chance. The AUC is found if "
        "its interval is above 0.5 and above the AUC of predicting by the site only. Intervals of "
        "participants account for noise.",
        ("of", "value"),
        tuple(rows),
    )


def _calibration_table(
    plan: Regression, model: ScoreModel, counts: HeldOutCounts, critical: float
) -> Table:
    inner = slice(1, -1)  # the mean score beyond the outermost edges is not known
    given = (
        counts.positives[inner],
        counts.negatives[inner],
        model.means[inner],
        counts.deviation,
    )
    narrow = float(np.diff(model.edges).mean()) <= _WIDEST_BINS
    large = calibration_line(*given, slope=False) if narrow else None
    both = calibration_line(*given, slope=True) if narrow else None
    return Table(
        "Calibration of predicted probabilities on held-out participants, with "
        f"{_level(plan)} intervals. Perfectly calibrated predictions have an intercept of 0 and a "
        "slope of 1. A slope below 1 means predictions that are too extreme. A value is found if "
        "its interval excludes that of perfect calibration. Participants with the lowest and the "
        "highest predictions, beyond the outermost bins' edges, are omitted.",
        ("of", "value"),
        (
            ("intercept for a slope of 1", _coefficient(large, 0, 0.0, critical)),
            ("slope", _coefficient(both, 1, 1.0, critical)),
        ),
    )


def _coefficient(
    line: CalibrationLine | None, place: int, perfect: float, critical: float
) -> Finding:
    if line is None or not line.errors[place] <= _MOST_ERROR:
        return Finding(state="withheld")
    value = float(line.values[place])
    half = critical * float(line.errors[place])
    return Finding(
        value, value - half, value + half, "found" if abs(value - perfect) > half else "not found"
    )


def _predicted_table(
    plan: Regression, model: ScoreModel, counts: HeldOutCounts, critical: float
) -> Table:
    """Return predicted and observed shares of label 1, in joined bins."""
    return Table(
        "Held-out participants by predicted probability of label 1, and the observed share with "
        f"label 1 with its {_level(plan)} interval.",
        ("participants with", "predicted", "observed"),
        tuple(_predicted_rows(model, counts, critical)),
        curve=("predicted", "observed"),
    )


def _predicted_rows(
    model: ScoreModel, counts: HeldOutCounts, critical: float
) -> Iterator[tuple[str, float, Finding]]:
    ends = [0.0, *expit(model.edges[_TOGETHER - 1 :: _TOGETHER]).tolist(), 1.0]
    noise = _TOGETHER * counts.deviation**2
    for row, start in enumerate(range(0, BINS, _TOGETHER)):
        bins = slice(start, start + _TOGETHER)
        sums = float(counts.positives[bins].sum()), float(counts.negatives[bins].sum())
        predicted = float(expit(model.means[bins]).mean())
        observed = estimate_share(*sums, (noise, noise), critical)
        name = f"{percent(ends[row])} to {percent(ends[row + 1])}"
        yield name, predicted, _finding(observed, True)


def _roc_table(plan: Regression, counts: HeldOutCounts, critical: float) -> Table:
    """Return the ROC curve at the edges of the bins."""
    return Table(
        "ROC curve on held-out participants: sensitivity and false positive rate if all from a "
        f"bin on are called positive, with {_level(plan)} intervals.",
        ("false positive rate", "sensitivity"),
        tuple(
            (
                _rate(counts.negatives, start, counts.deviation, critical),
                _rate(counts.positives, start, counts.deviation, critical),
            )
            for start in range(BINS - 1, 0, -1)
        ),
        curve=("false positive rate", "sensitivity"),
    )


def _rate(cells: Array, start: int, deviation: float, critical: float) -> Finding:
    noise = deviation**2 * (BINS - start), deviation**2 * start
    sums = float(cells[start:].sum()), float(cells[:start].sum())
    return _finding(estimate_share(*sums, noise, critical), True)


def _level(plan: Regression) -> str:
    return f"{100 * plan.parameters.confidence:g} %"


def forecast_auc(persons: float, prevalence: float, noise: float) -> tuple[float, float]:
    """Return standard deviations of the AUC of normal scores: by the noise, and by chance.

    Parameters
    ----------
    persons : float
        Number of held-out participants.
    noise : float
        Standard deviation of the noise in a number of participants.
    """
    apart = float(np.sqrt(2.0) * ndtri(ASSUMED_AUC))
    grid = np.linspace(-_FARTHEST, _FARTHEST, 2001)
    edges = np.interp(np.arange(1, BINS) / BINS, (ndtr(grid) + ndtr(grid - apart)) / 2.0, grid)
    positives, negatives = (
        np.diff(ndtr(edges - centre), prepend=0.0, append=1.0) for centre in (apart, 0.0)
    )
    below = np.cumsum(negatives) - negatives / 2.0 - ASSUMED_AUC
    above = 1.0 - np.cumsum(positives) + positives / 2.0 - ASSUMED_AUC
    many = max(persons * prevalence, 1.0)
    others = max(persons * (1.0 - prevalence), 1.0)
    by_noise = noise * np.sqrt(below @ below / many**2 + above @ above / others**2)
    chance = np.square(below) @ positives / many + np.square(above) @ negatives / others
    return float(by_noise), float(np.sqrt(chance))
