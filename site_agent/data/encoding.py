"""What a person's value of a column becomes in a feature vector."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from consortium.views.column import Column
from consortium.views.table import TableView
from site_agent.data.wording import CODED, is_given


def encode_cell(text: str | None, column: Column) -> tuple[float, ...] | None:
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


def vector_of(texts: Sequence[str | None], view: TableView) -> NDArray[np.float64] | int:
    """A person's vector, not a number where a value is missing that may be.

    Returns
    -------
    array, or the place of the first column that is missing of too many
    """
    columns = [column for _, column in view.single_columns]
    values = [encode_cell(text, column) for text, column in zip(texts, columns, strict=True)]
    if values.count(None) > view.most_missing * len(values):
        return values.index(None)
    found = [
        (math.nan,) * len(column.labels("")) if value is None else value
        for value, column in zip(values, columns, strict=True)
    ]
    return np.array([x for value in found for x in value])


def lack_of(text: str | None, name: str, column: Column) -> str:
    """Why a value can't be used, without the value itself."""
    if text == CODED:
        return f"column {name} has a value that the study calls missing"
    if not is_given(text):
        return f"column {name} has no value"
    if column.levels:
        levels = ", ".join(column.levels)
        return f"column {name} has a value that is none of the study's levels ({levels})"
    return f"column {name} has no number, where the study wants one"
