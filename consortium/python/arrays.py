"""Arrays and tables of participants, a line each, in the place of images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from consortium.errors import StudyError
from consortium.python.scratch import as_text
from consortium.simulation.dataset import start_derivatives


@dataclass(frozen=True, eq=False)
class PersonTable:
    """Numbers of participants.

    Parameters
    ----------
    names : tuple of str
        Of the columns, which become public.
    values : array, shape (participants, columns)
    limits : (float, float)
        Public, of every column: what lies beyond them is moved to them.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    limits: tuple[float, float]

    def view(self, name: str) -> dict[str, Any]:
        """The view of a study that these are."""
        low, high = self.limits
        columns = {column: {"low": low, "high": high} for column in self.names}
        return {"name": name, "source": "table", "columns": columns}

    @property
    def columns(self) -> dict[str, list[float]]:
        """Columns by name."""
        return dict(zip(self.names, self.values.T.tolist(), strict=True))


def is_array(given: object) -> bool:
    """Whether these are numbers, a participant in each line: an array or a DataFrame."""
    if isinstance(given, np.ndarray):
        return given.ndim <= 2
    kinds = ("iloc", "toarray", "__array__")  # of pandas, of scipy's sparse matrices, of others
    return not hasattr(given, "dataobj") and any(hasattr(given, kind) for kind in kinds)


def is_table(given: object) -> TypeGuard[Mapping[str, Sequence[Any]]]:
    """Whether these are columns by name: a mapping, or a DataFrame."""
    return isinstance(given, Mapping) or hasattr(given, "columns")


def person_table(
    given: Any, limits: tuple[float, float] | None, front: str, *, checked: NDArray[Any]
) -> PersonTable:
    """Make a table of what was given.

    Parameters
    ----------
    given : array or DataFrame
    limits : (float, float), optional
    front : str
        What columns without a name are called, before their number from 1.
    checked : array, shape (participants, columns)
        The same as finite numbers.

    Raises
    ------
    StudyError
        If there are no limits.
    """
    if limits is None:
        raise StudyError(
            "limits: an array's columns need public limits; give the least and the largest value "
            "that count, as limits=(-3, 3)."
        )
    numbered = (f"{front}{number}" for number in range(1, checked.shape[1] + 1))
    names = map(str, given.columns) if hasattr(given, "columns") else numbered
    return PersonTable(tuple(names), checked, (float(limits[0]), float(limits[1])))


def write_persons(folder: Path, columns: Mapping[str, Sequence[Any]], persons: int) -> Path:
    """Write a data set that has a table of participants and no images.

    Raises
    ------
    DataError
        As `as_text`.
    """
    labels = [f"{number:05d}" for number in range(1, persons + 1)]
    start_derivatives(folder, "Participants of one data set", labels, as_text(columns, persons))
    return folder
