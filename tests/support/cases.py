"""Studies and sites in memory, and every example of every analysis with its study and sites."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import NeighbourAnswers, Places, Release, Templates
from consortium.algorithms.open_cohort import OpenDirections
from consortium.simulation.array_data import ArrayData
from consortium.study.spec import Study
from tests.support.open_tables import make_table
from tests.support.surfaces import TINY, TINY_CUTOFF, TINY_MAPS

SITES = ("north", "east", "south", "west")

CASES = tuple(
    pytest.param(name, case, id=f"{name}-{number}")
    for name, algorithm in sorted(REGISTRY.items())
    for number, case in enumerate(algorithm.cases, 1)
)
every_case = pytest.mark.parametrize(("name", "case"), CASES)
"""Every example of every analysis of the registry."""

EDGE = 20.0
"""Edge of an example's six voxels, which are in a row, in mm."""
PLAIN = (("x", 4), ("y", 1))
PROMISE = {"epsilon": 8.0, "delta": 1e-5}
"""Promise of every study made here, for analyses that use it."""
VIEWS = (("faces", 3), ("erp", 2), ("age", 1))
"""Views of studies of feature vectors that name none."""


def table_views(views=VIEWS):
    """Return views of tables with the given numbers of columns, which have limits.

    Columns of ``group`` have two levels, and half of the values of ``gaps`` may be missing.
    """
    limits, levels = {"low": -1.0, "high": 1.0}, {"levels": ["no", "yes"]}
    kinds = {name: levels if name == "group" else limits for name, _ in views}
    return [
        {"name": name, "source": "table", "columns": {f"{name}[1-{size}]": dict(kinds[name])}}
        | ({"gaps": 0.5} if name == "gaps" else {})
        for name, size in views
    ]


def make_study(
    algorithm="average",
    analysis=None,
    unit="subject",
    *,
    sites=SITES,
    views=(),
    mesh=False,
    **privacy,
):
    """Return a valid study; timepoint studies turn off processing that mixes volumes."""
    plain = {"standardize": "none"} if unit == "timepoint" else {}
    if unit == "timepoint" or algorithm == "average":
        plain["detrend"] = "none"
    if mesh and not views:
        plain["mesh"] = "fsaverage5"
    if not views and REGISTRY[algorithm].takes == "features":
        views = VIEWS
    return Study.model_validate(
        {
            "study": "small",
            "sites": list(sites),
            "data": plain,
            "privacy": {"unit": unit, **PROMISE, "colluding_sites": 1, "boost": "exact", **privacy},
            "algorithm": algorithm,
            "analysis": analysis or {},
            "features": table_views(views),
        }
    )


def make_feature_study(algorithm, views, analysis, **more):
    """Return a valid study whose views are numbered columns of the participants' table."""
    return make_study(algorithm, analysis, views=views, **more)


def study_of(name, case, **privacy):
    """Return the study of an example."""
    return make_study(name, case.analysis, case.unit, views=case.views, mesh=case.mesh, **privacy)


def prepared(name, case):
    """Return an analysis, with parameters and sites of an example."""
    return REGISTRY[name], study_of(name, case).analysis, sites_for(case)


def sites_for(case):
    """Return the sites of an example."""
    if case.views:
        surfaces, cohort = surfaces_for(case), open_cohort_for(case)
        return make_feature_sites(case.views, rows=case.rows, surfaces=surfaces, cohort=cohort)
    return make_sites(
        case.unit,
        templates=templates_for(case),
        places=places_for(case),
        cohort=open_cohort_for(case),
    )


def open_cohort_for(case, features=6):
    """Return the open cohort of an example that names one."""
    if not case.analysis.get("open"):
        return None
    if not case.views:
        size, cutoff = (TINY_MAPS, TINY_CUTOFF) if case.mesh else (features, 0.0)
        return open_directions(case.analysis["directions"], size, cutoff=cutoff)
    names = entries_of(case)
    return make_table(names, [name for name in names if name.startswith("group")])


