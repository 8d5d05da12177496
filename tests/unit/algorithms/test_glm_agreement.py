"""Agreement of hospitals: what is found in simulated studies, said, and refused."""

import numpy as np
import pytest

from benchmarks.glm_agreement import Case, one_run, people_of, study_of
from consortium.algorithms.base import Query
from consortium.algorithms.glm.agreement import AGREEMENT, glm_agreement
from consortium.errors import StudyError
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study


@pytest.mark.parametrize("case", [Case(8, 100), Case(8, 100, between=0.3)], ids=["agree", "differ"])
def test_hospitals_that_agree_are_not_found_to_differ_and_others_are(case):
    found, between, held = np.mean([one_run(case, seed) for seed in range(12)], axis=0)
    if case.between:
        assert found >= 10 / 12
        assert 0.2 < between < 0.4
    else:
        assert found <= 3 / 12
        assert between < 0.15
    assert held >= 10 / 12


def test_the_report_begins_with_agreement_and_the_plan_states_what_is_found():
    case = Case(8, 100, between=0.4)
    study = parse_study(study_of(case))
    simulation = Simulation(study, people_of(case, 1), 1)
    (expected,) = (e for e in simulation.plan.analysis.expect() if "between-hospital" in e.name)
    result = simulation.run()
    assert result.numbers["between_hospitals_p"] < 0.05
    assert result.captions.headline.startswith("Hospitals differ in this effect")
    assert not any("_" in heading for heading in result.tables[AGREEMENT].columns)
    stated = float(result.numbers["between_hospitals_detectable"])
    assert expected.value == pytest.approx(stated, rel=0.25)


def test_a_site_of_one_group_answers_0_and_a_hostile_query_moves_no_bound():
    case = Case(8, 100)
    study = parse_study(study_of(case))
    plan = Simulation(study, people_of(case, 1), 1).plan.analysis
    (planned,) = (release for release in plan.releases if release.stage == "agreement")
    shapes = planned.arguments
    data = people_of(Case(8, 100, single=1), 2)
    ones = {name: np.zeros(shape) for name, shape in shapes.items()}
    ones["scales"] += 0.1
    alone = ones | {"proportions": np.ones(8)}
    query = Query("agreement", planned.statistic, alone, site=0)
    assert glm_agreement(plan, data[0], query, planned.bound) == 0
    limit = planned.bound.blocks[0].spread
    for size in (1e-300, 1.0, 1e150, np.inf, np.nan):
        hostile = ones | {"coefficients": np.full(shapes["coefficients"], size)}
        hostile["proportions"] = np.full(8, 0.5)
        query = Query("agreement", planned.statistic, hostile, site=1)
        found = glm_agreement(plan, data[1], query, planned.bound)
        assert np.isfinite(found).all()
        assert abs(found).max() <= limit * 100  # a mean over participants, each within the bound


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"formula": "group + age", "contrasts": "{patients: group}"}, "agreement"),
        ({"more": ", units: {sessions: true, most_rows: 2}"}, "agreement"),
        ({"epsilon": 0.1, "anyway": "false"}, "analysis"),
    ],
)
def test_agreement_is_refused_where_it_would_mislead_or_find_nothing(change, field):
    with pytest.raises(StudyError, match=field):
        planned(study_of(Case(8, 100), **change))


def planned(text):
    """Return the plan of a study file with simulated participants."""
    return Simulation(parse_study(text), people_of(Case(8, 100), 1), 1).plan
