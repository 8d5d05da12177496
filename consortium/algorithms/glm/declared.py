"""Means of columns by site that a study declares, and that are therefore not released.

A declared mean is a public constant, as declared numbers of participants are. A site subtracts it
before anything is clipped. The privacy guarantee applies with these numbers held constant.
"""

import numpy as np

from consortium.algorithms.base import Serious, Shape, SiteData
from consortium.algorithms.glm.entries import Columns, GlmEntry
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.rows import unit_means
from consortium.base.array import Array
from consortium.base.formatting import number
from consortium.errors import StudyError

_OFF = 0.1  # public standard deviations: a larger difference is reported at the site


def declared_means(parameters: GlmParameters, shape: Shape, columns: Columns) -> Array:
    """Return the declared means by site of the clipped columns, in public standard deviations.

    Raises StudyError if a column is not part of the adjustment, or a mean is beyond its limits.

    Returns
    -------
    array, S x columns
        NaN for columns whose means are not declared.
    """
    entries, means, scales = clipped_columns(columns)
    found = np.full((len(shape.subjects), len(entries)), np.nan)
    for name, by_site in parameters.site_means.items():
        places = [n for n, entry in enumerate(entries) if entry.label == name]
        if not places:
            known = ", ".join(entry.label for entry in entries) or "none"
            raise StudyError(
                f"field 'analysis.site_means': '{name}' is not a column that effects are adjusted "
                f"for. Columns are {known}."
            )
        (place,) = places
        own = [_value(entries[place], by_site[site]) for site in shape.sites or tuple(by_site)]
        found[:, place] = (np.array(own) - means[place]) / scales[place]
    return found


def clipped_columns(columns: Columns) -> tuple[tuple[GlmEntry, ...], Array, Array]:
    """Return the columns in the clipped vector, with their means and standard deviations.

    A slope's own column is first.
    """
    if not columns.slope:
        return columns.covariates_of, columns.means, columns.deviations
    mean, scale = columns.group_norm
    entries = (columns.group, *columns.covariates_of)
    return entries, np.append(mean, columns.means), np.append(scale, columns.deviations)


def declared_sentences(parameters: GlmParameters) -> tuple[str, ...]:
    """Return a sentence on what declared means imply for the guarantee, if any are declared."""
    if not parameters.site_means:
        return ()
    names = ", ".join(f"'{name}'" for name in parameters.site_means)
    sentence = (
        f"The study file makes the sites' means of {names} public. The privacy guarantee applies "
        "with declared numbers held constant."
    )
    return (sentence,)


def compare_declared(
    parameters: GlmParameters, site: str, columns: Columns, data: SiteData
) -> tuple[str, ...]:
    """Return each declared mean of a site next to its own mean, for the site's staff only."""
    entries, _, scales = clipped_columns(columns)
    notes = list[str]()
    for entry, scale in zip(entries, scales.tolist(), strict=True):
        if entry.label not in parameters.site_means:
            continue
        stated = parameters.site_means[entry.label][site]
        own = float(np.nanmean(unit_means(data, entry.row)))
        off = abs(own - _value(entry, stated)) > _OFF * scale
        says = (
            f"the study declares a mean of {number(stated)} of '{entry.label}' here, and this data "
            f"set's is {number(_own(entry, own))}"
        )
        corrected = Serious(f"{says}. Have it corrected before you approve the study.")
        notes.append(corrected if off else f"{says}.")
    return tuple(notes)


def _value(entry: GlmEntry, stated: float) -> float:
    """Return a stated mean in the vector's unit: for levels, the share of the participants."""
    least = entry.middle - entry.half
    most = entry.middle + entry.half
    if entry.levels:
        least = 0.0
        most = 1.0
    if (entry.levels or entry.limited) and not least <= stated <= most:
        raise StudyError(
            f"field 'analysis.site_means': the mean of '{entry.label}' must be from "
            f"{number(least)} to {number(most)}, got {number(stated)}. Correct the mean, or the "
            "column's limits."
        )
    if entry.levels == 2:
        return 2 * stated - 1
    return (stated - entry.middle) / entry.half


def _own(entry: GlmEntry, mean: float) -> float:
    """Return a mean that is in the vector's unit as a study would state it."""
    return (mean + 1) / 2 if entry.levels == 2 else entry.middle + entry.half * mean
