"""Drawing and writing of a result's loadings, view by view: a module for each kind of view."""

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
    """Interface of the module of a kind of view."""

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
        """Describe a column that is a participant in words; nothing if it is drawn."""

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
    """Yield each view of the result with its rows of the loadings.

    Parameters
    ----------
    values : array, shape (D, K)
    """
    stops = np.cumsum([view.size for view in space.views])[:-1]
    return list(zip(space.views, np.split(values, stops), strict=True))


def write_loadings(folder: Path, run: Finished) -> list[Path]:
    """Write the loadings of a study of participants, a file for each view that has any.

    A view whose loadings are only zeros, such as the covariates of a `glm`, has no file. Raises
    OutputError if the folder can't be written.
    """
    if run.loadings is None:
        return []
    withheld = run.result.withheld
    hidden = np.zeros(run.loadings.shape, bool) if withheld is None else withheld
    parts = zip(split_views(run.space, run.loadings), split_views(run.space, hidden), strict=True)
    return [
        REPORTS[view.view.source].write(folder, run, view, _without(values, own, view))
        for (view, values), (_, own) in parts
        if values.any()
    ]


def _without(values: Array, withheld: Array, view: AnyViewSpace) -> Array:
    """Return a view's loadings with missing values, or 0 in maps, where they are withheld."""
    is_map = view.view.is_image or view.mesh is not None
    return np.where(withheld, 0.0 if is_map else np.nan, values)
