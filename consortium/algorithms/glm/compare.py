"""What a site's own people are told before they say yes, where the study doesn't fit their data.

Nothing of it leaves the site, and nothing that the site sends depends on it.
"""

import warnings

import numpy as np

from consortium.algorithms.base import Array, Serious, SiteData
from consortium.algorithms.glm.entries import Columns
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.rows import rows_of, there_of
from consortium.base.formatting import number

_OFF = 0.03  # of a site's persons in another group than is stated
_NAMED = 5
_FEW = 5  # persons, of whom no mean is told
_UNEVEN, _CHANCE = 0.25, 2.0  # of tenth and ninetieth percentile about the median; over √n
_FAR, _FACTOR = 2.0, 4.0  # deviations of a location, and between deviations


def compare_groups(columns: Columns, stated: tuple[int, float], data: SiteData) -> tuple[str, ...]:
    """Say where a site's persons are not those that the study states: all, and the second group."""
    group = _parts(columns, data)
    own = len(group), round(float(group.sum()), 2)
    if own == stated:
        return ()
    says = (
        f"the study states {stated[1]:g} of {stated[0]} participants in the group "
        f"'{columns.group.label}', and this data set has {own[1]:g} of {own[0]}"
    )
    off = abs(own[1] / max(own[0], 1) - stated[1] / max(stated[0], 1))
    if off > _OFF or own[1] in (0, own[0]):
        harm = (
            "differences between sites would be reported as effects, with intervals that don't "
            "hold: have analysis.groups corrected, or the names of the levels, before you say yes."
        )
        return (Serious(f"{says}; {harm}"),)
    harm = (
        "effects are a little off, which no interval counts, unless analysis.groups is corrected."
    )
    return (f"{says}; {harm}",)


def _parts(columns: Columns, data: SiteData) -> Array:
    """Part of every unit's rows that is in the second group: 0 or 1 of a person of one row."""
    table, many = rows_of(data)
    rows = table[columns.group.row].reshape(many, -1)
    there = np.maximum((~np.isnan(rows)).sum(axis=0), 1)
    return np.asarray((rows > columns.threshold).sum(axis=0) / there)


def compare_presence(columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Say that one of the two groups has nobody here, where no numbers are stated."""
    above = there_of(data)[columns.group.row] > columns.threshold
    if above.any() and not above.all():
        return ()
    where = "in" if above.all() else "outside"
    sentence = (
        f"all {len(above)} participants here are {where} the group '{columns.group.label}', so "
        "that this data set tells nothing of the difference; look whether the levels are written "
        "as in the study before you say yes."
    )
    return (Serious(sentence),)


def compare_values(columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Say which columns are all the same."""
    table = there_of(data)
    explaining = [e for e in (columns.group, *columns.covariates_of) if not e.levels]
    taken = columns.products.take(table, np.array([e.row for e in explaining], dtype=np.int64))
    values = {entry.label: own for entry, own in zip(explaining, taken, strict=True)}
    places = zip(columns.labels, columns.outcomes.tolist(), strict=True)
    values |= {label: table[int(place)] for (_, label), place in places}
    same = [name for name, v in values.items() if len(v) > 1 and np.ptp(v) == 0]
    if not same:
        return ()
    sentence = (
        f"all participants here have the same value of {_some(same)}, which tells nothing; look "
        "whether the column holds what the study means."
    )
    return (sentence,)


def compare_tails(columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Say which outcomes have a long tail, of which clipping may take more in one group."""
    table = there_of(data)[columns.outcomes]
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
        f"{_named(columns, long)} have a long tail to one side here. Where the groups vary "
        "differently, clipping takes more of one group's tail, and that looks like an effect; "
        "agree with the other sites to take logarithms or roots of such outcomes first."
    )
    return (sentence,)


def compare_norms(parameters: GlmParameters, columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Say which outcomes are not as the stated norms have them, with both numbers of one."""
    table = there_of(data)[columns.outcomes]
    if table.shape[1] < _FEW:
        return ()
    with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):  # of empty rows
        means, scales = np.nanmean(table, axis=1), np.nanstd(table, axis=1)
    norms, found = parameters.norms, list[str]()
    far = np.abs(means - columns.location) > _FAR * columns.deviation
    wide = (scales > _FACTOR * columns.deviation) | (scales < columns.deviation / _FACTOR)
    if norms.location is not None and norms.deviation is not None and far.any():
        own, stated = (columns.own(values) for values in (means, columns.location))
        place = int(np.argmax(far))
        found.append(
            f"{_named(columns, far)} lie here more than two stated deviations from the location in "
            f"analysis.norms ({number(own[place])} instead of {number(stated[place])}). Locations "
            "are learned, and few deviations cost next to nothing; look whether the unit is the "
            "study's."
        )
    if norms.deviation is not None and wide.any():
        place = int(np.argmax(wide))
        own, stated = (columns.units * values for values in (scales, columns.deviation))
        found.append(
            f"{_named(columns, wide)} vary here by less than a fourth or more than four times the "
            f"deviation in analysis.norms ({number(own[place])} instead of "
            f"{number(stated[place])}); look whether the unit is the study's."
        )
    return tuple(found)


def _named(columns: Columns, chosen: Array) -> str:
    return _some([label for (_, label), one in zip(columns.labels, chosen, strict=True) if one])


def _some(labels: list[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"'{label}'" for label in labels[:_NAMED]) + more
