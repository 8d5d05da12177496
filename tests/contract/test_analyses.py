"""What every analysis of the registry must keep, whatever it computes: each of its examples."""

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from consortium import algorithms
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import AnalysisPlan, Query
from consortium.base.frozen_model import field_texts
from consortium.engine.queries import encode_query
from consortium.engine.session import check_planned, own_answers
from consortium.errors import PrivacyError
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study
from tests.support.cases import (
    CASES,
    answered,
    drive,
    every_case,
    loud,
    open_cohort_for,
    places_for,
    planned_by,
    pooled_mean,
    prepared,
    shape_of,
    sites_for,
    study_of,
    surfaces_for,
    templates_for,
)

FOLDER = Path(algorithms.__file__).parent
PARTS = (
    *(
        "graph",
        "formula",
        "parameters",
        "models",
        "smooth",
        "rows",
        "entries",
        "open_table",
        "declared",
        "groups",
        "clipping",
        "design",
        "ring",
        "predictors",
        "in_parts",
        "look",
        "site",
        "open_power",
        "compare",
        "centring",
        "learned",
        "estimation",
        "biases",
        "agreement",
        "power",
        "methods",
    ),
    *(
        "separation",
        "tables",
        "result",
        "held_out",
        "with_open",
        "open_forecast",
        "forecast",
        "centre",
    ),
    "at_home",
)
"""Of an analysis that is a folder: each imports only from those before it. `parameters` and
`centre` are in all, `site`, `result` and `forecast` in most; the others are what was too long for
its part."""
PLACED = ("glm",)
"""Of these a site's answer depends on which site it is."""
OF_ITS_SITE = ("network_accuracy",)
"""These hold something of each site that is no mean over its persons: its largest class."""
SUBJECT_ONLY = ("group_ica", "template_networks")
"""These take image series and protect persons alone."""

every_analysis = pytest.mark.parametrize("name", sorted(REGISTRY))
without_neighbours = pytest.mark.parametrize(
    ("name", "case"),
    [
        each
        for each in CASES
        if each.values[0] not in PLACED
        and not any(r.neighbours for r in planned_by(*prepared(*each.values)).values())
    ],
)


@every_analysis
def test_the_examples_ask_for_every_statistic_in_every_unit(name):
    algorithm, asked = REGISTRY[name], set()
    for case in algorithm.cases:
        asked |= {query.statistic for query in drive(*prepared(name, case))[0]}
    assert asked == set(algorithm.statistics)
    alone = algorithm.takes == "features" or name in SUBJECT_ONLY
    units = {"subject"} if alone else {"subject", "timepoint"}
    assert {case.unit for case in algorithm.cases} == units


