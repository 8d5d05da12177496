"""A part of the page, and what several parts hold: cards with facts and pictures."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array
from consortium.base.formatting import number
from consortium.report.brain_figures import draw_map, draw_mosaic, draw_surface
from consortium.report.finished import Finished
from consortium.report.pictures import Drawing
from consortium.report.shown_maps import ShownMap, full_name, peak_region
from consortium.report.viewer import NAME as VIEWER
from consortium.space.mesh import SIDE_NAMES, Mesh

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PageSection:
    """A part of the report's page."""

    template: str
    """Name of its template, and also the anchor of a part with a heading."""
    values: Mapping[str, object]
    """Values of the template."""
    heading: str = ""
    """Heading of a part in the page's navigation."""


@dataclass(frozen=True)
class Card:
    """One map, component or column as the page shows it."""

    ident: str
    """Where links on the page point to."""
    name: str
    facts: Facts
    """Terms and their definitions."""
    drawings: tuple[Drawing, ...] = ()
    """None if there is nothing that may be drawn."""
    note: str = ""
    """Instead of drawings."""
    viewer: str = ""
    """Where one can look around in the map; empty if nowhere."""


def cards_section(cards: tuple[Card, ...]) -> PageSection | None:
    """Return a part of the page with cards, if there are any."""
    return PageSection("cards", {"cards": cards}) if cards else None


def map_card(run: Finished, shown: ShownMap, first: Facts, last: Facts, note: str = "") -> Card:
    """Show one map of a brain: its named place, similar networks, and its pictures.

    Parameters
    ----------
    first, last : tuple of (str, str)
        Facts before and after those of its place.
    note : str
        Below the pictures.
    """
    where = peak_region(run, shown).text
    place = f"{peak_text(tuple(shown.peak))} ({where})" if where else peak_text(tuple(shown.peak))
    name = full_name(run, shown)
    facts = (*first, ("Peak x, y, z", place), *_alike(run, shown), *last)
    drawn = shown.grid, shown.values, shown.peak, shown.threshold, name, shown.units
    pictures = draw_map(*drawn)
    more = (draw_mosaic(shown.grid, shown.values, shown.threshold, name),)
    link = f"{VIEWER}#{shown.ident}" if shown.coloured else ""
    return Card(shown.ident, name, facts, (Drawing(pictures, note, more=more),), viewer=link)


def mesh_card(
    ident: str, name: str, mesh: Mesh, values: Array, units: str, first: Facts, note: str
) -> Card:
    """Show one map on both hemispheres, and where it peaks.

    Parameters
    ----------
    values : array, shape (D,)
        Zero where nothing is coloured.
    first : tuple of (str, str)
        Facts before those of its place.
    note : str
        In the place of pictures, if nothing is coloured.
    """
    coloured = np.abs(values[values != 0])
    if not len(coloured):
        return Card(ident, name, first, note=note)
    top = int(np.abs(values).argmax())
    threshold = float(coloured.min())
    side = SIDE_NAMES["L" if top < mesh.left.features else "R"]
    facts = (
        *first,
        ("Peak x, y, z", f"{peak_text(tuple(mesh.coordinates[top]))} ({side} hemisphere)"),
        (
            f"Peak {'value' if units == 'arbitrary' else units}",
            number(float(values[top])).replace("-", "−"),
        ),
        (
            "Shown",
            f"{len(coloured):,} of {mesh.features:,} vertices, from {number(threshold)} on",
        ),
    )
    return Card(
        ident, name, facts, (Drawing((draw_surface(mesh, values, threshold, name, units),)),)
    )


def _alike(run: Finished, shown: ShownMap) -> Facts:
    """Return the public networks that are most similar to a map."""
    if run.legend.networks is None:
        return ()
    found = run.legend.networks.most_alike(shown.grid, shown.values)
    named = "; ".join(f"{name} (r = {r:.2f})" for name, r in found)
    return (("Most like", named or "none of the networks that the study names"),)


def peak_text(peak: tuple[float, ...]) -> str:
    """Write a place: whole millimetres with a true minus sign, and never minus zero."""
    return ", ".join(f"{round(value):d}".replace("-", "−") for value in peak) + " mm"
