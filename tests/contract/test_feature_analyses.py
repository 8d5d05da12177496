"""What every algorithm of feature vectors must keep; `test_algorithms_contract` for persons."""

from collections import Counter

import numpy as np
import pytest
import yaml

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.engine.session import own_answers
from consortium.errors import ProtocolError
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study
from tests.support.feature_cases import (
    FEATURE_CASES,
    HEARING,
    make_feature_sites,
    make_feature_study,
    sites_of,
)
from tests.support.series_cases import (
    check_fixed,
    check_replay,
    check_sizes_and_bounds,
    drive,
    form,
    loud,
    pooled_mean,
    shape_of,
)

cases = pytest.mark.parametrize(("name", "views", "analysis"), FEATURE_CASES)
central = [case for case in FEATURE_CASES if case[0] not in HEARING]


def prepared(name, views, analysis):
    algorithm = REGISTRY[name]
    return algorithm, algorithm.Parameters.model_validate(analysis), make_feature_sites(views)


def planned_by(algorithm, parameters, sites):
    return {r.stage: r for r in algorithm.releases(parameters, shape_of(sites))}


def test_the_cases_cover_the_registry():
    takers = {name for name, _, _ in FEATURE_CASES}
    assert takers <= {name for name, each in REGISTRY.items() if each.takes == "features"}
    for name in takers:
        asked = set()
        for case in FEATURE_CASES:
            if case[0] == name:
                asked |= {query.statistic for query in drive(*prepared(*case))[0]}
        assert asked == set(REGISTRY[name].statistics)


@cases
def test_the_planned_releases_share_one_budget(name, views, analysis):
    planned = planned_by(*prepared(name, views, analysis)).values()
    assert sum(release.share for release in planned) <= 1 + 1e-12
    assert all(release.share > 0 for release in planned)
    assert all(release.rounds >= 1 and release.entries >= 1 for release in planned)
    assert all(release.statistic in REGISTRY[name].statistics for release in planned)


@cases
@pytest.mark.parametrize("noisy", [False, True])
def test_only_what_is_planned_is_asked(name, views, analysis, noisy):
    algorithm, parameters, sites = prepared(name, views, analysis)
    planned = planned_by(algorithm, parameters, sites)
    queries, _, result = drive(
        algorithm, parameters, sites, loud(1) if noisy else lambda entries: 0.0
    )
    for stage, rounds in Counter(query.stage for query in queries).items():
        assert rounds <= planned[stage].rounds
    for query in queries:
        assert query.statistic == planned[query.stage].statistic
        assert form(query) == planned[query.stage].arguments
        check_fixed(planned[query.stage], query)
    assert all(np.isfinite(array).all() for array in result.arrays.values())
    assert result.arrays[result.loadings].shape[0] == sites[0].features
    for table in result.tables.values():
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


@cases
def test_statistics_have_the_planned_size_and_keep_their_bound(name, views, analysis):
    check_sizes_and_bounds(*prepared(name, views, analysis))


@pytest.mark.parametrize(("name", "views", "analysis"), central)
def test_it_does_not_matter_how_persons_are_spread_over_the_sites(name, views, analysis):
    algorithm, parameters, sites = prepared(name, views, analysis)
    whole = np.hstack([site.table() for site in sites])
    together = sites_of(whole, views, (whole.shape[1],))
    planned = planned_by(algorithm, parameters, sites)
    for query in drive(algorithm, parameters, sites)[0]:
        bound = planned[query.stage].bound
        apart = pooled_mean(algorithm, query, bound, sites)
        assert pooled_mean(algorithm, query, bound, together) == pytest.approx(apart, abs=1e-9)


@cases
def test_the_same_releases_lead_to_the_same_queries(name, views, analysis):
    check_replay(*prepared(name, views, analysis))


@cases
def test_data_are_not_changed(name, views, analysis):
    algorithm, parameters, sites = prepared(name, views, analysis)
    before = [site.table().copy() for site in sites]
    drive(algorithm, parameters, sites)
    assert all(np.array_equal(a, b.table()) for a, b in zip(before, sites, strict=True))


@cases
def test_writing_and_reading_a_study_are_inverses(name, views, analysis):
    study = make_feature_study(name, views, analysis)
    assert parse_study(yaml.safe_dump(study.model_dump(mode="json"))) == study


@cases
def test_a_simulation_without_privacy_releases_the_pooled_mean(name, views, analysis):
    # Of later rounds, whose queries may depend on rounding, only that they end in a result.
    study = make_feature_study(name, views, analysis, scheme="none")
    sites = make_feature_sites(views)
    _, releases, expected = drive(REGISTRY[name], study.analysis, sites)
    simulation = Simulation(study, sites, 0)
    mechanism, values = simulation.session.stage.mechanism, simulation.step().values
    if mechanism.each:
        values = np.stack(list(own_answers(mechanism, values, range(4)).values()))
    assert values == pytest.approx(releases[0].values, abs=1e-4)
    found = simulation.run()
    shapes = {key: array.shape for key, array in expected.arrays.items()}
    assert {key: array.shape for key, array in found.arrays.items()} == shapes


@cases
def test_a_private_simulation_ends(name, views, analysis):
    study = make_feature_study(name, views, analysis)
    result = Simulation(study, make_feature_sites(views), 0).run()
    assert all(np.isfinite(array).all() for array in result.arrays.values())


@cases
def test_a_query_without_an_argument_is_refused_by_the_site(name, views, analysis):
    algorithm, parameters, (site, *rest) = prepared(name, views, analysis)
    planned = planned_by(algorithm, parameters, [site, *rest])
    for query in drive(algorithm, parameters, [site, *rest])[0]:
        local, bound = algorithm.statistics[query.statistic], planned[query.stage].bound
        for missing in query.arguments:
            for value in (None, "text", np.zeros((1, 1, 1, 1))):
                changed = {k: v for k, v in query.arguments.items() if k != missing}
                if value is not None:
                    changed[missing] = value
                asked = Query(query.stage, query.statistic, changed, query.neighbour_answers)
                with pytest.raises(ProtocolError, match="discard"):
                    local(site, asked, bound)
