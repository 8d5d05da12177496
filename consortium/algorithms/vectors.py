"""Where a view's entries stand in a person's vector, and what a site reads out of a query."""

from __future__ import annotations

import math

from consortium.algorithms.base import Query, Shape
from consortium.errors import ProtocolError, StudyError


def view_slice(shape: Shape, name: str, field: str) -> slice:
    """Entries of a view within a person's vector.

    Parameters
    ----------
    shape : Shape
    name : str
        The view's name in the study.
    field : str
        Field of the study that names it, for the message.

    Raises
    ------
    StudyError
        If the study has no such view.
    """
    start = 0
    for view, size in shape.views:
        if view == name:
            return slice(start, start + size)
        start += size
    known = ", ".join(view for view, _ in shape.views) or "none"
    raise StudyError(f"field '{field}': there is no view '{name}'; name one of {known}.")


def single_entry(shape: Shape, name: str, field: str, remedy: str) -> int:
    """Place of a view of one entry within a person's vector.

    Parameters
    ----------
    shape, name, field
        As in `view_slice`.
    remedy : str
        What to do if the view has more, for the message.

    Raises
    ------
    StudyError
        If the study has no such view, or it has more entries.
    """
    found = view_slice(shape, name, field)
    if found.stop - found.start != 1:
        raise StudyError(
            f"field '{field}': view '{name}' has {found.stop - found.start} entries; {remedy}."
        )
    return int(found.start)


def index_argument(query: Query, name: str, limit: int) -> int:
    """Look up a whole number from 0 to below ``limit``.

    Raises
    ------
    ProtocolError
        If it is missing or out of range.
    """
    value = query.arguments.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise ProtocolError(f"The query's '{name}' is no number below {limit}; discard it.")
    return value


def number_argument(query: Query, name: str) -> float:
    """Look up a finite number that is not negative.

    Raises
    ------
    ProtocolError
        If it is missing, negative or not finite.
    """
    value = query.arguments.get(name)
    if not isinstance(value, float) or not math.isfinite(value) or value < 0:
        raise ProtocolError(f"The query's '{name}' is no number of 0 or more; discard it.")
    return value
