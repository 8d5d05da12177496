"""The digest of a plan: the same for the same integers, another for another noise."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.average import Average
from consortium.algorithms.glm.kernels import surface_correlation
from consortium.algorithms.glm.smooth import smoothly_alike
from consortium.algorithms.subspace import smooth_basis
from consortium.kernels import surface_basis
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_basis import turn_of
from consortium.study.agreed import plan_digest, plan_integers
from consortium.study.plan import make_plan
from tests.support.cases import CASES, make_sites, make_study, shape_of, sites_for, study_of


def a_plan(**privacy):
    return make_plan(make_study("average", **privacy), shape_of(make_sites()))


def _with(plan, **changes):
    stage = plan.stages[0]
    return replace(plan, stages=(replace(stage, mechanism=replace(stage.mechanism, **changes)),))


def test_two_parties_come_to_one_digest():
    assert plan_digest(a_plan()) == plan_digest(a_plan())


def test_other_noise_is_another_plan():
    plan = a_plan()
    noise = plan.stages[0].mechanism.local
    assert plan_digest(_with(plan, local=(noise[0] + 1, *noise[1:]))) != plan_digest(plan)
    assert plan_digest(a_plan(epsilon=7.9)) != plan_digest(plan)


def test_last_digits_of_what_is_no_integer_change_nothing():
    plan = a_plan()
    near = tuple(delta * (1 + 1e-15) for delta in plan.stages[0].mechanism.sensitivities)
    assert plan_digest(_with(plan, sensitivities=near)) == plan_digest(plan)


def with_computed(monkeypatch, **numbers):
    monkeypatch.setattr(Average, "computed", numbers)
    return plan_digest(a_plan())


def test_numbers_that_another_library_computes_are_another_plan(monkeypatch):
    drawn = np.random.default_rng(0).standard_normal((40, 6))
    turned = drawn * np.where(np.arange(6) == 3, -1.0, 1.0)
    told = with_computed(monkeypatch, start=drawn, reach=0.37)
    assert told == with_computed(monkeypatch, start=np.nextafter(drawn, 1.0), reach=0.37 + 1e-13)
    for other in (turned, drawn[::-1], drawn[:, ::-1], drawn[:, :5], drawn + 1e-4, 1.001 * drawn):
        assert told != with_computed(monkeypatch, start=other, reach=0.37)
    assert told != with_computed(monkeypatch, start=drawn, reach=0.3701)
    assert told != with_computed(monkeypatch, start=drawn)


ON_WAVES = [each for each in CASES if each.values[1].mesh or each.values[1].voxels]


def computed_of(name, case):
    smooth_basis.cache_clear()
    smoothly_alike.cache_clear()
    plan = make_plan(study_of(name, case), shape_of(sites_for(case)))
    return plan_integers(plan)["computed"]


@pytest.mark.parametrize(("name", "case"), ON_WAVES)
def test_a_basis_whose_maps_are_others_is_another_plan(name, case, monkeypatch):
    honest, factor = computed_of(name, case), SmoothBasis.factor.func
    assert computed_of(name, case) == honest
    flip = np.append(np.ones(1000), -1.0)[::-1]  # the first map; the Gram matrix is the same

    def other_turn(modes, size):
        return turn_of(modes, size) * flip[:size]

    monkeypatch.setattr(SmoothBasis, "factor", property(lambda b: flip[: b.size, None] * factor(b)))
    monkeypatch.setattr(surface_basis, "turn_of", other_turn)
    monkeypatch.setattr(surface_correlation, "turn_of", other_turn)
    told = computed_of(name, case)
    monkeypatch.undo()
    assert "basis" in honest
    assert told != honest


def test_all_that_noise_rests_on_is_told():
    told = plan_integers(a_plan())
    assert set(told) == {
        "units",
        "colluding",
        "dropouts",
        "hidden",
        "holders",
        "threshold",
        "stages",
        "computed",
    }
    (stage,) = told["stages"]
    assert {"entries", "bits", "log2_step", "correlated", "local"} <= set(stage)
