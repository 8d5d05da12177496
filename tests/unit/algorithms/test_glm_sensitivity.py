"""Nobody who is replaced moves a block of `glm` further than its plan says, whatever is asked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places, Query
from consortium.algorithms.glm import in_parts
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.simulation.array_data import ArrayData
from consortium.views.table import TableView

GLM = REGISTRY["glm"]
PERSONS = 12
PEOPLE = make_people(60, 6, 3, np.random.default_rng(0))
TRIAL = make_trial(PEOPLE)
VOXELS = Places(np.argwhere(np.ones((3, 2, 1))) * 10.0, 1000.0)
"""Of the outcomes, where they are taken for images."""
SHAPE = replace(TRIAL.shape, noise=0.4, image_places=VOXELS)
PLAN = Glm(TRIAL.parameters, SHAPE)
GROUPS = {"half": ["brain1", "brain3"], "all": ["brain*"]}
PLANS = {
    "contrast": PLAN,
    "all": Glm(make_trial(PEOPLE, contrasts="all", averages=GROUPS).parameters, SHAPE),
    "slope": Glm(
        make_trial(PEOPLE, contrasts={"age": "age1"}, groups={}, averages=GROUPS).parameters, SHAPE
    ),
}
COUNTED = {"shares": 0.4, "groups": {}}
PLANS["counted"] = Glm(make_trial(PEOPLE, **COUNTED).parameters, SHAPE)
SMOOTH = {"basis": "smooth", "smoothness": 20.0, "cutoff": 26.0}
PLANS["smooth"] = Glm(make_trial(PEOPLE, **SMOOTH).parameters, SHAPE)
PLANS["blind"] = Glm(make_trial(PEOPLE, norms={}).parameters, SHAPE)
DECLARED = {name: {"s0": 0.1, "s1": -0.05, "s2": 0.0} for name in ("age1", "sex1")}
PLANS["declared"] = Glm(
    make_trial(PEOPLE, contrasts={"age": "age1"}, groups={}, site_means=DECLARED).parameters,
    SHAPE,
)
LIMITS = {"low": -1.0, "high": 1.0}
WITH_GAPS = [
    TableView.model_validate({"name": name, "source": "table", **more})
    for name, more in (
        ("brain", {"gaps": 0.4, "columns": {"brain[1-6]": LIMITS}}),
        ("dx", {"columns": {"dx1": {"levels": ["no", "yes"]}}}),
        *((each, {"columns": {f"{each}1": LIMITS}}) for each in ("age", "icv", "sex")),
    )
]
PLANS["gaps"] = Glm(
    GlmParameters.model_validate(
        make_trial(PEOPLE, norms={}).parameters.model_dump(exclude_none=True),
        context={"features": WITH_GAPS},
    ),
    SHAPE,
)
BOUNDS = {release.statistic: release.bound for release in PLAN.releases}
STAGES = [(kind, release.stage) for kind, plan in PLANS.items() for release in plan.releases]
ROWS = SHAPE.features


def site_of(table):
    people = [person[:, None] for person in table.T]
    return ArrayData(people, views=SHAPE.views, image_places=VOXELS)


def honest(statistic, site=0, plan=PLAN):
    """The question of an honest run, with slopes and centres of ordinary size."""
    generator, columns = np.random.default_rng(1), plan.columns
    told = {
        "proportions": generator.uniform(0, 1, 3),
        "location": columns.location + 0.3 * columns.deviation,
        "scales": 1.2 * columns.deviation,
        "slopes": 0.2 * generator.standard_normal(plan.covariates),
        "centres": 0.4 * generator.standard_normal((3, plan.design.clipped_columns)),
        "spread": np.array([0.8]),
    }
    (release,) = (each for each in plan.releases if each.statistic == statistic)
    heard = {name: told[name] for name in release.arguments}
    return Query(release.stage, statistic, heard, site=site)


def person(generator):
    """Ordinary, far out, at the far end of the clip, or no numbers at all."""
    values = generator.standard_normal(ROWS)
    values[6] = generator.choice([-1.0, 1.0])
    kind = generator.integers(6)
    if kind == 0:
        values *= 100
    elif kind == 1:
        values *= 10.0 ** generator.uniform(-300, 300, ROWS)
    elif kind == 2:
        values[:6] = 100 * generator.choice([-1.0, 1.0])
    elif kind == 3:
        values[generator.integers(ROWS)] = generator.choice([np.nan, np.inf, -np.inf])
    elif kind == 4:
        values[7:] = 100 * np.sign(values[7:])
    return values


def bound_of(query, plan):
    (bound,) = (each.bound for each in plan.releases if each.statistic == query.statistic)
    return bound


def released(query, table, plan=PLAN):
    with np.errstate(all="ignore"):
        local, bound = plan.statistics[query.statistic], bound_of(query, plan)
        return local(plan, site_of(table), query, bound)


def ratios(query, table, other, plan=PLAN):
    """How far each block, and all of them together, moved over what they may."""
    bound = bound_of(query, plan)
    moved = len(table.T) * (released(query, other, plan) - released(query, table, plan))
    parts = bound.split(moved)
    each = {b.name: np.linalg.norm(parts[b.name]) / b.spread for b in bound.blocks}
    return each | {"all": np.linalg.norm(moved)}


def hostile(query, generator):
    """The question with releases of any size, some of them no numbers."""
    arguments = dict(query.arguments)
    names = sorted(arguments)
    for name in generator.choice(names, min(3, len(names)), replace=False) if names else ():
        value = arguments[name]
        scale = 10.0 ** generator.uniform(-300, 300, value.shape)
        arguments[name] = value * scale * generator.choice([0, 1, 1, 1, -1, -1, -1], value.shape)
        if generator.random() < 0.2:
            arguments[name].flat[0] = generator.choice([np.nan, np.inf, -np.inf])
    return replace(query, arguments=arguments)


@pytest.mark.parametrize(("kind", "stage"), STAGES)
@settings(max_examples=5 * settings.default.max_examples, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    asked=st.sampled_from(["honest", "slopes", "anything"]),
    numbers=st.sampled_from([in_parts.NUMBERS, 2 * PERSONS]),
)
def test_no_replacement_moves_a_block_further_than_planned(kind, stage, seed, asked, numbers):
    generator, plan = np.random.default_rng(seed), PLANS[kind]
    (release,) = (each for each in plan.releases if each.stage == stage)
    query = honest(release.statistic, int(generator.integers(3)), plan)
    if asked == "slopes" and stage == "contrast":
        slopes = 3 * generator.standard_normal(plan.covariates)
        query = replace(query, arguments=dict(query.arguments) | {"slopes": slopes})
    elif asked == "anything":
        query = hostile(query, generator)
    table = np.stack([person(generator) for _ in range(PERSONS)], axis=1)
    other = table.copy()
    other[:, generator.integers(PERSONS)] = person(generator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_parts, "NUMBERS", numbers)
        assert max(ratios(query, table, other, plan).values()) <= 1 + 1e-9


def opposite(sign, group=1.0):
    values = np.zeros(ROWS)
    values[:6] = 100.0 * sign
    values[6] = group
    return values


def steep(outcome, covariate):
    """Outcomes all alike, and covariates at the end of their clip."""
    values = np.full(ROWS, 100.0 * covariate)
    values[:6], values[6] = outcome, 1.0
    return values


@pytest.mark.parametrize("kind", ["contrast", "smooth"])
def test_some_replacement_reaches_the_bound_of_the_outcomes_sums(kind):
    # A person of the smaller group, so that w is as large as it may be.
    assert PLANS[kind].groups.proportions[0] < 0.5
    moved = ends("contrast", (opposite(1.0), opposite(-1.0)), kind, slopes=np.zeros(3))
    assert 0.999 <= moved["effects"] <= 1 + 1e-9


def test_some_replacement_reaches_the_bounds_of_what_means_of_outcomes_release():
    plan = PLANS["all"]
    query = honest("glm_contrast", 0, plan)
    # Centres of a hostile size take every person to the end of the clip.
    asked = {"centres": np.full((3, plan.design.clipped_columns), 1e6), "slopes": np.zeros(3)}
    query = replace(query, arguments=dict(query.arguments) | asked)
    table, other = np.zeros((2, ROWS, PERSONS))
    table[:, 0], other[:, 0] = opposite(1.0), opposite(-1.0)
    assert ratios(query, table, other, plan)["products"] == pytest.approx(1.0)
    # Squares have no sign: two persons are furthest apart whose groups of outcomes differ.
    table[:6, 0], other[:6, 0] = [1e3, 0, 1e3, 0, 0, 0], 0.0
    asked["centres"] = np.zeros((3, plan.design.clipped_columns))
    query = replace(query, arguments=dict(query.arguments) | asked)
    moved = ratios(query, table, other, plan)["spreads"]
    assert 0.3 < moved <= 1 + 1e-9


def ends(stage, values, kind="contrast", **asked):
    """Ratios where one person is replaced by another, all others being zero."""
    plan = PLANS[kind]
    (release,) = (each for each in plan.releases if each.stage == stage)
    query = honest(release.statistic, 0, plan)
    query = replace(query, arguments=dict(query.arguments) | asked)
    table, other = np.zeros((2, ROWS, PERSONS))
    table[:, 0], other[:, 0] = values
    return ratios(query, table, other, plan)


def test_some_replacement_reaches_the_bounds_of_the_first_look():
    moved = ends("norms", (opposite(1.0), opposite(-1.0)))
    assert moved["location"] == pytest.approx(1.0, abs=1e-4)
    assert moved["kept"] < 1e-3
    # Who is far out is clipped to next to nothing, and one in the middle not at all.
    plan = PLANS["blind"]
    assert not plan.columns.location.any()
    far = ends("norms", (1e6 * opposite(1.0), np.zeros(ROWS)), "blind")
    assert far["kept"] == pytest.approx(1.0, abs=1e-3)
    near = np.zeros(ROWS)
    near[:6] = 1e-9 * plan.columns.deviation
    moved = ends("norms", (opposite(1.0), near), "blind")
    assert moved["size"] == pytest.approx(1.0)
    far = np.zeros(ROWS)
    far[7] = 100.0
    assert 0.4 < ends("norms", (far, np.zeros(ROWS)), "slope")["column"] <= 1 + 1e-9


def test_who_lacks_as_much_as_may_be_reaches_the_bound_of_gaps_and_who_lacks_more_adds_nothing():
    whole, some, many = np.zeros((3, ROWS))
    some[:2], many[:3] = np.nan, np.nan
    norm = PLANS["gaps"].releases[0].bound.block("gaps").norm
    assert norm == pytest.approx(np.sqrt(0.4 * 6))
    moved = ends("norms", (some, whole), "gaps")["gaps"]
    assert moved == pytest.approx(np.sqrt(2) / (np.sqrt(2) * norm))
    assert ends("norms", (many, whole), "gaps")["gaps"] == 0.0


def test_some_replacement_reaches_the_bounds_of_squares_and_of_the_balance():
    plan = PLANS["contrast"]
    asked = {"slopes": np.zeros(3), "location": np.zeros(6)}
    one, other = opposite(1.0), np.zeros(ROWS)
    assert 0.15 < ends("contrast", (one, other), **asked)["squares"] <= 1 + 1e-9
    # The correction has a sign, so that two vectors may point apart: more than √2 of the norm.
    moved = ends("contrast", (one, -one), **asked)
    assert moved["squares"] <= 1 + 1e-9
    # Slopes of a hostile size, so that persons at the ends of a covariate weigh far too much.
    asked |= {"slopes": np.full(3, 1e3), "centres": np.zeros((3, 3))}
    small = steep(1e-3, 1.0)
    balance = ends("contrast", (small, -small), **asked)["balance"]
    assert balance <= 1 + 1e-9
    assert plan.rows == 1
    large, apart = steep(1e-9, 1.0), steep(1e-9, -1.0)
    assert ends("contrast", (large, apart), **asked)["balance"] == pytest.approx(1.0)


def test_some_replacement_reaches_the_bounds_of_what_tells_of_long_tails():
    asked = {"slopes": np.full(3, 1e6), "centres": np.zeros((3, 3)), "location": np.zeros(6)}
    moved = ends("contrast", (steep(100.0, 1.0), steep(-100.0, 1.0)), **asked)
    assert moved["lost"] == pytest.approx(1.0)
    assert moved["tail"] == pytest.approx(1.0)
    # The same outcomes at either end: weights of w and -w, and a norm as far out as it counts.
    moved = ends("contrast", (steep(100.0, 1.0), steep(100.0, -1.0)), **asked)
    assert moved["lean"] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["slope", "all"])
def test_weights_of_any_size_keep_the_bounds_of_what_tells_of_long_tails(kind):
    far = np.append(opposite(1.0)[:6], np.full(ROWS - 6, 1e9))
    for scale in (1e-300, 1e-3, 1.0, 1e3, 1e300):
        asked = {"spread": np.array([scale])} if kind == "slope" else {"slopes": np.full(3, scale)}
        moved = ends("contrast", (far, -far), kind, **asked)
        assert max(moved[name] for name in ("lost", "tail", "lean", "effects")) <= 1 + 1e-9
    assert moved["tail"] > 0.1


def test_a_person_who_is_replaced_changes_one_pair_and_values_choose_nobody():
    generator = np.random.default_rng(3)
    table = np.stack([generator.standard_normal(ROWS) for _ in range(PERSONS)], axis=1)
    other = table.copy()
    other[:, 4] *= 30.0
    query = honest("glm_contrast")
    squares = [BOUNDS["glm_contrast"].split(released(query, t))["squares"] for t in (table, other)]
    # Without that person's pair both sites have the same sum: pairs follow places, not values.
    order = np.random.default_rng((0, 0)).permutation(PERSONS)
    half = PERSONS // 2
    place = int(np.flatnonzero(order == 4)[0])
    partner = order[(place + half) % PERSONS]
    gone = [t.copy() for t in (table, other)]
    for t in gone:
        t[6:, [4, partner]] = np.nan
    left = [BOUNDS["glm_contrast"].split(released(query, t))["squares"] for t in gone]
    assert left[0] == pytest.approx(left[1], rel=1e-12)
    assert squares[0] != pytest.approx(squares[1])


@pytest.mark.parametrize("statistic", sorted(BOUNDS))
def test_a_site_answers_whatever_one_person_is(statistic):
    query = honest(statistic)
    for value in (np.nan, np.inf, -np.inf, 1e308, 5e-324):
        table = np.zeros((ROWS, PERSONS))
        table[:, 3] = value
        assert np.isfinite(released(query, table)).all()


def test_persons_without_group_or_covariates_or_most_outcomes_add_nothing():
    generator = np.random.default_rng(2)
    table = np.stack([generator.standard_normal(ROWS) for _ in range(4)], axis=1)
    query = honest("glm_contrast")
    gone = table.copy()
    gone[[6, 7, 0], [0, 1, 2]] = np.nan  # group, a covariate, and one outcome of six
    gone[1, 2] = np.nan  # and a second one
    only = table.copy()
    only[:, :3] = np.nan
    spread = [BOUNDS["glm_contrast"].split(released(query, t))["effects"] for t in (gone, only)]
    assert spread[0] == pytest.approx(spread[1])


def test_who_changes_group_moves_the_count_by_one_and_by_no_more():
    plan = PLANS["counted"]
    query = honest("glm_counts", 1, plan)
    table = np.stack([opposite(1.0, -1.0) for _ in range(PERSONS)], axis=1)
    other = table.copy()
    other[6, 3] = 1.0
    assert ratios(query, table, other, plan)["counts"] == pytest.approx(1.0)
    other[6, 3] = np.nan
    assert ratios(query, table, other, plan)["counts"] == pytest.approx(0.5)


def test_a_centre_that_lies_about_the_counts_makes_no_persons_weight_larger():
    plan = PLANS["counted"]
    table = np.zeros((ROWS, PERSONS))
    table[:, 0], other = opposite(1.0), np.zeros((ROWS, PERSONS))
    other[:, 0] = opposite(-1.0)
    query = honest("glm_contrast", 0, plan)
    for part in (-1e300, -1.0, 0.0, 1e-300, 0.5, 1.0, 7.0, 1e300, np.inf, np.nan):
        asked = dict(query.arguments) | {"proportions": np.full(3, part), "slopes": np.zeros(3)}
        moved = ratios(replace(query, arguments=asked), table, other, plan)
        assert max(moved.values()) <= 1 + 1e-9


def test_which_of_two_levels_is_the_first_changes_signs_and_nothing_else():
    generator = np.random.default_rng(8)
    table = np.stack([person(np.random.default_rng(n)) for n in range(100, 112)], axis=1)
    table = np.where(np.isfinite(table), table, generator.standard_normal(table.shape))
    plan = PLANS["counted"]
    query, turned = honest("glm_contrast", 0, plan), table.copy()
    turned[6] *= -1
    arguments = dict(query.arguments)
    arguments["proportions"] = 1 - arguments["proportions"]
    arguments["slopes"] = -arguments["slopes"]
    one, other = (
        bound_of(query, plan).split(values)
        for values in (
            released(query, table, plan),
            released(replace(query, arguments=arguments), turned, plan),
        )
    )
    assert other["effects"] == pytest.approx(-one["effects"])
    for name in ("divisor", "squares", "spread"):
        assert other[name] == pytest.approx(one[name])
