"""Named sets of maps: those that were found are drawn at their peaks, with how sure each is."""

from __future__ import annotations

from consortium.algorithms.findings import ImageSet
from consortium.base.formatting import count, number
from consortium.report.cells import cell_text
from consortium.report.finished import Finished
from consortium.report.sections.base import (
    Card,
    Facts,
    Section,
    cards_section,
    map_card,
)
from consortium.report.shown_maps import ShownMap, ident, set_maps, set_name

NOTHING = "No voxel of this map passes the threshold."


def section(run: Finished) -> Section | None:
    """Draw the maps of every set that is to be drawn."""
    cards = [
        _card(run, key, images, shown, k)
        for key, images in run.result.images.items()
        if images.drawn
        for k, shown in enumerate(set_maps(run, key, images))
    ]
    return cards_section(tuple(cards))


def _card(run: Finished, key: str, images: ImageSet, shown: ShownMap | None, k: int) -> Card:
    told = _accuracy(images, k)
    if shown is None:
        note = NOTHING if images.is_found(k) else images.unfound
        return Card(ident(key, k), set_name(images, k), told, note=note)
    top = max(shown.values.min(), shown.values.max(), key=abs)
    facts = (
        (f"Peak {shown.units}", f"{number(float(top))}".replace("-", "−")),
        ("Coloured", f"{count(shown.coloured, 'voxel')}, from {number(shown.threshold)} on"),
    )
    return map_card(run, shown, told, facts)


def _accuracy(images: ImageSet, k: int) -> Facts:
    if not images.accuracy:
        return ()
    return ((images.accuracy_caption, cell_text(images.accuracy[k])),)
