"""All maps in one list of bars, each a link to its card."""

from collections.abc import Mapping
from typing import NamedTuple

from consortium.algorithms.findings import WITHHELD, Finding
from consortium.base.formatting import number, percent
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.sections.base import PageSection
from consortium.report.shown_maps import map_anchor, map_name, shown_maps


class Bar(NamedTuple):
    """A line of the list: its link, name, the bar's length up to 1, and its text."""

    ident: str
    name: str
    length: float
    text: str


def section(run: Finished) -> PageSection | None:
    """Show the components' shares, or how sure each map of a set is."""
    if run.components is not None and run.components.tells_shares:
        what = "Explained share of each component. Choose one to go to its maps."
        bars = _shares(run.components, _names(run))
        return _list(bars, "components", what)
    for key, images in run.result.images.items():
        if images.drawn and len(images.accuracy) > 1:
            names = _names(run)
            bars = [_accuracy(key, k, each, names) for k, each in enumerate(images.accuracy)]
            what = f"{images.accuracy_caption}. Choose a map to go to it."
            return _list(bars, "maps", what)
    return None


def _list(bars: list[Bar], things: str, what: str) -> PageSection:
    named = any(" " in bar.name for bar in bars)
    return PageSection("glance", {"bars": bars, "named": named, "things": things, "what": what})


def _names(run: Finished) -> dict[str, str]:
    """Return the names of the drawn maps by their anchors."""
    return {shown.ident: map_name(run, shown) for shown in shown_maps(run)}


def _shares(maps: ComponentMaps, names: Mapping[str, str]) -> list[Bar]:
    shares = [maps.share(r) for r in range(len(maps.components))]
    longest = max((each.value for each in shares if each.reported), default=0.0) or 1.0
    return [
        Bar(
            f"component-{number}",
            f"{number} {names.get(f'component-{number}', '')}".rstrip(),
            max(share.value, 0.0) / longest if share.reported else 0.0,
            percent(share.value) if share.reported else WITHHELD,
        )
        for number, share in enumerate(shares, start=1)
    ]


def _accuracy(key: str, k: int, finding: Finding, names: Mapping[str, str]) -> Bar:
    length = min(max(finding.value, 0.0), 1.0) if finding.reported else 0.0
    anchor = map_anchor(key, k)
    name = f"{k + 1} {names.get(anchor, '')}".rstrip()
    return Bar(anchor, name, length, number(finding.value) if finding.reported else WITHHELD)
