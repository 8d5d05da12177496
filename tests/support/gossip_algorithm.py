"""The smallest algorithm without a centre: sites on a ring average with their neighbours."""

import sys
from collections.abc import Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest

from consortium import algorithms
from consortium.algorithms.average import Average, _mean_volume
from consortium.algorithms.base import (
    Array,
    Local,
    NeighbourAnswers,
    PlannedRelease,
    Query,
    Result,
    Run,
    SiteData,
)
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector

ROUNDS = 3
RING = ((1, 3), (0, 2), (1, 3), (0, 2))
TEXT = """\
study: small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {resolution: 30, standardize: subject, detrend: none, minimum_volumes: 10, volumes: 24}
privacy: {unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1, dropouts: DROPOUTS}
algorithm: average
timing: {join: 4, answer: 4}
"""


def _gossip(
    heard: list[NeighbourAnswers], plan: object, data: SiteData, query: Query, bound: Bound
) -> Array:
    assert query.neighbour_answers is not None
    assert query.site == query.neighbour_answers.site
    heard.append(query.neighbour_answers)
    mean = _mean_volume(plan, data, query, bound)
    if len(query.neighbour_answers.answers):
        last = query.neighbour_answers.answers[-1]
        mean = (mean + last[list(RING[query.neighbour_answers.site])].mean(axis=0)) / 2
    return clip_vector(mean, bound.norm)


class Gossip(Average):
    """Average values among neighbours: each site sends its mean, drawn towards their last ones.

    ``heard`` records the neighbours' answers that every site was given before each answer.
    """

    heard: ClassVar[list[NeighbourAnswers]]

    @cached_property
    def releases(self) -> tuple[PlannedRelease, ...]:
        entries, bound = self.shape.features, Bound(1.0)
        return (
            PlannedRelease(
                "talk", "gossip", entries, bound, ROUNDS, 1.0, released="each", neighbours=RING
            ),
        )

    def run(self) -> Run:
        rows = []
        for _ in range(ROUNDS):
            release = yield Query("talk", "gossip")
            rows.append(np.asarray(release.values))
        return Result({f"round{number}": values for number, values in enumerate(rows)})


def register(patch: pytest.MonkeyPatch) -> type[Gossip]:
    """Let 'average' be the gossip everywhere."""
    heard, known = list[NeighbourAnswers](), algorithms.REGISTRY

    class Registered(Gossip):
        statistics: ClassVar[Mapping[str, Local]] = {"gossip": partial(_gossip, heard)}

    gossip = Registered
    gossip.heard = heard
    changed = MappingProxyType({**known, "average": gossip})
    for module in list(sys.modules.values()):
        if getattr(module, "REGISTRY", None) is known:
            patch.setattr(module, "REGISTRY", changed)
    return gossip
