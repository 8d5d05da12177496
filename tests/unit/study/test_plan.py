"""What a study will cost: promises kept at the worst, refusals before any data is read."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.algorithms import REGISTRY
from consortium.algorithms.average import Average
from consortium.algorithms.base import Extent, PlannedRelease, Shape
from consortium.algorithms.glm.kernels import surface_correlation
from consortium.algorithms.glm.smooth import smoothly_alike
from consortium.algorithms.subspace import smooth_basis
from consortium.errors import BudgetError, PrivacyError, StudyError
from consortium.kernels import surface_basis
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_basis import turn_of
from consortium.privacy.bounds import Bound
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.study import plan as plan_module
from consortium.study.masking import plan_masking
from consortium.study.plan import (
    count_rounds,
    make_plan,
    plan_digest,
    plan_integers,
    promised_mu,
    with_fewest,
)
from tests.support.cases import (
    CASES,
    PLAIN,
    PROMISE,
    every_case,
    make_feature_study,
    make_sites,
    make_study,
    open_cohort_for,
    places_for,
    shape_of,
    sites_for,
    study_of,
    surfaces_for,
    templates_for,
)

SHAPE = Shape(20, (30, 40, 50, 60), (6000, 8000, 10_000, 12_000), "subject")
VECTORS = Extent(20, 0, (("faces", 12), ("erp", 7), ("age", 1)))
PRIVATE = [("cape", "exact"), ("cape", 1e4), ("local", "exact")]
"""Schemes with noise, each with a boost."""


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


@every_case
@pytest.mark.parametrize(("scheme", "boost"), PRIVATE)
def test_the_whole_budget_is_used_and_no_more(name, case, scheme, boost):
    study = study_of(name, case, scheme=scheme, boost=boost, epsilon=4.0)
    size = sum(size for _, size in case.views) or 20
    public = {"templates": templates_for(case, 20), "surface_places": surfaces_for(case)}
    public["open_cohort"] = open_cohort_for(case, 20)
    if case.mesh and public["open_cohort"]:
        public["places"] = places_for(case)
    extent = Extent(size, 0, case.views, **public)
    plan = make_plan(study, extent.shape(SHAPE.subjects, SHAPE.samples, case.unit))
    assert plan.mu <= mu_of(4.0, 1e-5) * (1 + 1e-9)
    part = math.fsum(stage.release.share for stage in plan.stages)
    assert part == pytest.approx(1.0) or "levels" in case.analysis  # of a view may hold it down
    assert plan.epsilon == pytest.approx(epsilon_of(mu_of(4.0, 1e-5) * part**0.5, 1e-5), rel=1e-3)
    assert plan.epsilon == epsilon_of(plan.mu, 1e-5)
    assert plan.outsider_mu <= plan.mu * (1 + 1e-9)
    assert len(plan.losses) == plan.rounds <= count_rounds(study, extent)
    for site in range(4):
        assert plan.site_loss(site) == pytest.approx(compose(row[site] for row in plan.losses))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(PRIVATE),
    st.integers(2, 9),
    st.integers(0, 3),
    st.integers(0, 2),
    st.floats(0.1, 20),
    st.sampled_from(["subject", "timepoint"]),
    st.data(),
)
def test_a_plan_keeps_its_promise_for_every_consortium(
    kind, count, colluding, dropouts, epsilon, unit, data
):
    subjects = tuple(data.draw(st.integers(1, 80)) for _ in range(count))
    shape = Shape(8, subjects, tuple(150 * m for m in subjects), unit)
    try:
        study = make_study(
            "ica",
            {"components": 3, "rounds": 7},
            unit,
            sites=[f"site-{s}" for s in range(count)],
            scheme=kind[0],
            boost=kind[1],
            epsilon=epsilon,
            colluding_sites=colluding,
            dropouts=dropouts,
        )
        plan = make_plan(study, shape)
    except (StudyError, BudgetError, ValueError):
        return
    assert plan.epsilon <= epsilon * (1 + 1e-6)
    assert plan.minimum == count - dropouts
    # The promise is for the worst that may be missing; whoever is there loses no more.
    worst = [
        stage.mechanism.coalition(range(count - dropouts)).max()
        for stage in plan.stages
        for _ in range(stage.release.rounds)
    ]
    assert compose(worst) <= plan.promised_mu * (1 + 1e-9)


def test_equal_inputs_give_equal_plans():
    one, other = (
        make_plan(make_study("ica", {"components": 4}, dropouts=0), SHAPE) for _ in range(2)
    )
    assert one == other
    assert one.stages == other.stages
    assert one != make_plan(make_study("ica", {"components": 5}), SHAPE)
    assert one != make_plan(make_study("ica", {"components": 4}), replace(SHAPE, features=21))


def test_rounds_share_a_stage_evenly_and_stages_share_as_planned():
    plan = make_plan(make_study("ica", {"components": 4, "rounds": 5, "pca_share": 0.2}), SHAPE)
    squares = [row[0] ** 2 / plan.promised_mu**2 for row in plan.losses]
    assert squares == pytest.approx([0.2] + [0.16] * 5, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "analysis"),
    [("pca", {"components": 2, "solver": "power"}), ("admm", {"target": "age"})],
)
def test_no_noise_is_enough_for_an_epsilon_near_nothing_and_it_is_named(name, analysis):
    # These plan their rounds and steps against the noise, before anything else is planned.
    study = make_study(name, analysis, epsilon=1e-15, delta=1e-18)
    with pytest.raises(BudgetError, match=r"privacy\.epsilon"):
        make_plan(study, replace(SHAPE, views=VECTORS.views))


@pytest.mark.parametrize(("scheme", "boost"), PRIVATE)
def test_an_epsilon_that_is_too_small_is_named(scheme, boost):
    promise = {"scheme": scheme, "boost": boost, "epsilon": 1e-12, "delta": 1e-15}
    study = make_study("pca", {"components": 2}, **promise)
    with pytest.raises(BudgetError, match=r"privacy\.epsilon.*'pca'"):
        make_plan(study, SHAPE)


def test_releases_over_budget_are_refused(monkeypatch):
    class Greedy(Average):
        """Plans more than there is."""

        releases = tuple(
            PlannedRelease(name, "mean_volume", 20, Bound(1.0), 1, 0.6) for name in "ab"
        )

    monkeypatch.setattr(plan_module, "REGISTRY", {"average": Greedy})
    with pytest.raises(BudgetError, match="round 1 of 'b'"):
        make_plan(make_study("average"), SHAPE)


@pytest.mark.parametrize("boost", ["exact", 1e4])
def test_unsafe_dropouts_are_refused(boost):
    sites = [f"site-{s}" for s in range(4)]
    study = make_study(sites=sites, boost=boost, colluding_sites=1, dropouts=2)
    with pytest.raises(StudyError, match="dropouts must be at most 1 with"):
        make_plan(study, SHAPE)
    safe = make_study(sites=sites, boost=boost, colluding_sites=1, dropouts=1)
    assert make_plan(safe, SHAPE).minimum == 3
    assert 1 < plan_masking(safe).threshold <= 3


def test_schemes_without_a_secure_sum_have_no_threshold():
    for scheme in ("local", "none"):
        study = make_study(scheme=scheme, colluding_sites=1, dropouts=2)
        assert plan_masking(study).threshold == 0
        assert make_plan(study, SHAPE).minimum == 2


def test_another_number_of_sites_is_refused():
    shape = Shape(20, (30, 40, 50), (600, 800, 1000), "subject")
    with pytest.raises(StudyError, match="3 of 4"):
        make_plan(make_study(), shape)


def test_without_privacy_the_plan_says_so():
    study = make_study(scheme="none")
    plan = make_plan(study, SHAPE)
    assert promised_mu(study) == plan.mu == plan.epsilon == plan.outsider_mu == math.inf
    assert plan.stages[0].mechanism.noise.aggregate() == 0.0


@pytest.mark.parametrize(
    ("algorithm", "size"),
    [
        *product(["average", "coordinate", "regression", "tensor"], [1e160, 1e308]),
        *product(["average", "regression", "tensor"], [5e-324]),  # radii have limits of their own
    ],
)
def test_a_bound_that_nobody_can_compute_with_is_told(algorithm, size):
    analysis = {
        "average": {"bound": size},
        "coordinate": {"radii": {"x": size}, "target": "y", **PROMISE},
        "regression": {"target": "y", "bound": size},
        "tensor": {"components": 2, "bound": size},
    }[algorithm]
    if algorithm == "average":
        study, shape = make_study("average", analysis), SHAPE
    else:
        study = make_feature_study(algorithm, PLAIN, analysis)
        shape = replace(SHAPE, features=5, views=PLAIN)
    words = "field 'analysis'|clipping bound .*got (inf|0)"
    with pytest.raises((StudyError, PrivacyError), match=words):
        make_plan(study, shape)
    with pytest.raises((StudyError, PrivacyError), match=words):
        count_rounds(study, Extent(5, 0, PLAIN))


def test_an_unknown_stage_is_refused():
    plan = make_plan(make_study("ica", {"components": 4}), SHAPE)
    assert plan.stage("ica").name == "ica"
    with pytest.raises(PrivacyError, match="no stage 'cca'"):
        plan.stage("cca")


def test_a_message_is_as_long_as_planned():
    for (scheme, boost), vectors in zip(PRIVATE, (1, 2, 1), strict=True):
        study = make_study("pca", {"components": 2}, scheme=scheme, boost=boost)
        (stage,) = make_plan(study, SHAPE).stages
        bits = stage.mechanism.lattice.bits
        assert stage.message_bytes == vectors * math.ceil((210 + len(SHAPE.units)) * bits / 8)
        assert bits == 16


def test_the_plan_knows_sizes_only():
    one, other = (shape_of(make_sites(seed=seed)) for seed in (1, 2))
    study = make_study("ica", {"components": 3})
    assert make_plan(study, one) == make_plan(study, other)


def test_more_colluding_sites_or_dropouts_take_more_noise():
    # Nine sites: one drop-out takes three honest ones.
    sites = [f"site-{s}" for s in range(9)]
    shape = Shape(20, (30,) * 9, (6000,) * 9, "subject")
    deviations = [
        make_plan(make_study(sites=sites, colluding_sites=c, dropouts=d), shape)
        .stages[0]
        .mechanism.noise.aggregate()
        for c, d in ((0, 0), (1, 0), (1, 1), (4, 1))
    ]
    expected = [1.0, math.sqrt(9 / 8), math.sqrt(9 / 7), 1.5]
    assert [d / deviations[0] for d in deviations] == pytest.approx(expected, rel=2e-3)


HOPELESS = {"anyway": False}


@every_case
def test_what_was_agreed_is_never_refused_for_what_it_is_expected_to_show(name, case):
    hoped = "anyway" in REGISTRY[name].Parameters.model_fields
    if name == "regression":  # only the AUC on held-out participants has a forecast that refuses
        hoped = bool(case.analysis.get("held_out"))
    analysis = {**case.analysis, **(HOPELESS if hoped else {})}
    epsilon = 4.0 if "levels" in analysis else 0.05
    study = study_of(name, replace(case, analysis=analysis), epsilon=epsilon)
    shape = shape_of(sites_for(case))
    assert make_plan(study, shape, agreed=True).rounds
    if hoped:
        with pytest.raises(StudyError):
            make_plan(study, shape)


@every_case
def test_a_plan_with_as_few_sites_as_may_answer_is_of_the_smallest(name, case):
    study = study_of(name, case, epsilon=4.0, dropouts=1)
    sizes = (30, 20, 50, 40) if "groups" not in case.analysis else (30,) * 4
    extent = sites_for(case)[0].extent
    shape = extent.shape(sizes, tuple(24 * each for each in sizes), case.unit)
    if case.views:
        shape = extent.shape(sizes, sizes, case.unit)
    plan = make_plan(study, shape, agreed=True)
    fewest = with_fewest(plan)
    if fewest is None:  # an analysis that names its sites can't be planned without one
        assert name in ("admm", "glm", "summarize", "coordinate")
        return
    assert len(fewest.study.sites) == 3
    if sizes[2] == 50:
        assert fewest.study.sites == tuple(s for s in study.sites if s != study.sites[2])
        assert fewest.shape.subjects == (30, 20, 40)
    assert fewest.analysis.shape.noise > 0


@pytest.mark.parametrize(("persons", "enough"), [(40, False), (80, True)])
def test_too_few_that_may_answer_are_a_reason_to_refuse(persons, enough):
    study = study_of("group_ica", REGISTRY["group_ica"].cases[0], epsilon=8.0)
    analysis = study.analysis.model_copy(update={"components": 4, "anyway": False})
    study = study.model_copy(update={"analysis": analysis})
    shape = Extent(400).shape((persons,) * 4, (100 * persons,) * 4, "subject")
    assert with_fewest(make_plan(study, shape)) is None  # all must answer
    of_two = make_plan(study.model_copy(update={"quorum": 2}), shape)
    if enough:
        assert with_fewest(of_two).study.sites == study.sites[:2]
        return
    with pytest.raises(StudyError, match="north and east"):
        with_fewest(of_two)
