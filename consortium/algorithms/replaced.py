"""Analyses that another one replaced, whose study files are still read."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from consortium.views import View

_HISTOGRAM = "histogram"
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 20
"""Defaults of the former analysis."""


def read_replaced(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a study, with a replaced analysis as the one that replaced it.

    Parameters
    ----------
    values : mapping
        Fields of a study file, which may be invalid.
    """
    if values.get("algorithm") != _HISTOGRAM:
        return values
    stated = values.get("analysis")
    analysis = dict(stated) if isinstance(stated, Mapping) else {}
    view = analysis.pop("view", "")
    entry = analysis.pop("entry", 1)
    analysis.pop("limits", None)
    described = {
        "columns": [_column(values, view, entry)],
        "bins": _BINS,
        "quantiles": _QUANTILES,
        "means": False,
        "instead_of": _HISTOGRAM,
    }
    return {**values, "algorithm": "describe", "analysis": described | analysis}


def _column(values: Mapping[str, Any], view: Any, entry: Any) -> str:
    """Return the name of the column that an entry of a view belongs to, or the entry's own."""
    found = f"{view}{entry}"
    views = values.get("features")
    for each in views if isinstance(views, list | tuple) else ():
        try:
            read = TypeAdapter(View).validate_python(each)
        except ValidationError:
            continue
        columns = [name for name, column in read.single_columns for _ in column.labels(name)]
        names = columns or list(read.labels)
        if read.name == view and isinstance(entry, int) and 1 <= entry <= len(names):
            found = names[entry - 1]
    return found
