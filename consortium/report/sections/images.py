"""Named sets of maps: those that were found are drawn at their peaks, with how sure each is."""

from __future__ import annotations

import re

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.findings import ImageSet
from consortium.formatting import count, number
from consortium.report.brain_figures import draw_map
from consortium.report.cells import cell_text
from consortium.report.finished import Finished
from consortium.report.image_sets import grid_of, painted
from consortium.report.pictures import Drawing
from consortium.report.sections.base import (
    NOT_TOLD_APART,
    Card,
    Facts,
    Section,
    cards_section,
    peak_text,
)
from consortium.space.grid import Grid


def section(run: Finished) -> Section | None:
    """Draw the maps of every set that is to be drawn."""
    cards: list[Card] = []
    for key, images in run.result.images.items():
        if images.drawn:
            grid, values = grid_of(run.space, images), painted(run.space, images, images.coloured())
            cards += [_card(key, images, grid, values[:, k], k) for k in range(values.shape[1])]
    return cards_section(tuple(cards))


def ident(key: str, number: int) -> str:
    """Where a link to a set's map, counted from 0, points to."""
    return f"{re.sub('[^A-Za-z0-9_-]', '-', key)}-{number + 1}"


def _card(key: str, images: ImageSet, grid: Grid, values: Array, k: int) -> Card:
    label = images.labels[k]
    name = label[:1].upper() + label[1:] + (f", {images.view}" if images.view else "")
    told = _accuracy(images, k)
    if not images.is_found(k):
        return Card(ident(key, k), name, told, note=NOT_TOLD_APART)
    coloured = np.abs(values[values != 0])
    if not len(coloured):
        return Card(ident(key, k), name, told, note="No voxel of this map passes the threshold.")
    top = int(np.abs(values).argmax())
    place = grid.coordinates[top]
    least = float(coloured.min())
    facts = (
        *told,
        ("Peak x, y, z", peak_text(tuple(place))),
        (f"Peak {_unit(images)}", f"{number(float(values[top]))}".replace("-", "−")),
        ("Coloured", f"{count(len(coloured), 'voxel')}, from {number(least)} on"),
    )
    drawing = Drawing(draw_map(grid, values, place, least, name))
    return Card(ident(key, k), name, facts, (drawing,))


def _accuracy(images: ImageSet, k: int) -> Facts:
    if not images.accuracy:
        return ()
    return ((images.accuracy_caption, cell_text(images.accuracy[k])),)


def _unit(images: ImageSet) -> str:
    return "value" if images.units == "arbitrary" else images.units
