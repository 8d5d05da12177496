"""The component maps of a study of images: each with its share, its peak and its pictures."""

from __future__ import annotations

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.findings import NOT_TOLD, Finding
from consortium.formatting import count, percent
from consortium.report.brain_figures import THRESHOLD, draw_map
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.pictures import Drawing
from consortium.report.sections.base import (
    NOT_TOLD_APART,
    Card,
    Facts,
    Section,
    cards_section,
    peak_text,
)


def section(run: Finished) -> Section | None:
    """Draw every component."""
    if run.components is None:
        return None
    maps, floor = run.components, run.components.floor
    values = maps.components.maps
    if floor is not None:
        # What privacy noise alone could make is no finding, whatever its z.
        values = np.where(np.abs(values) >= THRESHOLD * floor, values, 0.0)
    noises = None if floor is None else np.median(floor, axis=0)
    cards = (
        _card(maps, values[:, r], r, None if noises is None else float(noises[r]))
        for r in range(len(maps.components))
    )
    return cards_section(tuple(cards))


def _card(maps: ComponentMaps, values: Array, r: int, noise: float | None) -> Card:
    name, peak = f"Component {r + 1}", maps.components.peaks[r]
    if not maps.is_found(r):
        told = (("Explained share", share_text(maps.share(r))),)
        return Card(f"component-{r + 1}", name, told, note=NOT_TOLD_APART)
    beyond = int(np.count_nonzero(np.abs(values) >= THRESHOLD))
    pictures = draw_map(maps.grid, values, peak, THRESHOLD, name)
    drawing = Drawing(pictures, "" if beyond else _nothing(noise))
    return Card(f"component-{r + 1}", name, _facts(maps, r, beyond, noise), (drawing,))


def _facts(maps: ComponentMaps, r: int, beyond: int, noise: float | None) -> Facts:
    components = maps.components
    told = () if noise is None else (("Privacy noise in a voxel", f"z = {noise:.2g}"),)
    return (
        ("Explained share", share_text(maps.share(r))),
        ("Peak x, y, z", peak_text(tuple(components.peaks[r]))),
        ("Peak z-score", f"{components.heights[r]:.1f}"),
        *told,
        (
            f"|z| ≥ {THRESHOLD:g}",
            f"{count(beyond, 'voxel')} ({percent(beyond / maps.grid.features)})",
        ),
    )


def share_text(share: Finding) -> str:
    """Write a share in per cent, with its interval."""
    if not share.told:
        return NOT_TOLD
    interval = f" ({percent(share.low)} to {percent(share.high)})" if share.bounded else ""
    return f"{percent(share.value)}{interval}"


def _nothing(noise: float | None) -> str:
    much = f" and {THRESHOLD:g} times the privacy noise" if noise is not None and noise > 1 else ""
    return f"No voxel of this map passes |z| = {THRESHOLD:g}{much}."
