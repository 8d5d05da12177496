"""What a site's own people are told before they say yes, where the study doesn't fit their data.

Nothing of it leaves the site, and nothing that the site sends depends on it.
"""

from __future__ import annotations

import numpy as np

from consortium.algorithms.base import SiteData
from consortium.algorithms.glm.entries import Columns

_MANY = 0.2  # of the persons, at a limit
_OFF = 0.03  # of a site's persons in another group than is stated
_NAMED = 5


def compare_groups(columns: Columns, stated: tuple[int, int], data: SiteData) -> tuple[str, ...]:
    """Say where a site's persons are not those that the study states: all, and the second group."""
    group = data.table()[columns.group.row]
    own = len(group), int(np.sum(group > columns.threshold))
    if own == stated:
        return ()
    off = abs(own[1] / max(own[0], 1) - stated[1] / max(stated[0], 1))
    harm = (
        "effects are a little off, which no interval counts, unless analysis.groups is corrected."
    )
    if off > _OFF:
        harm = (
            "differences between sites would be told as effects, with intervals that don't hold: "
            "have analysis.groups corrected, or the names of the levels, before you say yes."
        )
    return (
        (
            f"the study states {stated[1]} of {stated[0]} persons in the group "
            f"'{columns.group.label}', and this data set has {own[1]} of {own[0]}; {harm}"
        ),
    )


def compare_values(columns: Columns, data: SiteData) -> tuple[str, ...]:
    """Say which columns lie at their limits, as ages in months would, or are all the same."""
    table, found = data.table(), []
    explaining = [e for e in (columns.group, *columns.covariates_of) if not e.levels]
    rows = {entry.label: (table[entry.row], entry.limited) for entry in explaining}
    places = columns.outcomes.astype(np.int64)
    for (_, label), place, limited in zip(columns.labels, places, columns.limited, strict=True):
        rows[label] = table[place], bool(limited)
    at = [n for n, (v, limited) in rows.items() if limited and np.mean(np.abs(v) >= 1) > _MANY]
    if at:
        found.append(
            f"more than a fifth of the persons here have {_some(at)} at a limit of the study's; "
            "look whether it is in the study's unit (years, not months)."
        )
    same = [name for name, (v, _) in rows.items() if len(v) > 1 and np.ptp(v) == 0]
    if same:
        found.append(
            f"all persons here have the same value of {_some(same)}, which tells nothing; look "
            "whether the column holds what the study means."
        )
    return tuple(found)


def _some(labels: list[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"'{label}'" for label in labels[:_NAMED]) + more
