"""All maps in one list of bars, each a link to its card."""

from typing import NamedTuple

from consortium.algorithms.findings import WITHHELD, Finding
from consortium.base.formatting import number, percent
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.sections.base import PageSection
from consortium.report.shown_maps import map_anchor


class Bar(NamedTuple):
    """A line of the list: its link, its number, the bar's length up to 1, and its text."""

    ident: str
    number: int
    length: float
    text: str


def section(run: Finished) -> PageSection | None:
    """Show the components' shares, or how sure each map of a set is."""
    if run.components is not None and run.components.tells_shares:
        what = "Explained share of each component; choose one to go to its maps."
        bars = _shares(run.components)
        return PageSection("glance", {"bars": bars, "things": "components", "what": what})
    for key, images in run.result.images.items():
        if images.drawn and len(images.accuracy) > 1:
            bars = [_accuracy(key, k, each) for k, each in enumerate(images.accuracy)]
            what = f"{images.accuracy_caption}; choose a map to go to it."
            return PageSection("glance", {"bars": bars, "things": "maps", "what": what})
    return None


def _shares(maps: ComponentMaps) -> list[Bar]:
    shares = [maps.share(r) for r in range(len(maps.components))]
    longest = max((each.value for each in shares if each.reported), default=0.0) or 1.0
    return [
        Bar(
            f"component-{number}",
            number,
            max(share.value, 0.0) / longest if share.reported else 0.0,
            percent(share.value) if share.reported else WITHHELD,
        )
        for number, share in enumerate(shares, start=1)
    ]


def _accuracy(key: str, k: int, finding: Finding) -> Bar:
    length = min(max(finding.value, 0.0), 1.0) if finding.reported else 0.0
    return Bar(
        map_anchor(key, k), k + 1, length, number(finding.value) if finding.reported else WITHHELD
    )
