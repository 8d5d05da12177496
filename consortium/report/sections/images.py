"""Named sets of maps: those that were found are drawn at their peaks, with how sure each is."""

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.findings import ImageSet
from consortium.base.formatting import count, number
from consortium.report.finished import Finished
from consortium.report.image_sets import on_grid
from consortium.report.sections.base import (
    Card,
    Facts,
    PageSection,
    cards_section,
    map_card,
    mesh_card,
)
from consortium.report.shown_maps import ShownMap, map_anchor, set_maps, set_name
from consortium.report.tables import cell_text
from consortium.space.mesh import Mesh

NOTHING = "No {} of this map passes the threshold."


def section(run: Finished) -> PageSection | None:
    """Draw the maps of every set that is to be drawn."""
    cards: list[Card] = []
    for key, images in run.result.images.items():
        mesh = run.space.mesh_of(images.view)
        if images.drawn and mesh is not None:
            values = on_grid(run.space, images, images.coloured())
            cards += [
                _surface_card(key, images, mesh, values[:, k], k) for k in range(values.shape[1])
            ]
        elif images.drawn:
            maps = enumerate(set_maps(run, key, images))
            cards += [_card(run, key, images, shown, k) for k, shown in maps]
    return cards_section(tuple(cards))


def _surface_card(key: str, images: ImageSet, mesh: Mesh, values: Array, k: int) -> Card:
    """Show a map on both hemispheres, and where it peaks."""
    accuracy = _accuracy(images, k)
    name = set_name(images, k)
    note = NOTHING.format("vertex") if images.is_found(k) else images.unfound
    shown = values if images.is_found(k) else np.zeros_like(values)
    return mesh_card(
        ident=map_anchor(key, k),
        name=name,
        mesh=mesh,
        values=shown,
        units=images.units,
        first=accuracy,
        note=note,
    )


def _card(run: Finished, key: str, images: ImageSet, shown: ShownMap | None, k: int) -> Card:
    accuracy = _accuracy(images, k)
    if shown is None:
        note = NOTHING.format("voxel") if images.is_found(k) else images.unfound
        return Card(map_anchor(key, k), set_name(images, k), accuracy, note=note)
    top = max(shown.values.min(), shown.values.max(), key=abs)
    facts = (
        (f"Peak {shown.units}", f"{number(float(top))}".replace("-", "−")),
        ("Shown", f"{count(shown.coloured, 'voxel')}, from {number(shown.threshold)} on"),
    )
    return map_card(run, shown, accuracy, facts)


def _accuracy(images: ImageSet, k: int) -> Facts:
    if not images.accuracy:
        return ()
    return ((images.accuracy_caption, cell_text(images.accuracy[k])),)
