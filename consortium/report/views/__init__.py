"""How each kind of view is drawn and written: a module a kind, of the name of its model's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from consortium.algorithms.base import Array
from consortium.report.finished import Finished
from consortium.report.pictures import Drawing
from consortium.report.views import eeg, fmri, surface, table
from consortium.space.study_space import AnyViewSpace, Space


class ViewReport(Protocol):
    """What the module of a kind of view gives."""

    READING: str
    """How to read its pictures, in a paragraph; may be empty."""

    def draw(self, space: Space, view: AnyViewSpace, values: Array, name: str) -> Drawing:
        """Draw one column of a view's loadings.

        Parameters
        ----------
        values : array, shape (D_v,)
        name : str
            What to call the column in words.
        """

    def person(self, view: AnyViewSpace, values: Array) -> Sequence[tuple[str, str]]:
        """Tell a column that is a person in words, instead of a picture; none: it is drawn."""

    def write(self, folder: Path, run: Finished, view: AnyViewSpace, values: Array) -> Path:
        """Write a view's loadings (D_v x K) with a sidecar, and return the file.

        Raises OutputError if the folder can't be written.
        """


REPORTS: Mapping[str, ViewReport] = {
    "table": table,
    "fmri": fmri,
    "surface": surface,
    "eeg": eeg,
}
"""By the view's ``source``."""


def split_views(space: Space, values: Array) -> list[tuple[AnyViewSpace, Array]]:
    """Each view with its rows of the loadings.

    Parameters
    ----------
    values : array, shape (D, K)
    """
    stops = np.cumsum([view.size for view in space.views])[:-1]
    return list(zip(space.views, np.split(values, stops), strict=True))


def write_loadings(folder: Path, run: Finished) -> list[Path]:
    """Write the loadings of a study of persons, a file for each view that has any.

    A view of which nothing is told, such as what a `glm` adjusts for, has none: zeros alone. Raises
    OutputError if the folder can't be written.
    """
    if run.loadings is None:
        return []
    parts = split_views(run.space, run.loadings)
    return [
        REPORTS[view.view.source].write(folder, run, view, values)
        for view, values in parts
        if values.any()
    ]
