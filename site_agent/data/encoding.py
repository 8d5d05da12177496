"""What a person's value of a column becomes in a feature vector."""

from __future__ import annotations

import math

from consortium.views.column import Column


def encode(text: str | None, column: Column) -> tuple[float, ...] | None:
    """Entries of a value between -1 and 1; None if there is no usable value.

    Only the person's own value and the public limits go into it.
    """
    value = (text or "").strip()
    if column.levels:
        if value not in column.levels:
            return None
        place = column.levels.index(value)
        if len(column.levels) == 2:
            return (2.0 * place - 1.0,)
        return tuple(float(place == k) for k in range(len(column.levels)))
    try:
        number = float(value)
    except ValueError:
        return None
    low, high = column.low, column.high
    if math.isnan(number) or low is None or high is None:
        return None
    return (2.0 * (min(max(number, low), high) - low) / (high - low) - 1.0,)


def is_given(text: str | None) -> bool:
    """Whether a cell holds anything."""
    return (text or "").strip() not in ("", "n/a")


def lack_of(text: str | None, name: str, column: Column) -> str:
    """Why a value can't be used, without the value itself."""
    if not is_given(text):
        return f"column {name} is empty"
    if column.levels:
        levels = ", ".join(column.levels)
        return f"column {name} has a value that is none of the study's levels ({levels})"
    return f"column {name} has no number, where the study wants one"
