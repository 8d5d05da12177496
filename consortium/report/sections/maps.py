"""The component maps of a study of images: each with its share, its peak and its pictures."""

import numpy as np

from consortium.algorithms.base import Array
from consortium.algorithms.findings import NOT_DISTINCT, WITHHELD, Finding
from consortium.base.formatting import count, percent
from consortium.report.brain_figures import THRESHOLD
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.sections.base import (
    Card,
    Facts,
    PageSection,
    cards_section,
    map_card,
    mesh_card,
)
from consortium.report.shown_maps import ShownMap, component_maps, component_values
from consortium.space.mesh import Mesh


def section(run: Finished) -> PageSection | None:
    """Show a card for every component of the report."""
    if run.components is None:
        return None
    maps = run.components
    floor = run.components.floor
    noises = None if floor is None else np.median(floor, axis=0)
    if isinstance(maps.grid, Mesh):
        values = component_values(maps)
        shown = np.where(np.abs(values) >= THRESHOLD, values, 0.0)
        drawn = [_mesh_card(maps, maps.grid, shown[:, r], r, noises) for r in range(shown.shape[1])]
        return cards_section(tuple(drawn))
    cards = (
        _card(run, maps, shown, r, None if noises is None else float(noises[r]))
        for r, shown in enumerate(component_maps(maps))
    )
    return cards_section(tuple(cards))


def _mesh_card(
    maps: ComponentMaps, mesh: Mesh, values: Array, r: int, noises: Array | None
) -> Card:
    share = (("Explained share", share_text(maps.share(r))),) if maps.tells_shares else ()
    place = f"component-{r + 1}", f"Component {r + 1}"
    if not maps.is_found(r):
        return Card(*place, share, note=NOT_DISTINCT)
    noise = None if noises is None else float(noises[r])
    return mesh_card(
        *place, mesh=mesh, values=values, units="z", first=share, note=_nothing(noise, "vertex")
    )


def _card(
    run: Finished, maps: ComponentMaps, shown: ShownMap | None, r: int, noise: float | None
) -> Card:
    share = (("Explained share", share_text(maps.share(r))),) if maps.tells_shares else ()
    if shown is None:
        return Card(f"component-{r + 1}", f"Component {r + 1}", share, note=NOT_DISTINCT)
    facts = _facts(maps, shown, r, noise)
    return map_card(run, shown, share, facts, "" if shown.coloured else _nothing(noise))


def _facts(maps: ComponentMaps, shown: ShownMap, r: int, noise: float | None) -> Facts:
    noise_fact = () if noise is None else (("Privacy noise in a voxel", f"z = {noise:.2g}"),)
    part = percent(shown.coloured / maps.grid.features)
    return (
        ("Peak z-score", f"{maps.components.heights[r]:.1f}"),
        *noise_fact,
        (f"|z| ≥ {THRESHOLD:g}", f"{count(shown.coloured, 'voxel')} ({part})"),
    )


def share_text(share: Finding) -> str:
    """Write a share in per cent, with its interval."""
    if not share.reported:
        return WITHHELD
    interval = f" ({percent(share.low)} to {percent(share.high)})" if share.bounded else ""
    return f"{percent(share.value)}{interval}"


def _nothing(noise: float | None, word: str = "voxel") -> str:
    much = f" and {THRESHOLD:g} times the privacy noise" if noise is not None and noise > 1 else ""
    return f"No {word} of this map passes |z| = {THRESHOLD:g}{much}."