@every_analysis
def test_name_title_and_parameters(name):
    algorithm = REGISTRY[name]
    assert algorithm.name == name
    assert algorithm.title
    for field, text in field_texts(algorithm.Parameters).items():
        assert text, field
    with pytest.raises(ValidationError, match="extra_forbidden"):
        algorithm.Parameters.model_validate({"no-such-field": 1})


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in FOLDER.glob("*/__init__.py")))
def test_a_part_of_an_analysis_imports_only_from_the_parts_before_it(folder):
    here = f"consortium.algorithms.{folder}"
    for path in (FOLDER / folder).glob("[!_]*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = _take_class_of_annotations(tree)
        assert named <= {(f"{here}.centre", REGISTRY[folder].__name__)}, path
        modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        inside = {module.removeprefix(f"{here}.") for module in modules if here in module}
        own = {part for part in inside if part.partition(".")[0] != "kernels"}
        assert here not in modules
        assert own <= set(PARTS[: PARTS.index(path.stem)]), path
    assert (FOLDER / folder / "parameters.py").exists()


def _take_class_of_annotations(tree):
    """Remove the imports for type checkers from a module; return their modules and names."""
    for_checkers = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    tree.body = [node for node in tree.body if node not in for_checkers]
    found = [each for node in for_checkers for each in node.body]
    return {(each.module, name.name) for each in found for name in each.names}


@every_analysis
def test_an_analysis_is_one_class_with_its_own_plan_and_run(name):
    """Its parts take the class itself, so a reader looks in one place for every attribute."""
    algorithm = REGISTRY[name]
    home = algorithm.__module__.removesuffix(".centre")
    heirs = algorithm.__mro__[: algorithm.__mro__.index(AnalysisPlan)]
    own = [base for base in heirs if base.__module__.startswith(home)]
    assert own == [algorithm]


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in FOLDER.glob("*/__init__.py")))
def test_an_analysis_imports_no_other_but_the_one_that_it_begins_with(folder):
    others = {path.parent.name for path in FOLDER.glob("*/__init__.py")} - {folder}
    found = set()
    for path in (FOLDER / folder).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        found |= {part for module in modules for part in module.split(".")[2:3]}
    assert found & others == ({"pca"} if folder == "ica" else set())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/kernels/*.py")), ids=lambda p: p.stem)
def test_an_analysis_own_numerics_know_nothing_of_analyses(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    own = f"consortium.algorithms.{path.parts[-3]}.kernels"
    for module in modules:
        assert not module.startswith("consortium.algorithms") or module.startswith(own)


@every_case
def test_the_planned_releases_share_one_budget(name, case):
    algorithm, parameters, sites = prepared(name, case)
    planned = algorithm(parameters, shape_of(sites)).planned()
    assert sum(release.share for release in planned) <= 1 + 1e-12
    assert all(release.share > 0 for release in planned)
    assert all(release.rounds >= 1 and release.entries >= 1 for release in planned)
    assert len({release.stage for release in planned}) == len(planned)
    assert all(release.statistic in algorithm.statistics for release in planned)


@every_case
@pytest.mark.parametrize("noisy", [False, True])
def test_only_what_is_planned_is_asked(name, case, noisy):
    algorithm, parameters, sites = prepared(name, case)
    planned = planned_by(algorithm, parameters, sites)
    noise = loud(1) if noisy else lambda entries: 0.0
    queries, _, result = drive(algorithm, parameters, sites, noise)
    for stage, rounds in Counter(query.stage for query in queries).items():
        assert rounds <= planned[stage].rounds
    for query in queries:
        assert query.statistic == planned[query.stage].statistic
        due = planned[query.stage]
        assert {n: v.shape for n, v in query.arguments.items()} == due.arguments
    _check_result(result, sites[0].features)


def _check_numbers(arrays):
    """Numbers are finite, but for missing values in place of what is withheld."""
    withheld = any(array.any() for name, array in arrays.items() if name.endswith("withheld"))
    for name, array in arrays.items():
        assert (np.isfinite(array) | (np.isnan(array) & withheld)).all(), name


def _check_result(result, features):
    _check_numbers(result.arrays)
    for shown in filter(None, (result.maps, result.loadings)):
        assert result.arrays[shown].shape[0] == features
    for images in result.images.values():
        assert len(images.values) == features
    shown = result.maps or result.loadings or result.tables or result.images
    assert shown or not result.captions.found
    for table in result.tables.values():
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


@every_case
def test_statistics_have_the_planned_size_and_keep_their_bound(name, case):
    algorithm, parameters, sites = prepared(name, case)
    plan, planned = algorithm(parameters, shape_of(sites)), planned_by(algorithm, parameters, sites)
    for query in drive(algorithm, parameters, sites, loud(2))[0]:
        stage = planned[query.stage]
        for site in sites:
            statistic = algorithm.statistics[query.statistic](plan, site, query, stage.bound)
            assert statistic.size == stage.entries
            assert statistic.dtype == np.float64
            assert np.linalg.norm(statistic) <= stage.bound.norm * (1 + 1e-9)


@without_neighbours
def test_it_does_not_matter_how_persons_are_spread_over_the_sites(name, case):
    # As a site answers with the mean over its units.
    algorithm, parameters, sites = prepared(name, case)
    people = [block for site in sites for block in site.blocks()]
    public = {"views": case.views, "templates": templates_for(case), "places": places_for(case)}
    public |= {"surface_places": surfaces_for(case), "open_cohort": open_cohort_for(case)}
    hashes = np.concatenate([site.person_hashes for site in sites])
    together = [ArrayData(people, case.unit, person_hashes=hashes, **public)]
    plan, planned = algorithm(parameters, shape_of(sites)), planned_by(algorithm, parameters, sites)
    for query in drive(algorithm, parameters, sites)[0]:
        if query.statistic in OF_ITS_SITE:
            continue
        bound = planned[query.stage].bound
        apart = pooled_mean(plan, query, bound, sites)
        whole = pooled_mean(plan, query, bound, together)
        assert whole == pytest.approx(apart, abs=1e-9 if case.views else 1e-6)


@every_case
def test_the_same_releases_lead_to_the_same_queries_and_the_same_result(name, case):
    algorithm, parameters, sites = prepared(name, case)
    queries, releases, result = drive(algorithm, parameters, sites, loud(3))
    plan = algorithm(parameters, shape_of(sites))
    again = plan.run()
    asked = [next(again), *(again.send(each) for each in releases[:-1])]
    for one, other in zip(asked, queries, strict=True):
        assert encode_query(one) == encode_query(other)
    with pytest.raises(StopIteration) as stop:
        again.send(releases[-1])
    for key, array in stop.value.value.arrays.items():
        assert np.array_equal(array, result.arrays[key], equal_nan=True)


@every_case
def test_data_are_not_changed(name, case):
    algorithm, parameters, sites = prepared(name, case)
    before = [block.copy() for site in sites for block in site.blocks()]
    drive(algorithm, parameters, sites)
    after = [block for site in sites for block in site.blocks()]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@every_case
def test_writing_and_reading_a_study_are_inverses(name, case):
    study = study_of(name, case)
    assert parse_study(yaml.safe_dump(study.model_dump(mode="json"))) == study


@every_case
def test_a_simulation_without_privacy_releases_what_the_sites_answer(name, case):
    # Question by question, as later ones may depend on rounding.
    sites = sites_for(case)
    simulation = Simulation(study_of(name, case, scheme="none"), sites, 0)
    session, told = simulation.session, []
    while session.pending is not None:
        query, stage = session.pending, session.stage
        expected = answered(
            simulation.plan.analysis, query, stage.release, sites, told, lambda entries: 0.0
        )
        values = simulation.step().values
        if stage.mechanism.each:
            values = np.stack(list(own_answers(stage.mechanism, values, range(4)).values()))
            values = values[:, : stage.release.entries]
            told.append(values)
        values = values[..., : stage.release.entries]
        assert values == pytest.approx(expected, abs=1e-4)
    _check_result(session.result, sites[0].features)


@every_case
def test_a_private_simulation_ends(name, case):
    result = Simulation(study_of(name, case), sites_for(case), 0).run()
    _check_numbers(result.arrays)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        each
        for each in CASES
        if each.values[0] != "glm"  # whose statistics leave forms to the engine
        and any(release.arguments for release in planned_by(*prepared(*each.values)).values())
    ],
)
def test_a_query_without_an_argument_is_refused_unread(name, case):
    simulation = Simulation(study_of(name, case, scheme="none"), sites_for(case), 0)
    session = simulation.session
    while session.pending is not None:
        query = session.pending
        for missing in session.stage.release.arguments:
            for value in (None, "text", np.zeros((1, 1, 1, 1))):
                changed = {k: v for k, v in query.arguments.items() if k != missing}
                if value is not None:
                    changed[missing] = value
                asked = Query(query.stage, query.statistic, changed)
                with pytest.raises(PrivacyError, match=f"argument '{missing}'"):
                    check_planned(simulation.plan, asked, [])
        simulation.step()
