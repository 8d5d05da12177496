"""Loadings on a mesh of the cortex: views of both hemispheres, and files of GIFTI and CIFTI."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from consortium.base.array import Array
from consortium.report.brain_figures import THRESHOLD, draw_surface
from consortium.report.finished import Finished, robust_z
from consortium.report.image_sets import about_map, surface_folder, surface_name, write_surface
from consortium.report.pictures import Drawing
from consortium.report.tables import about_loadings
from consortium.space.study_space import Space, ViewSpace
from consortium.views.surface import SurfaceView

READING = (
    "Maps on the cortex are drawn as robust z-scores: distance from the map's median in units of "
    f"1.4826 times the median absolute deviation. Vertices with |z| below {THRESHOLD:g} are not "
    "drawn. These are not test statistics over participants. The files contain the original "
    "values."
)


def draw(space: Space, view: ViewSpace[SurfaceView], values: Array, name: str) -> Drawing:
    """Draw a map as robust z-scores on both hemispheres."""
    del space
    assert view.mesh is not None  # noqa: S101 - a view of surfaces has one
    scores, _ = robust_z(values.astype(np.float64))
    beyond = np.count_nonzero(np.abs(scores) >= THRESHOLD)
    note = "" if beyond else f"No vertex of this map passes |z| = {THRESHOLD:g}."
    return Drawing((draw_surface(view.mesh, scores, THRESHOLD, name, "z"),), note)


def person(view: ViewSpace[SurfaceView], values: Array) -> Sequence[tuple[str, str]]:
    """Return nothing, because it is drawn."""
    del view, values
    return ()


def write(folder: Path, run: Finished, view: ViewSpace[SurfaceView], values: Array) -> Path:
    """Write files with a map for each column, and return the CIFTI file."""
    assert view.mesh is not None  # noqa: S101 - a view of surfaces has one
    column = run.result.captions.column
    labels = [f"{column} {k + 1}" for k in range(values.shape[1])]
    about = {**about_loadings(run, view), "Maps": labels}
    about |= about_map(run, view.mesh, view=view.name)
    name = surface_name(run.study, view.mesh, view.name)
    place = surface_folder(folder, view.mesh)
    return write_surface(
        folder=place,
        name=name,
        suffix="loadings",
        mesh=view.mesh,
        values=values,
        labels=labels,
        about=about,
    )[0]
