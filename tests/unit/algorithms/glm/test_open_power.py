"""The plan states the error of only an open cohort, and refuses to add nothing to it."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.glm_runs import make_open_trial, noise_of
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.power import check_worth
from consortium.errors import StudyError
from tests.unit.algorithms.glm.test_open_table import cohort_of, people_of


def test_the_plan_states_what_the_open_cohort_alone_gives_and_what_both_give():
    trial = make_open_trial(people_of(), cohort_of())
    shape = replace(trial.shape, noise=noise_of(4, 4))
    plan = Glm(trial.parameters, shape)
    rows = {row[0]: row[1] for row in plan.foretell().rows}
    alone, both = rows["only the open cohort"], rows["with the open cohort"]
    assert plan.open.fit.error < alone
    assert both < min(alone, rows["as it is"])
    controls = replace(cohort_of(), group=np.zeros(200, dtype=bool))
    without = make_open_trial(people_of(), controls)
    names = [row[0] for row in Glm(without.parameters, shape_of(without)).foretell().rows]
    assert "only the open cohort" not in names


def shape_of(trial, epsilon=4):
    return replace(trial.shape, noise=noise_of(epsilon, 4))


def test_a_study_that_adds_nothing_to_its_open_cohort_is_refused():
    trial = make_open_trial(people_of(200), cohort_of(20_000), detect=9.0, anyway=False)
    with pytest.raises(StudyError, match="expected to add nothing to its open cohort"):
        check_worth(Glm(trial.parameters, shape_of(trial, 8)))
    check_worth(Glm(trial.parameters, shape_of(trial, 1000)))
    anyway = trial.parameters.model_copy(update={"anyway": True})
    check_worth(Glm(anyway, shape_of(trial, 8)))
