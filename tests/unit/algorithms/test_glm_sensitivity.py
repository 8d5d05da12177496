"""Nobody who is replaced moves a block of `glm` further than its plan says, whatever is asked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_open_trial, make_trial
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places, Query
from consortium.algorithms.glm import in_parts
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.errors import StudyError
from consortium.simulation.array_data import ArrayData
from consortium.views.table import TableView
from tests.support.open_tables import hostile_tables

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
NAMES = [f"brain{n}" for n in range(1, 7)] + ["dx1", "age1", "icv1", "sex1"]
OPEN = {
    "group": make_open_trial(PEOPLE, PEOPLE),
    "slope": make_open_trial(PEOPLE, PEOPLE, contrasts={"age": "age1"}, groups={}, averages=GROUPS),
    "all": make_open_trial(PEOPLE, PEOPLE, contrasts="all"),
}
REFUSED = set()
for name, table in hostile_tables(NAMES, 6).items():
    for contrast, trial in OPEN.items():
        try:
            PLANS[f"{name} {contrast}"] = Glm(trial.parameters, replace(SHAPE, open_cohort=table))
        except StudyError:
            REFUSED.add(name)
BOUNDS = {release.statistic: release.bound for release in PLAN.releases}
STAGES = [(kind, release.stage) for kind, plan in PLANS.items() for release in plan.releases]
ROWS = SHAPE.features


def site_of(table, hashes=None):
    people = [person[:, None] for person in table.T]
    return ArrayData(people, views=SHAPE.views, image_places=VOXELS, person_hashes=hashes)


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


def released(query, table, plan=PLAN, hashes=None):
    with np.errstate(all="ignore"):
        local, bound = plan.statistics[query.statistic], bound_of(query, plan)
        return local(plan, site_of(table, hashes), query, bound)


def ratios(query, table, other, plan=PLAN, hashes=(None, None)):
    """How far each block, and all of them with the count, moved over what they may.

    A block may move by its spread if a person is replaced, and by its norm if one is added or
    removed.
    """
    bound = bound_of(query, plan)
    before, after = (
        each.shape[1] * released(query, each, plan, own)
        for each, own in zip((table, other), hashes, strict=True)
    )
    added = table.shape[1] - other.shape[1]
    parts = bound.split(after - before)
    most = {b.name: b.norm if added else b.spread for b in bound.blocks}
    each = {name: np.linalg.norm(part) / most[name] for name, part in parts.items()}
    return each | {"all": np.hypot(np.linalg.norm(after - before), added * bound.count_weight)}


HASHES = np.random.default_rng(7).permutation(4 * PERSONS)[:PERSONS].astype(np.uint64)


def neighbour(table, generator):
    """A table that differs in one person, and the persons' hashes in both.

    The person is replaced by one with the same hash or with another one, or removed.
    """
    place, other = int(generator.integers(PERSONS)), table.copy()
    other[:, place] = person(generator)
    hashes = HASHES.copy()
    kind = generator.integers(3)
    if kind == 1:
        hashes[place] = generator.integers(4 * PERSONS)
    if kind == 2:
        other, hashes = np.delete(table, place, axis=1), np.delete(HASHES, place)
    return other, (HASHES, hashes)


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
def test_no_neighbour_moves_a_block_further_than_planned(kind, stage, seed, asked, numbers):
    generator, plan = np.random.default_rng(seed), PLANS[kind]
    (release,) = (each for each in plan.releases if each.stage == stage)
    query = honest(release.statistic, int(generator.integers(3)), plan)
    if asked == "slopes" and stage == "contrast":
        slopes = 3 * generator.standard_normal(plan.covariates)
        query = replace(query, arguments=dict(query.arguments) | {"slopes": slopes})
    elif asked == "anything":
        query = hostile(query, generator)
    table = np.stack([person(generator) for _ in range(PERSONS)], axis=1)
    other, hashes = neighbour(table, generator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_parts, "NUMBERS", numbers)
        assert max(ratios(query, table, other, plan, hashes).values()) <= 1 + 1e-9


def test_only_a_table_without_usable_numbers_is_refused():
    assert {"beyond"} == REFUSED


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
    # A person of a group that has few others, so that w is as large as it may be.
    few = {"proportions": np.full(3, 0.01), "slopes": np.zeros(3)}
    moved = ends("contrast", (opposite(1.0), opposite(-1.0)), kind, **few)
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

    far = np.zeros(ROWS)
    far[7] = 100.0
    assert 0.4 < ends("norms", (far, np.zeros(ROWS)), "slope")["column"] <= 1 + 1e-9


def test_who_lacks_as_much_as_may_be_reaches_the_bound_of_gaps_and_who_lacks_more_adds_nothing():
    whole, some, many = np.zeros((3, ROWS))
    some[:2], many[:3] = np.nan, np.nan
    norm = PLANS["gaps"].releases[1].bound.block("gaps").norm
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


def on_ring(*persons):
    """Persons in the order of the ring, the rest of it being zero."""
    table = np.zeros((ROWS, PERSONS))
    table[:, : len(persons)] = np.stack(persons, axis=1)
    return table, np.arange(0, 10 * PERSONS, 10, dtype=np.uint64)


def moves_to_another_place(query, plan, persons, leaving, coming, hashed):
    """Ratios where one person of the ring leaves and another one comes at another place."""
    table, hashes = on_ring(*persons)
    other, after = table.copy(), hashes.copy()
    other[:, leaving], after[leaving] = coming, hashed
    return ratios(query, table, other, plan, (hashes, after))


def of_group(first, last=None):
    """A person of the second group, with the outcomes' halves alike."""
    values = np.zeros(ROWS)
    values[:3], values[3:6], values[6] = first, first if last is None else last, 1.0
    return values


