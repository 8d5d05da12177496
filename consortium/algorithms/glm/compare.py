"""Messages to a site's staff, before they approve, about differences of the study from their data.

The messages are shown only at the site. They change nothing that the site sends.
"""

import warnings

import numpy as np

from consortium.algorithms.base import Serious, SiteData
from consortium.algorithms.glm.entries import Columns
from consortium.algorithms.glm.kernels.contrast_regression import TOTAL_DEVIATION
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.rows import present_rows, rows_of
from consortium.base.array import Array
from consortium.base.formatting import number

_OFF = 0.25  # tolerated difference of the second group's fraction from the expected one
_NAMED = 5
_FEW = 5  # participants: no mean is reported for fewer
_UNEVEN = 0.25  # asymmetry of the 10th and 90th percentiles around the median
_CHANCE = 2.0  # divided by √n
_GAP_OFF = 0.3  # standard deviations
_FAR = 2.0  # tolerated distance of a location, in standard deviations
_FACTOR = 4.0  # tolerated ratio of standard deviations


def compare_presence(columns: Columns, data: SiteData, expected: float) -> tuple[str, ...]:
    """Return a warning if a group has no participants here, or far more or fewer than expected.

    Parameters
    ----------
    expected : float
        Fraction of the participants in the second group, as the study states it for this site.
    """
    group = _fractions(columns, data)
    name = columns.group.label
    if not len(group):
        return ()
    found = float(group.mean())
    if found in (0.0, 1.0):
        where = "in" if found else "outside"
        sentence = (
            f"all {len(group)} participants here are {where} the group '{name}', so this data set "
            "has no information on the difference. Check that the levels are spelled as in the "
            "study before you approve it."
        )
        return (Serious(sentence),)
    if abs(found - expected) <= _OFF:
        return ()
    sentence = (
        f"{100 * found:.0f} % of the participants here are in the group '{name}', and the study "
        f"expects {100 * expected:.0f} %. A wrong expectation costs precision only. Compare the "
        "names of the levels with the study's."
    )
    return (sentence,)


def _fractions(columns: Columns, data: SiteData) -> Array:
    """Return the fraction of each unit's rows in the second group, for units that have any."""
    table, many = rows_of(data)
    rows = table[columns.group.row].reshape(many, -1)
    present = (~np.isnan(rows)).sum(axis=0)
    above = (rows > columns.threshold).sum(axis=0)
    return np.asarray(above[present > 0] / present[present > 0])


def compare_values(columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Return a warning that names the columns that are constant."""
    table = present_rows(data)
    explaining = [e for e in (columns.group, *columns.covariates_of) if not e.levels]
    taken = columns.products.take(table, np.array([e.row for e in explaining], dtype=np.int64))
    values = {entry.label: own for entry, own in zip(explaining, taken, strict=True)}
    places = zip(columns.labels, columns.outcomes.tolist(), strict=True)
    values |= {label: table[int(place)] for (_, label), place in places}
    same = [name for name, v in values.items() if len(v) > 1 and np.ptp(v) == 0]
    if not same:
        return ()
    sentence = (
        f"all participants here have the same value of {_some(same)}, which is not informative. "
        "Check that the column is the one that the study means."
    )
    return (sentence,)


def compare_gaps(parameters: GlmParameters, columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Return a warning on the covariate in which groups differ more than expected, if any."""
    table = present_rows(data)
    places = [e.row for e in columns.covariates_of]
    second = table[columns.group.row] > columns.threshold
    few = min(int(second.sum()), int((~second).sum()))
    if few < _FEW or not places:
        return ()
    values = columns.products.take(table, np.array(places, dtype=np.int64))
    gaps = values[:, second].mean(axis=1) - values[:, ~second].mean(axis=1)
    gaps = np.abs(gaps) / columns.deviations
    largest = int(np.argmax(gaps))
    if gaps[largest] <= parameters.gap + _GAP_OFF + _CHANCE * np.sqrt(2 / few):
        return ()
    sentence = (
        f"the groups differ here by {number(float(gaps[largest]))} stated standard deviations in "
        f"'{columns.covariates_of[largest].label}', and the study expects at most "
        f"{parameters.gap:g}. If most sites have such a difference, the study may stop after its "
        "first round. State a difference that is known from the literature in analysis.gap."
    )
    return (sentence,)


def compare_tails(columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Return a warning on outcomes with a long tail, which clipping may cut unequally by group."""
    table = present_rows(data)[columns.outcomes]
    if table.shape[1] < _FEW:
        return ()
    with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):  # of empty rows
        low, middle, high = np.nanpercentile(table, [10, 50, 90], axis=1)
    width = high - low
    uneven = np.divide(high + low - 2 * middle, width, out=np.zeros_like(width), where=width > 0)
    long = np.abs(uneven) > _UNEVEN + _CHANCE / np.sqrt(table.shape[1])
    if not long.any():
        return ()
    sentence = (
        f"{_named(columns, long)} have a long tail to one side here. If the groups have unequal "
        "variances, clipping removes more of one group's tail, which looks like an effect. "
        "Agree with the other sites to take logarithms or roots of such outcomes first."
    )
    return (sentence,)


def compare_norms(parameters: GlmParameters, columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Return warnings on outcomes that contradict the stated norms, with both numbers of one."""
    table = present_rows(data)[columns.outcomes]
    if table.shape[1] < _FEW:
        return ()
    with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):  # of empty rows
        means = np.nanmean(table, axis=1)
        scales = np.nanstd(table, axis=1)
    norms = parameters.norms
    found = list[str]()
    usual = columns.deviation / TOTAL_DEVIATION
    far = np.abs(means - columns.location) > _FAR * usual
    wide = (scales > _FACTOR * usual) | (scales < usual / _FACTOR)
    if norms.location is not None and norms.deviation is not None and far.any():
        own, stated = (columns.own(values) for values in (means, columns.location))
        place = int(np.argmax(far))
        found.append(
            f"{_named(columns, far)} are here more than two stated standard deviations from the "
            f"location in {parameters.norms_source} ({number(own[place])} instead of "
            f"{number(stated[place])}). Locations are learned, and a small difference costs little "
            "precision. Check that the unit is the study's."
        )
    if norms.deviation is not None and wide.any():
        place = int(np.argmax(wide))
        own, stated = (columns.units * values for values in (scales, usual))
        found.append(
            f"{_named(columns, wide)} vary here by less than a fourth or more than four times the "
            f"deviation in {parameters.norms_source} ({number(own[place])} instead of "
            f"{number(stated[place])}). Check that the unit is the study's."
        )
    return tuple(found)


def _named(columns: Columns, chosen: Array) -> str:
    return _some([label for (_, label), one in zip(columns.labels, chosen, strict=True) if one])


def _some(labels: list[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"'{label}'" for label in labels[:_NAMED]) + more
