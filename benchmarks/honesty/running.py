"""One run of an analysis over sites in memory: their own statistics, the plan's noise, the result.

All is the code of a real run but for the protocol and the grid of integers, which other tests hold
to be the same: the noise is drawn here with the deviation that the plan gives the aggregate.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies import PLAIN, study_of
from consortium.algorithms.base import Array, Extent, Result
from consortium.engine.neighbour_answers import answers_neighbours, collect_answers
from consortium.engine.session import Session, own_answers
from consortium.simulation.array_data import ArrayData
from consortium.study.plan import Plan, make_plan

Views = tuple[tuple[str, int], ...]


class TableSite(ArrayData):
    """A site whose participants are columns of one table, each of one vector."""

    def __init__(
        self, table: Array, views: Views, hashes: NDArray[np.uint64] | None = None
    ) -> None:
        columns = [table[:, [k]] for k in range(table.shape[1])]
        super().__init__(columns, views=views, person_hashes=hashes)
        self._whole = table

    def table(self) -> Array:
        """Return all participants as the columns of one array."""
        return self._whole


def answer(
    algorithm: str,
    analysis: Mapping[str, Any],
    sites: Sequence[ArrayData],
    epsilon: float | None,
    rng: np.random.Generator,
    data: Mapping[str, Any] | None = None,
    nominal: Sequence[int] | None = None,
) -> Result:
    """Run a study over sites in memory.

    Parameters
    ----------
    algorithm : str
    analysis : mapping
        As in a study file.
    sites : sequence of ArrayData
    epsilon : float, optional
        ε of the study; without it, noise is omitted.
    rng : numpy.random.Generator
        Generator of the noise.
    data : mapping, optional
        As in a study file.
    nominal : sequence of int, optional
        Participants of each site that the study states; by default the true numbers.
    """
    lengths = tuple((len(site.lengths), sum(site.lengths)) for site in sites)
    if nominal is not None:
        lengths = tuple(
            (many, round(many * volumes / max(persons, 1)) or many)
            for many, (persons, volumes) in zip(nominal, lengths, strict=True)
        )
    made = planned(
        algorithm,
        json.dumps(dict(analysis)),
        json.dumps(dict(data or {})),
        sites[0].extent,
        lengths,
        epsilon,
    )
    return carry_out(made, sites, rng)


def carry_out(plan: Plan, sites: Sequence[ArrayData], rng: np.random.Generator) -> Result:
    """Run a planned study over sites in memory, with noise of the planned deviation."""
    session = Session(plan)
    while session.pending is not None:
        _round(session, sites, rng)
    assert session.result is not None
    return session.result


@lru_cache(maxsize=16)
def planned(
    algorithm: str,
    analysis: str,
    data: str,
    extent: Extent,
    lengths: tuple[tuple[int, int], ...],
    epsilon: float | None,
) -> Plan:
    """Plan a study whose analysis and data sections are JSON."""
    study = study_of(
        *(algorithm, json.loads(analysis), len(lengths), epsilon or 1.0),
        data=json.loads(data) or PLAIN,
        views=extent.views,
        scheme="cape" if epsilon else "none",
    )
    subjects, samples = zip(*lengths, strict=True)
    return make_plan(study, extent.shape(subjects, samples, "subject"))


def _round(session: Session, sites: Sequence[ArrayData], rng: np.random.Generator) -> None:
    stage, query, plan = session.stage, session.pending, session.plan
    assert query is not None
    mechanism, local = stage.mechanism, plan.analysis.statistics[query.statistic]
    rows = []
    told = _told(session) if stage.release.neighbours else []
    for index, site in enumerate(sites):
        asked = replace(query, site=index)
        if stage.release.neighbours:
            asked = replace(asked, neighbour_answers=collect_answers(plan, stage, index, told))
        statistic = np.zeros(stage.release.entries)
        if site.units or not mechanism.sums:
            statistic = local(plan.analysis, site, asked, mechanism.bound).ravel()
        part = site.units / plan.shape.units[index]
        rows.append(mechanism.total(index, statistic, part) * mechanism.weights[index])
    free = mechanism.scheme == "none"
    if mechanism.each:
        levels = np.zeros(len(sites)) if free else np.array(mechanism.noise.local)
        values = np.concatenate(rows)
        values = values + np.repeat(levels, mechanism.entries) * rng.standard_normal(values.shape)
    else:
        level = 0.0 if free else mechanism.noise.aggregate()
        values = np.sum(rows, axis=0) + level * rng.standard_normal(mechanism.entries)
    session.accept(values, range(len(sites)))


def _told(session: Session) -> list[dict[int, Array]]:
    """Return the sites' answers to their neighbours so far, round by round."""
    return [
        own_answers(session.plan.stage(done.stage).mechanism, done.values, done.survivors)
        for done in session.rounds
        if answers_neighbours(session.plan.stage(done.stage))
    ]
