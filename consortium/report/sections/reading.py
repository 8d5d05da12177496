"""How to read the page."""

from collections.abc import Mapping
from importlib.resources import files
from statistics import NormalDist
from typing import Any

import yaml

from consortium.report.bids import voxel_text
from consortium.report.brain_figures import THRESHOLD
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.sections.base import PageSection
from consortium.report.views import REPORTS
from consortium.space.mesh import Mesh

_PATH = files("consortium.report") / "templates" / "reading.yaml"
_SAID: Mapping[str, Any] = yaml.safe_load(_PATH.read_bytes())
_VOXELS = {"place": "voxel", "places": "voxels", "Places": "Voxels"}
_VERTICES = {"place": "vertex", "places": "vertices", "Places": "Vertices"}
"""Words for the places of a map's values."""


def section(run: Finished) -> PageSection | None:
    """Explain how to read component maps, columns in their views, and sets of maps."""
    paragraphs = [
        *(_of_components(run.components) if run.components else []),
        *_of_columns(run),
        *_of_sets(run),
    ]
    heading = f"How to read the {'maps' if run.components else 'results'}"
    return PageSection("reading", {"paragraphs": paragraphs}, heading) if paragraphs else None


def _of_components(maps: ComponentMaps) -> list[str]:
    beyond = 200 * NormalDist().cdf(-THRESHOLD)
    *before, last = _SAID["components"].values()
    paragraphs = [*before, *([_SAID["noise"]] if maps.noise is not None else []), last]
    edges = ""
    if isinstance(maps.grid, Mesh):
        paragraphs = [*paragraphs[:-1], _SAID["surfaces"]]
        places = _VERTICES
    else:
        places = _VOXELS
        edges = voxel_text(maps.grid)
    share = _SAID["shares"]["own" if maps.shares else "all"] if maps.tells_shares else ""
    known = {"threshold": THRESHOLD, "beyond": beyond, "edges": edges, "share": share, **places}
    return [p.format(**known) for p in paragraphs]


def _of_columns(run: Finished) -> list[str]:
    if run.loadings is None:
        return []
    captions = run.result.captions
    sign = f"The sign of a {captions.column} is arbitrary, but the same in all views."
    sets = {images.view for images in run.result.images.values() if images.drawn}
    columns = [view.view for view in run.space.views if view.name not in sets]
    kinds = dict.fromkeys(view.source for view in columns)
    sentences = [
        f"{captions.meaning} {sign}" if captions.sign else captions.meaning,
        *(REPORTS[kind].READING for kind in kinds),
        _SAID["mixed"] if any(view.maps_file and view.is_image for view in columns) else "",
    ]
    return [text for text in sentences if text]


def _of_sets(run: Finished) -> list[str]:
    drawn = [images for images in run.result.images.values() if images.drawn]
    captions = dict.fromkeys(images.caption for images in drawn)
    on_meshes = {run.space.mesh_of(images.view) is not None for images in drawn}
    ways = ((False, _SAID["sets"]), (True, _SAID["surfaces"]))
    return [*captions, *(text for on_mesh, text in ways if on_mesh in on_meshes)]
