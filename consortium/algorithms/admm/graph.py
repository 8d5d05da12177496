"""Neighbours of sites: connected graphs over a study's sites."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Literal

from consortium.errors import StudyError

Layout = Literal["ring", "path", "star", "complete"]
Edge = tuple[int, int]


def study_edges(
    count: int, names: Sequence[str], layout: Layout, named: Sequence[tuple[str, str]]
) -> tuple[Edge, ...]:
    """Return edges of a study's graph, as pairs of indices of its sites, the lower one first.

    Raises StudyError if there are fewer than two sites, a named edge has an unknown site, joins a
    site to itself or appears twice, or the edges don't connect all sites.

    Parameters
    ----------
    count : int
        Number of sites.
    names : sequence of str
        Their names, which only named edges need.
    layout : {'ring', 'path', 'star', 'complete'}
        Over the sites in the study's order. The first is the centre of a star.
    named : sequence of (str, str)
        Edges between sites' names, instead of ``layout`` if there are any.
    """
    if count < 2:
        raise StudyError(
            f"field 'sites': neighbours require at least two sites, got {count}. Add a site."
        )
    if not named:
        return _laid_out(count, layout)
    edges = tuple(sorted(_indices(names, pair) for pair in named))
    for one, other in pairwise(edges):
        if one == other:
            raise StudyError(
                "field 'analysis.edges': each edge must be listed once, and the edge of "
                f"{names[one[0]]} and {names[one[1]]} is listed twice. Remove one of the two."
            )
    _check_connected(edges, names)
    return edges


def neighbours(edges: Sequence[Edge], count: int) -> tuple[tuple[int, ...], ...]:
    """Return each site's neighbours in the graph of `admm`, in order."""
    found: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges:
        found[one].append(other)
        found[other].append(one)
    return tuple(tuple(sorted(each)) for each in found)


def _laid_out(count: int, layout: Layout) -> tuple[Edge, ...]:
    if layout == "complete":
        return tuple(combinations(range(count), 2))
    if layout == "star":
        return tuple((0, leaf) for leaf in range(1, count))
    closing = ((0, count - 1),) if layout == "ring" and count > 2 else ()
    return tuple(sorted((*pairwise(range(count)), *closing)))


def _indices(sites: Sequence[str], pair: tuple[str, str]) -> Edge:
    for name in pair:
        if name not in sites:
            known = ", ".join(sites) or "none"
            raise StudyError(
                f"field 'analysis.edges': an edge must join sites of the run ({known}), got "
                f"{name}. Correct the edge, or wait for the site."
            )
    one, other = sorted(sites.index(name) for name in pair)
    if one == other:
        raise StudyError(
            f"field 'analysis.edges': an edge must join two different sites, got {pair[0]} twice. "
            "Correct the edge."
        )
    return one, other


def _check_connected(edges: Sequence[Edge], names: Sequence[str]) -> None:
    adjacent = neighbours(edges, len(names))
    reached = {0}
    waiting = [0]
    while waiting:
        new = set(adjacent[waiting.pop()]) - reached
        reached |= new
        waiting += new
    lost = [name for index, name in enumerate(names) if index not in reached]
    if lost:
        raise StudyError(
            "field 'analysis.edges': the edges must connect all sites, and none leads from "
            f"{names[0]} to {', '.join(lost)}, even through other sites. Add edges."
        )
