"""The graph of masks of a study: all pairs of sites, or a few that each site draws.

Up to 32 sites, or where a graph would cost more than it saves, all pairs of sites share masks and
seeds. Beyond that a graph is drawn (see `consortium.secagg.graph`), and the study's guarantee
accounts for the sites that a graph may hide and for its failure probability.
"""

from dataclasses import dataclass

from consortium.secagg.graph import Neighbourhood, plan_neighbourhood
from consortium.secagg.threshold import threshold
from consortium.study.spec import Study

MOST_OF_DELTA = 1e-3
"""Largest part of the study's δ that the graph's failure may take; most studies give it 1e-7."""


@dataclass(frozen=True)
class Masking:
    """How a study's secure sums are masked."""

    threshold: int
    """Shares that open a seed; 0 if nothing is masked."""
    holders: int = 0
    """Number of sites that each site draws as holders of its shares; 0 for all."""
    hidden: int = 0
    """Number of honest sites that may be missing from a sum unnoticed, in addition to the drop-outs
    that the study allows."""
    failure: float = 0.0
    """Probability, over the draws, that more is learnt than was promised: a part of δ."""


def plan_graph(study: Study) -> Neighbourhood | None:
    """Return the graph that a study draws, or None if all pairs share masks or there are none."""
    privacy = study.privacy
    sites = len(study.sites)
    if privacy.scheme in ("local", "none"):
        return None
    graph = plan_neighbourhood(sites, privacy.colluding_sites, privacy.dropouts)
    affordable = graph is not None and graph.failure <= MOST_OF_DELTA * privacy.delta
    return graph if affordable else None


def plan_masking(study: Study) -> Masking:
    """Choose between all sites and a graph; every party of a run comes to the same.

    Raises StudyError if the study's numbers of colluding sites and drop-outs are unsafe together.
    """
    privacy = study.privacy
    sites = len(study.sites)
    if privacy.scheme in ("local", "none"):
        return Masking(0)
    needed = threshold(sites, privacy.colluding_sites, privacy.dropouts)
    graph = plan_graph(study)
    if graph is None:
        return Masking(needed)
    return Masking(graph.threshold, graph.holders, graph.hidden, graph.failure)


def delta_left(study: Study) -> float:
    """Return the part of the study's δ for the noise, after subtracting the graph's failure."""
    graph = plan_graph(study)
    return study.privacy.delta - (graph.failure if graph else 0.0)
