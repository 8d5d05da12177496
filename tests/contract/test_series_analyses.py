"""What every algorithm of the registry must keep, whatever it computes."""

from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.simulation.array_data import ArrayData
from tests.support.feature_cases import FEATURE_CASES
from tests.support.series_cases import (
    CASES,
    SUBJECT_ONLY,
    check_fixed,
    check_replay,
    check_sizes_and_bounds,
    drive,
    form,
    loud,
    pooled_mean,
    shape_of,
    sites_for,
)

cases = pytest.mark.parametrize(("name", "analysis", "unit"), CASES)


def prepared(name, analysis, unit):
    algorithm = REGISTRY[name]
    return algorithm, algorithm.Parameters.model_validate(analysis), sites_for(name, unit)


def test_the_cases_cover_the_registry():
    elsewhere = {name for name, _, _ in FEATURE_CASES}
    takers = {name: each for name, each in REGISTRY.items() if name not in elsewhere}
    assert {name for name, _, _ in CASES} == set(takers)
    for name, algorithm in takers.items():
        asked = set()
        for case, analysis, unit in CASES:
            if case == name:
                queries, _, _ = drive(*prepared(name, analysis, unit))
                asked |= {query.statistic for query in queries}
        assert asked == set(algorithm.statistics)
        alone = algorithm.takes == "features" or name in SUBJECT_ONLY
        units = {"subject"} if alone else {"subject", "timepoint"}
        assert {unit for case, _, unit in CASES if case == name} == units


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_name_title_and_parameters(name):
    algorithm = REGISTRY[name]
    assert algorithm.name == name
    assert algorithm.title
    for field, info in algorithm.Parameters.model_fields.items():
        assert info.description, field
    with pytest.raises(ValidationError, match="extra_forbidden"):
        algorithm.Parameters.model_validate({"no-such-field": 1})


@cases
def test_the_planned_releases_share_one_budget(name, analysis, unit):
    algorithm, parameters, sites = prepared(name, analysis, unit)
    planned = algorithm.releases(parameters, shape_of(sites))
    assert sum(release.share for release in planned) <= 1 + 1e-12
    assert all(release.share > 0 for release in planned)
    assert all(release.rounds >= 1 and release.entries >= 1 for release in planned)
    assert len({release.stage for release in planned}) == len(planned)
    assert all(release.statistic in algorithm.statistics for release in planned)


@cases
@pytest.mark.parametrize("noisy", [False, True])
def test_only_what_is_planned_is_asked(name, analysis, unit, noisy):
    algorithm, parameters, sites = prepared(name, analysis, unit)
    planned = {r.stage: r for r in algorithm.releases(parameters, shape_of(sites))}
    noise = loud(1) if noisy else lambda entries: 0.0
    queries, _, result = drive(algorithm, parameters, sites, noise)
    for stage, rounds in Counter(query.stage for query in queries).items():
        assert rounds <= planned[stage].rounds
    for query in queries:
        assert query.statistic == planned[query.stage].statistic
        assert form(query) == planned[query.stage].arguments
        check_fixed(planned[query.stage], query)
    shown = [result.arrays[name] for name in (result.maps or result.loadings,) if name]
    for array in [*shown, *(images.values for images in result.images.values())]:
        assert array.shape[0] == sites[0].features
    assert all(np.isfinite(array).all() for array in result.arrays.values())


@cases
def test_statistics_have_the_planned_size_and_keep_their_bound(name, analysis, unit):
    check_sizes_and_bounds(*prepared(name, analysis, unit))


@cases
def test_a_site_answers_with_the_mean_over_its_units(name, analysis, unit):
    # So that it does not matter how persons are spread over the sites.
    algorithm, parameters, sites = prepared(name, analysis, unit)
    people = [block for site in sites for block in site.blocks()]
    together = [ArrayData(people, unit, views=sites[0].extent.views)]
    planned = {r.stage: r for r in algorithm.releases(parameters, shape_of(sites))}
    queries, _, _ = drive(algorithm, parameters, sites)
    for query in queries:
        bound = planned[query.stage].bound
        apart = pooled_mean(algorithm, query, bound, sites)
        assert pooled_mean(algorithm, query, bound, together) == pytest.approx(apart, abs=1e-6)


@cases
def test_the_same_releases_lead_to_the_same_queries(name, analysis, unit):
    check_replay(*prepared(name, analysis, unit))


@cases
def test_data_are_not_changed(name, analysis, unit):
    algorithm, parameters, sites = prepared(name, analysis, unit)
    before = [block.copy() for site in sites for block in site.blocks()]
    drive(algorithm, parameters, sites)
    after = [block for site in sites for block in site.blocks()]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
