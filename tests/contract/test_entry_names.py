"""Results name entries by their columns or pairs, in every analysis of feature vectors."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Case, Result
from consortium.report.views import split_views
from consortium.simulation.simulation import Simulation
from consortium.space.study_space import Space, ViewSpace
from consortium.study.spec import Study
from tests.support.cases import (
    PLAIN,
    SITES,
    make_feature_sites,
    open_cohort_for,
    study_of,
    surfaces_for,
)
from tests.support.tiny_images import tiny_grid

ENTRY = "entry"
CASES = [
    pytest.param(name, case, id=f"{name}-{number}")
    for name, algorithm in sorted(REGISTRY.items())
    for number, case in enumerate(algorithm.cases)
    if case.views
]
PCA = replace(REGISTRY["pca"].cases[0], views=PLAIN, unit="subject")


def persons_of(case: Case) -> tuple[int, ...]:
    """As many at each site as the study states, or forty."""
    stated = case.analysis.get("groups") or {}
    return tuple(sum(stated[site]) if site in stated else 40 for site in SITES)


def told(name: str, case: Case) -> tuple[Study, Result]:
    study = study_of(name, case, scheme="none")
    sites = make_feature_sites(
        case.views,
        persons=persons_of(case),
        rows=case.rows,
        surfaces=surfaces_for(case),
        cohort=open_cohort_for(case),
    )
    return study, Simulation(study, sites, 0).run()


def test_every_analysis_that_takes_features_has_a_case_here() -> None:
    tried = {parameter.values[0] for parameter in CASES} | {"pca"}
    assert tried == {name for name, each in REGISTRY.items() if each.takes != "series"}


@pytest.mark.parametrize(("name", "case"), [*CASES, pytest.param("pca", PCA, id="pca")])
def test_what_is_told_of_an_entry_has_its_columns_name(name: str, case: Case) -> None:
    study, result = told(name, case)
    views = tuple(ViewSpace(view, view.size(0, 0)) for view in study.features)
    known = {(view.name, label) for view in views for label in view.labels}
    named: set[tuple[str, str]] = set()
    for table in result.tables.values():
        if ENTRY in table.columns:
            place = table.columns.index(ENTRY)
            rows = {(str(row[place - 1]), str(row[place])) for row in table.rows}
            assert rows <= known
            named |= rows
    values = result.arrays.get(result.loadings or result.maps or "")
    if values is not None:
        for view, rows in split_views(Space(tiny_grid(), views=views), values):
            assert len(view.labels) == len(np.atleast_2d(rows))
            named |= {(view.name, label) for label in view.labels}
    assert named


def test_pairs_of_networks_are_named_in_what_is_told_of_them() -> None:
    """Connectivity that is measured in images, through one analysis that tells tables."""
    edges = {"source": "fmri", "measure": "connectivity", "components": "maps.nii.gz"}
    case = REGISTRY["glm"].cases[0]
    values = study_of("glm", case, scheme="none").model_dump(mode="json", exclude_none=True)
    (outcome,) = {view["name"] for view in values["features"]} & {values["analysis"]["outcomes"]}
    values["features"] = [
        {"name": outcome, **edges} if view["name"] == outcome else view
        for view in values["features"]
    ]
    sites = make_feature_sites((("x", 3), ("group", 1)), persons=persons_of(case))
    result = Simulation(Study.model_validate(values), sites, 0).run()
    (table,) = (each for name, each in result.tables.items() if name.startswith("contrast"))
    entries = [row[table.columns.index(ENTRY)] for row in table.rows]
    assert entries == ["network1-network2", "network1-network3", "network2-network3"]