def open_directions(kept, features=6, persons=40, cutoff=0.0):
    """Return random directions of participants of an open cohort."""
    drawn = np.random.default_rng(6).standard_normal((persons, features, kept))
    values = np.linalg.qr(drawn)[0]
    sites = np.repeat(["a", "b"], persons // 2)
    return OpenDirections(values, sites, cutoff, "keep", "")


def entries_of(case):
    """Return the names of the columns of an example's tables, the outcomes first."""
    views = sorted(case.views, key=lambda view: view[0] != case.analysis["outcomes"])
    return [f"{name}{n}" for name, many in views for n in range(1, many + 1)]


def surfaces_for(case):
    """Return the places of a view's entries, if an example's outcomes are vertices."""
    return {case.analysis["outcomes"]: TINY} if case.mesh and case.views else {}


def places_for(case):
    """Return the places of an example's features, if they are vertices or voxels."""
    if case.mesh and not case.views:
        return TINY
    return Places(EDGE * np.indices((6, 1, 1)).reshape(3, -1).T, EDGE**3) if case.voxels else None


def templates_for(case, features=6):
    """Return an example's public maps, if it names any, each strongest in a feature of its own."""
    if not case.templates:
        return None
    noise = np.random.default_rng(5).standard_normal((features, case.templates))
    return Templates((np.eye(features, case.templates) + 0.2 * noise).astype(np.float32))


def sites_of(table, views, counts, surfaces=None, cohort=None):
    """Return sites with neighbouring columns of a D x M table."""
    ends = np.cumsum(counts)[:-1]
    return [
        ArrayData(
            [person[:, None] for person in part.T],
            views=views,
            surface_places=surfaces,
            open_cohort=cohort,
        )
        for part in np.split(table, ends, axis=1)
    ]


def make_feature_sites(views, *, persons=(3, 1, 4, 2), seed=0, rows=1, surfaces=None, cohort=None):
    """Return sites of participants with the given number of rows, entries between -1 and 1."""
    size = rows * sum(count for _, count in views)
    table = np.random.default_rng(seed).uniform(-1, 1, (size, sum(persons)))
    return sites_of(table.astype(np.float32), views, persons, surfaces, cohort)


def make_sites(
    unit="subject",
    *,
    features=6,
    subjects=(3, 1, 4, 2),
    seed=0,
    dtype=np.float32,
    templates=None,
    places=None,
    cohort=None,
):
    """Return sites whose subjects have different numbers of volumes."""
    generator = np.random.default_rng(seed)
    spread = generator.uniform(0.2, 1.0, (features, 1))
    return [
        ArrayData(
            [
                (spread * generator.standard_normal((features, 12 + m))).astype(dtype)
                for m in range(count)
            ],
            unit,
            templates=templates,
            places=places,
            open_cohort=cohort,
        )
        for count in subjects
    ]


def make_vectors(*, subjects=(3, 1, 4, 2), seed=0, views=VIEWS, dtype=np.float64):
    """Return sites with one vector per participant, whose views have two sources in common."""
    generator = np.random.default_rng(seed)
    mixing = generator.standard_normal((sum(size for _, size in views), 2)) / 4
    noise = 0.1 * generator.standard_normal((sum(subjects), len(mixing), 1))
    people = [0.2 + mixing @ generator.standard_normal((2, 1)) + each for each in noise]
    stops = np.cumsum((0, *subjects))
    return [
        ArrayData([p.astype(dtype) for p in people[a:b]], views=views) for a, b in pairwise(stops)
    ]


def shape_of(sites, noise=0.0):
    """Return public sizes, and noise as in a plan."""
    shape = sites[0].extent.shape(
        [len(site.lengths) for site in sites],
        [sum(site.lengths) for site in sites],
        sites[0].unit,
    )
    return replace(shape, noise=noise)


def planned_by(algorithm, parameters, sites, known=0.0):
    """Return the planned releases by stage."""
    return {r.stage: r for r in algorithm(parameters, shape_of(sites, known)).planned()}


def plan_of(name, analysis, sites):
    """Return an analysis's plan over these sites, without noise."""
    return REGISTRY[name](REGISTRY[name].Parameters(**analysis), shape_of(sites))


def pooled_mean(plan, query, bound, sites):
    """Return the mean over all units of all sites, in plain NumPy."""
    shape = shape_of(sites)
    weights = np.array(shape.units) / sum(shape.units)
    local = plan.statistics[query.statistic]
    return sum(
        w * local(plan, s, query, bound).ravel() for w, s in zip(weights, sites, strict=True)
    )


def hearing(query, stage, site, told):
    """Return the query as a site gets it, with its neighbours' answers if the stage uses them."""
    if not stage.neighbours:
        return query
    answers = np.zeros(
        (len(told), len(stage.neighbours), told[0].shape[1] if told else stage.entries)
    )
    for number, rows in enumerate(told):
        within = [site, *stage.neighbours[site]]
        answers[number, within] = rows[within]
    return replace(query, neighbour_answers=NeighbourAnswers(site, answers))


def answered(plan, query, stage, sites, told, noise):
    """Return the release of the sites' answers: their mean, or a row for each of them."""
    local = plan.statistics[query.statistic]
    rows = [
        local(
            plan, each, replace(hearing(query, stage, site, told), site=site), stage.bound
        ).ravel()
        for site, each in enumerate(sites)
    ]
    if stage.released == "each":
        return np.stack([row + noise(stage.entries) for row in rows])
    return np.average(rows, axis=0, weights=shape_of(sites).units) + noise(stage.entries)


def drive(algorithm, parameters, sites, noise=lambda entries: 0.0, known=0.0):
    """Run an algorithm without an engine; returns its queries, releases and result.

    ``known`` is the noise that the algorithm plans for.

    Queries of a stage among neighbours are recorded as the first site gets them.
    """
    plan = algorithm(parameters, shape_of(sites, known))
    planned, run = {release.stage: release for release in plan.planned()}, plan.run()
    queries, releases, told = [], [], []
    try:
        query = next(run)
        while True:
            stage = planned[query.stage]
            queries.append(hearing(query, stage, 0, told))
            values = answered(plan, query, stage, sites, told, noise)
            told += [values] if stage.released == "each" else []
            releases.append(Release(values, 0.0, tuple(range(len(sites)))))
            query = run.send(releases[-1])
    except StopIteration as stop:
        return queries, releases, stop.value


def drive_noisy(algorithm, parameters, sites, shape, deviation=lambda stage: 0.0, **more):
    """Return the result of sums over the sites, with noise of known deviation by stage.

    ``generator`` draws the noise; only the sites ``present`` answer.
    """
    plan = algorithm(parameters, shape)
    planned = {release.stage: release for release in plan.planned()}
    present = more.get("present", tuple(range(len(sites))))
    run, weights = plan.run(), [shape.units[n] for n in present]
    try:
        query = next(run)
        while True:
            stage, local = planned[query.stage], plan.statistics[query.statistic]
            each = [local(plan, sites[n], replace(query, site=n), stage.bound) for n in present]
            values, level = np.average(each, axis=0, weights=weights), deviation(stage)
            if level:
                values = values + level * more["generator"].standard_normal(values.shape)
            query = run.send(Release(values, level, present))
    except StopIteration as stop:
        return stop.value


def with_counts(mechanism, values, present=range(4)):
    """Return a release as the centre gets it, from sites with the planned numbers of units.

    ``values`` are the statistic's: a weighted sum, or one row after the other.
    """
    weights = np.array(mechanism.weights)
    if not mechanism.places:
        return np.asarray(values)
    if mechanism.each:
        rows = np.reshape(values, (len(present), -1))
        counts = mechanism.counted * weights[list(present), None]
        return np.hstack([rows, counts]).ravel()
    answering = np.isin(np.arange(len(weights)), present)
    return np.append(values, mechanism.counted * weights * answering)


def loud(seed):
    """Return noise for `drive` that is larger than any signal."""
    generator = np.random.default_rng(seed)
    return lambda entries: generator.standard_normal(entries)
