"""A whole run of an analysis over participants in memory, for forecasts.

The centre's half and the sites' halves are those of a real run, and the noise has the planned size.
It is drawn in real numbers, without the protocol.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from consortium.algorithms.assumed_persons import DRAWS, NEW, AssumedSite, Classes
from consortium.algorithms.base import (
    AnalysisPlan,
    Array,
    Extent,
    NeighbourAnswers,
    PlannedRelease,
    Query,
    Release,
    Result,
    Shape,
)

NO_EFFECT = (
    "No accuracy is forecast, since it depends on how well participants can be classified at all. "
    "State in analysis.detect the share of them that the best rule is assumed to classify "
    "correctly."
)


def rehearse_analysis(
    plan: AnalysisPlan[Any],
    tables: Sequence[Array],
    generator: np.random.Generator,
) -> Result:
    """Run an analysis for participants with feature vectors, with new noise of the planned size.

    Parameters
    ----------
    plan : AnalysisPlan
        The noise is that of its sizes.
    tables : sequence of array, D x M
        Participants of every site. Fewer than planned represent all of the site.
    generator : numpy.random.Generator
        Generator of the noise.
    """
    shape = plan.shape
    extent = Extent(shape.features, views=shape.views)
    sites = [AssumedSite(table, extent) for table in tables]
    planned = {each.stage: each for each in plan.releases}
    spoken: list[Array] = []
    run = plan.run()
    query = next(run)
    while True:
        release = planned[query.stage]
        rows = _rows(plan, release, query, sites, spoken)
        noisy = _released(release, shape, rows, generator)
        if release.neighbours and release.released == "each":
            spoken.append(noisy.values)
        try:
            query = run.send(noisy)
        except StopIteration as stop:
            result: Result = stop.value
            return result


def train_on_assumed(
    plan: AnalysisPlan[Any],
    sizes: Sequence[int],
    law: Callable[[np.random.Generator], Classes],
    stacked: Callable[[Array, Array], Array],
) -> Iterator[tuple[Result, Array, Array]]:
    """Yield classifiers that were trained on assumed participants.

    Parameters
    ----------
    sizes : sequence of int
        Participants of every site.
    law : callable
        Draws participants.
    stacked : callable
        Makes a site's table of participants' entries and classes.

    Yields
    ------
    result : Result
    entries : array, entries x participants
        Entries of new participants.
    kinds : array, length participants
        Their classes.
    """
    for seed in range(DRAWS):
        generator = np.random.default_rng(seed)
        classes = law(generator)
        tables = [stacked(*classes.draw(size, generator)) for size in sizes]
        result = rehearse_analysis(plan, tables, generator)
        yield result, *classes.draw(NEW, generator)


def _rows(
    plan: AnalysisPlan[Any],
    planned: PlannedRelease,
    query: Query,
    sites: Sequence[AssumedSite],
    spoken: Sequence[Array],
) -> Array:
    """Return the sites' answers, one row each."""
    local = plan.statistics[query.statistic]
    rows = []
    for number, site in enumerate(sites):
        asked = replace(query, site=number)
        if planned.neighbours:
            asked = replace(asked, neighbour_answers=_heard(planned, number, sites, spoken))
        rows.append(local(plan, site, asked, planned.bound).ravel())
    return np.stack(rows)


def _heard(
    planned: PlannedRelease, site: int, sites: Sequence[AssumedSite], spoken: Sequence[Array]
) -> NeighbourAnswers:
    """Collect the earlier answers of a site and its neighbours."""
    if not spoken:
        entries = planned.entries
        return NeighbourAnswers(site, np.zeros((0, len(sites), entries)))
    answers = np.zeros((len(spoken), *spoken[0].shape))
    within = [site, *planned.neighbours[site]]
    answers[:, within] = np.stack(spoken)[:, within]
    return NeighbourAnswers(site, answers)


def _released(
    planned: PlannedRelease, shape: Shape, rows: Array, generator: np.random.Generator
) -> Release:
    """Return the mean over the participants of all sites, or each site's answer, with noise."""
    units = np.array(shape.units, dtype=np.float64)
    level = planned.round_deviation(shape)
    present = tuple(range(len(units)))
    if planned.released == "each":
        levels = level * units.min() / units[:, None]
        return Release(rows + levels * generator.standard_normal(rows.shape), level, present)
    mean = units / units.sum() @ rows
    return Release(mean + level * generator.standard_normal(len(mean)), level, present)
