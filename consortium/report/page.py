"""The page that people read: one HTML file with everything in it, no script and no link out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment
from numpy.typing import NDArray

from consortium.algorithms import REGISTRY
from consortium.files.atomic import write_text
from consortium.formatting import number
from consortium.report.bids import map_stem, voxel_text
from consortium.report.brain_figures import draw_components
from consortium.report.components import Components
from consortium.report.privacy_report import PrivacyReport
from consortium.report.prose import UNITS, methods, reading, verdict
from consortium.report.statement import clauses
from consortium.report.templating import plain_environment
from consortium.space.grid import Grid
from consortium.study.spec import Study

NAME = "report.html"
THRESHOLD = 3.0
"""Voxels with a smaller |z| are not drawn."""


@dataclass(frozen=True)
class Card:
    """One component as the page shows it."""

    number: int
    share: float
    peak: str
    height: float
    beyond: int
    beyond_share: float
    noise: float | None
    glass: str
    glass_text: str
    slices: str
    slices_text: str


def write_page(
    folder: Path,
    study: Study,
    grid: Grid,
    components: Components,
    report: PrivacyReport,
    *,
    numbers: Mapping[str, float | int | str],
    day: date,
    threshold: float = THRESHOLD,
    noise: NDArray[np.floating] | None = None,
    watch: Callable[[int], None] = lambda _: None,
) -> Path:
    """Write `report.html`.

    Parameters
    ----------
    folder : Path
        Output folder; an earlier page is replaced.
    study : Study
    grid : Grid
    components : Components
    report : PrivacyReport
    numbers : mapping
        The analysis's public numbers.
    day : date
        Date that the page carries.
    threshold : float
        Least size of a z-score that is drawn.
    noise : array, shape (D, R), optional
        Standard deviation of the privacy noise in the maps, if it is known; what is smaller than
        ``threshold`` times it is not drawn, either.
    watch : callable
        Called with 1, 2, ... when so many components are drawn.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    OutputError
        If the folder can't be written.
    """
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            **frame(study, report, day),
            grid=grid,
            components=len(components),
            parameters=study.analysis.model_dump(mode="json", exclude_none=True),
            numbers=numbers,
            verdict=verdict(components, report),
            methods=methods(study, grid, report),
            reading=reading(threshold, voxel_text(grid), noise is not None),
            cards=_cards(grid, components, threshold, noise, watch),
            threshold=threshold,
            maps=f"tpl-{study.data.space}/func/{map_stem(study, grid)}_components.nii.gz",
        )
    )
    return write_text(folder / NAME, page)


def frame(study: Study, report: PrivacyReport, day: date) -> dict[str, Any]:
    """What every page shows, whatever was analysed."""
    return {
        "study": study,
        "report": report,
        "title": study.title or study.study,
        "algorithm": REGISTRY[study.algorithm].title,
        "unit": UNITS[report.unit],
        "units": sum(site.units for site in report.sites),
        "day": f"{day.day} {day:%B %Y}",
        "clauses": clauses(report),
    }


def environment() -> Environment:
    """Build the environment of a report's templates."""
    found = plain_environment("consortium.report")
    found.filters |= {"per_site": _per_site, "unbroken": _unbroken, "value": _value}
    return found


def _cards(
    grid: Grid,
    components: Components,
    threshold: float,
    noise: NDArray[np.floating] | None,
    watch: Callable[[int], None],
) -> list[Card]:
    cards = []
    maps = components.maps
    if noise is not None:
        maps = np.where(np.abs(maps) >= threshold * noise, maps, 0.0)
    pictures = draw_components(grid, maps, components.peaks, threshold)
    for r, picture in enumerate(pictures):
        beyond = int(np.count_nonzero(np.abs(maps[:, r]) >= threshold))
        card = Card(
            number=r + 1,
            share=float(components.shares[r]),
            peak=", ".join(_millimetres(mm) for mm in components.peaks[r]),
            height=float(components.heights[r]),
            beyond=beyond,
            beyond_share=beyond / grid.features,
            noise=None if noise is None else float(np.median(noise[:, r])),
            glass=inline(picture.glass),
            glass_text=picture.glass_text,
            slices=inline(picture.slices),
            slices_text=picture.slices_text,
        )
        cards.append(card)
        watch(card.number)
    return cards


def inline(picture: bytes) -> str:
    """Write a PNG as the address of an image."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def _millimetres(value: float) -> str:
    """Whole millimetres with a true minus sign; never minus zero."""
    return f"{round(value):d}".replace("-", "−")


def _per_site(value: float | tuple[float, ...]) -> str:
    """One number, or the range over the sites."""
    if not isinstance(value, tuple):
        return number(value)
    low, high = number(min(value)), number(max(value))
    return low if low == high else f"{low}–{high}"


def _unbroken(text: str) -> str:
    """Keep a symbol with its value and a value with its unit on one line."""
    return text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")


def _value(value: object) -> str:
    """Format a parameter or number of the analysis."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
