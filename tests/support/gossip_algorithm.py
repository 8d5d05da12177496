"""The smallest algorithm without a centre: sites on a ring average with their neighbours."""

from __future__ import annotations

import sys
from types import MappingProxyType

import numpy as np
import pytest

from consortium import algorithms
from consortium.algorithms.average import Average, _mean_volume
from consortium.algorithms.base import (
    Array,
    NeighbourAnswers,
    PlannedRelease,
    Query,
    Result,
    Run,
    Shape,
    SiteData,
)
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector

ROUNDS = 3
RING = ((1, 3), (0, 2), (1, 3), (0, 2))
TEXT = """\
study: small
sites: [north, east, south, west]
data: {resolution: 30, standardize: subject, detrend: none, minimum_volumes: 10, volumes: 24}
privacy: {unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1, dropouts: DROPOUTS}
algorithm: average
timing: {join: 4, answer: 4}
"""


class Gossip(Average):
    """Every site says its mean, drawn towards what its neighbours said last.

    ``heard`` records what every site was given before each answer.
    """

    def __init__(self) -> None:
        self.heard: list[NeighbourAnswers] = []
        self.statistics = {"gossip": self._gossip}  # type: ignore[misc]

    def _gossip(self, data: SiteData, query: Query, bound: Bound) -> Array:
        assert query.neighbour_answers is not None
        assert query.site == query.neighbour_answers.site
        self.heard.append(query.neighbour_answers)
        mean = _mean_volume(data, query, bound)
        if len(query.neighbour_answers.answers):
            last = query.neighbour_answers.answers[-1]
            mean = (mean + last[list(RING[query.neighbour_answers.site])].mean(axis=0)) / 2
        return clip_vector(mean, bound.norm)

    def releases(self, parameters: object, shape: Shape) -> tuple[PlannedRelease, ...]:
        entries, bound = shape.features, Bound(1.0)
        return (
            PlannedRelease(
                "talk", "gossip", entries, bound, ROUNDS, 1.0, released="each", neighbours=RING
            ),
        )

    def run(self, parameters: object, shape: Shape) -> Run:
        rows = []
        for _ in range(ROUNDS):
            release = yield Query("talk", "gossip")
            rows.append(np.asarray(release.values))
        return Result({f"round{number}": values for number, values in enumerate(rows)})


def register(patch: pytest.MonkeyPatch) -> Gossip:
    """Let 'average' be the gossip everywhere."""
    gossip, known = Gossip(), algorithms.REGISTRY
    changed = MappingProxyType({**known, "average": gossip})
    for module in list(sys.modules.values()):
        if getattr(module, "REGISTRY", None) is known:
            patch.setattr(module, "REGISTRY", changed)
    return gossip
