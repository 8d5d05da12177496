"""All maps in one list of bars, each a link to its card."""

from __future__ import annotations

from typing import NamedTuple

from consortium.formatting import number, percent
from consortium.report.finished import Finished
from consortium.report.sections.base import Section
from consortium.report.sections.images import ident


class Bar(NamedTuple):
    """A line of the list: where it leads, its number, the bar's length of 1, and what it says."""

    ident: str
    number: int
    length: float
    text: str


def section(run: Finished) -> Section | None:
    """Show the components' shares, or how sure each map of a set is."""
    if run.components is not None:
        what = "Explained share of each component; choose one to go to its maps."
        return Section("glance", {"bars": _shares(run), "things": "components", "what": what})
    for key, images in run.result.images.items():
        if images.drawn and len(images.accuracy) > 1:
            bars = [
                Bar(ident(key, k), k + 1, min(max(each.value, 0.0), 1.0), number(each.value))
                if each.told
                else Bar(ident(key, k), k + 1, 0.0, "not told")
                for k, each in enumerate(images.accuracy)
            ]
            what = f"{images.accuracy_caption}; choose a map to go to it."
            return Section("glance", {"bars": bars, "things": "maps", "what": what})
    return None


def _shares(run: Finished) -> list[Bar]:
    shares = run.components.components.shares if run.components else ()
    longest = max(shares, default=0.0) or 1.0
    return [
        Bar(f"component-{r}", r, float(share / longest), percent(float(share)))
        for r, share in enumerate(shares, start=1)
    ]