def test_some_replacement_by_another_hash_reaches_the_bound_of_the_logarithms_of_distances():
    plan, lost = PLANS["blind"], np.full(ROWS, np.nan)
    query = honest("glm_norms", 0, plan)
    # One far from two alike leaves. Another one comes half way between two who are so close that
    # the halves of their distance count as none.
    moved = []
    for apart in np.logspace(-4, 1, 51):
        persons = [*map(of_group, (0, 1e3, 0)), lost, of_group(0), of_group(apart), lost]
        half = of_group(apart / 2)
        moved.append(moves_to_another_place(query, plan, persons, 1, half, 45)["size"])
    assert 0.99 < max(moved) <= 1 + 1e-9
    # One who comes between two alike, and is far from both.
    table, hashes = on_ring(*persons)
    kept = np.arange(PERSONS) != 1
    added = ratios(query, table, table[:, kept], plan, (hashes, hashes[kept]))
    assert added["size"] == pytest.approx(1.0)


def test_some_replacement_by_another_hash_comes_close_to_the_bound_of_squares():
    plan, lost = PLANS["contrast"], np.full(ROWS, np.nan)
    query = honest("glm_contrast", 0, plan)
    asked = {"slopes": np.zeros(3), "location": np.zeros(6)}
    query = replace(query, arguments=dict(query.arguments) | asked)
    # Between two alike one leaves who differs in half of the outcomes. Another one comes between
    # two who differ so, and differs from both in the other half.
    persons = [of_group(9, 0), of_group(-9, 0), of_group(9, 0), lost, of_group(9, 0)]
    persons += [of_group(-9, 0), lost]
    moved = moves_to_another_place(query, plan, persons, 1, of_group(0, 9), 45)
    assert 0.2 < moved["squares"] <= 1 + 1e-9


def test_hashes_alone_choose_pairs_and_a_person_who_leaves_changes_two():
    generator = np.random.default_rng(3)
    table = np.stack([generator.standard_normal(ROWS) for _ in range(PERSONS)], axis=1)
    query, bound = honest("glm_contrast"), BOUNDS["glm_contrast"]

    def squares(some, hashes):
        return some.shape[1] * bound.split(released(query, some, PLAN, hashes))["squares"]

    order = np.argsort(HASHES)
    whole = squares(table, HASHES)
    turned = generator.permutation(PERSONS)
    assert squares(table[:, turned], HASHES[turned]) == pytest.approx(whole)
    place = int(order[4])
    left = np.arange(PERSONS) != place
    moved = whole - squares(table[:, left], HASHES[left])
    # What changes is the sum over the person and both neighbours on the ring, and nothing else.
    near = order[3:6]
    around = squares(table[:, near], HASHES[near])
    alone = squares(table[:, order[[3, 5]]], HASHES[order[[3, 5]]])
    assert moved == pytest.approx(around - alone)


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
