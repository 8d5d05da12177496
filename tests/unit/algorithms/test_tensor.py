"""capeAGN: centres and weights of mixtures and topics are found."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from pydantic import ValidationError

from benchmarks.honesty.running import TableSite, answer
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.algorithms.tensor.centre import COSTLY, ONE_CONSTANT, TOPICS
from consortium.algorithms.tensor.kernels.tensor import pack_cubic, transform_tensor, unpack_cubic
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound
from consortium.simulation.simulation import Simulation
from tests.support.cases import drive, make_feature_sites, make_feature_study, shape_of, sites_of

TENSOR = REGISTRY["tensor"]
COUNTS = (7000, 5000, 6000, 2000)
WEIGHTS = np.array([0.5, 0.3, 0.2])
WORDS = ("first", "second", "third")


def mixture(seed=0, features=6, spread=0.15, count=20_000):
    generator = np.random.default_rng(seed)
    centres = np.linalg.qr(generator.standard_normal((features, 3)))[0] @ (
        0.7 * np.eye(3) + 0.2 * generator.standard_normal((3, 3))
    )
    kinds = generator.choice(3, size=count, p=WEIGHTS)
    table = centres[:, kinds] + spread * generator.standard_normal((features, count))
    return centres, table, (("scale", features),)


def topics(seed=0, features=8, count=20_000):
    generator = np.random.default_rng(seed)
    centres = generator.dirichlet(np.full(features, 0.3), size=3).T
    kinds = generator.choice(3, size=count, p=WEIGHTS)
    table = np.zeros((3 * features, count), dtype=np.float32)
    for word in range(3):
        drawn = [generator.choice(features, size=count, p=centres[:, k]) for k in range(3)]
        table[word * features + np.choose(kinds, drawn), np.arange(count)] = 1
    return centres, table, tuple((name, features) for name in WORDS)


def many_words():
    return topics(features=14)


def distance(found, weights, centres):
    """Largest distance of a centre, and of a weight, under the best matching."""
    best = min(permutations(range(3)), key=lambda p: np.linalg.norm(found[:, p] - centres))
    errors = np.linalg.norm(found[:, best] - centres, axis=0)
    return errors.max(), np.abs(weights[list(best)] - WEIGHTS).max()


def run(make, scheme="none", *, epsilon=8.0):
    centres, table, views = make()
    analysis = {"components": 3}
    if make is mixture:
        analysis["bound"] = 1.8
    else:
        analysis |= {"model": "topics", "words": WORDS}
    study = make_feature_study("tensor", views, analysis, scheme=scheme, epsilon=epsilon)
    result = Simulation(study, sites_of(table, views, COUNTS), 0).run()
    found = result.arrays["centres"]
    return result, distance(found[: len(centres)], result.arrays["weights"], centres)


@pytest.mark.parametrize("make", [mixture, topics, many_words])
def test_centres_and_weights_are_found_without_noise(make):
    result, (centre, weight) = run(make)
    assert centre < 0.06
    assert weight < 0.03
    agreement = [row[2] for row in result.tables["components"].rows]
    assert agreement == pytest.approx(np.ones(3), abs=0.1)
    assert result.arrays["weights"].sum() == pytest.approx(1)
    assert (np.diff(result.arrays["weights"]) <= 0).all()


@pytest.mark.parametrize("make", [mixture, topics, many_words])
def test_centres_are_found_with_privacy(make):
    _, (centre, weight) = run(make, "cape")
    assert centre < 0.15
    assert weight < 0.08


def test_the_spread_is_found_and_its_correction_matters():
    result, _ = run(mixture)
    assert result.numbers["variance"] == pytest.approx(0.15**2, rel=0.1)
    # The falsifier: a spread that is taken for zero stays in the moments.
    centres, table, views = mixture(spread=0.4)
    parameters = TENSOR.Parameters(components=3, bound=10.0, margin=10.0)
    _, _, sound = drive(TENSOR, parameters, sites_of(table, views, COUNTS))
    good, _ = distance(sound.arrays["centres"], sound.arrays["weights"], centres)

    def blind(moment, mean, components):
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("consortium.algorithms.tensor.result.flat_variance", blind)
        _, _, spoilt = drive(TENSOR, parameters, sites_of(table, views, COUNTS))
    bad, _ = distance(spoilt.arrays["centres"], spoilt.arrays["weights"], centres)
    assert bad > 2 * good


def test_topics_are_frequencies_in_all_three_words():
    result, _ = run(topics, "cape")
    centres = result.arrays["centres"]
    assert (centres >= 0).all()
    assert centres[:8].sum(axis=0) == pytest.approx(np.ones(3))
    assert np.array_equal(centres[:8], centres[8:16])
    assert np.array_equal(centres[:8], centres[16:])


@pytest.mark.parametrize("make", [mixture, topics])
def test_noise_alone_leaves_no_bound(make):
    hopeless, _ = run(make, "cape", epsilon=0.0001)
    centres = hopeless.arrays["centres"]
    assert np.isfinite(centres).all()
    assert (np.linalg.norm(centres[:6], axis=0) <= 1.8 + 1e-9).all()
    agreement = [row[2] for row in hopeless.tables["components"].rows]
    assert max(abs(each - 1) for each in agreement) > 0.5  # and the table tells
    assert not hopeless.captions.found
    assert not any(row[1].reported for row in hopeless.tables["components"].rows)


def test_the_margin_is_wide_where_noise_allows_it():
    _, table, views = mixture()
    site = sites_of(table, views, (table.shape[1],))
    shape = shape_of(site)
    rows = []
    for deviation in (0.0, 1e-5, 1e-2):
        plan = TENSOR(TENSOR.Parameters(components=3, bound=1.8), shape)
        (second, _), steps = plan.planned(), plan.run()
        query = next(steps)
        values = plan.statistics[query.statistic](plan, site[0], query, second.bound)
        whitening = steps.send(Release(values, deviation)).arguments["whitening"]
        rows.append(np.sqrt(np.square(whitening.T @ table).sum(axis=0).mean()))
    # The root mean square of a whitened person is 1 / margin.
    assert rows[0] == pytest.approx(1 / 2.5, rel=0.02)
    assert rows[0] <= rows[1] <= rows[2] <= 1.05 / 1.3
    assert rows[2] > 1.2 * rows[0]


def offset_sites(table, views, size):
    """Sites whose levels differ by ``size`` in every entry."""
    offsets = size * np.random.default_rng(9).standard_normal((len(table), len(COUNTS)))
    return sites_of(table + np.repeat(offsets, COUNTS, axis=1), views, COUNTS), offsets


def test_offsets_between_sites_change_nothing_but_the_mean():
    _, table, views = mixture()
    moved, offsets = offset_sites(table, views, 0.3)
    common = offsets @ np.array(COUNTS) / sum(COUNTS)
    parameters = TENSOR.Parameters(components=3, bound=9.0, margin=9.0)
    _, _, plain = drive(TENSOR, parameters, sites_of(table + common[:, None], views, COUNTS))
    _, _, found = drive(TENSOR, parameters, moved)
    assert found.arrays["centres"] == pytest.approx(plain.arrays["centres"], abs=1e-6)
    assert found.arrays["weights"] == pytest.approx(plain.arrays["weights"], abs=1e-6)
    # The falsifier: with one constant for all they are in the centres.
    one = TENSOR.Parameters(components=3, bound=9.0, margin=9.0, site_constants=False)
    _, _, blurred = drive(TENSOR, one, moved)
    assert np.abs(blurred.arrays["centres"] - plain.arrays["centres"]).max() > 0.1


def test_persons_of_one_kind_at_sites_that_differ_are_not_taken_for_several():
    alike = 0.5 + 0.15 * np.random.default_rng(3).standard_normal((6, sum(COUNTS)))
    sites, _ = offset_sites(alike, (("scale", 6),), 0.4)
    found = {}
    for constants in (True, False):
        parameters = TENSOR.Parameters(components=3, bound=4.0, site_constants=constants)
        found[constants] = drive(TENSOR, parameters, sites)[2].numbers["found"]
    assert found == {True: 0, False: 3}


def test_a_mix_that_differs_between_sites_is_drawn_together():
    """What sites differ in by the kinds of their persons is taken with their levels."""
    centres, table, views = mixture()
    kinds = np.argmin(((table[:, None] - centres[:, :, None]) ** 2).sum(axis=0), axis=0)
    sorted_table = table[:, np.argsort(kinds, kind="stable")]  # each site of few kinds
    parameters = TENSOR.Parameters(components=3, bound=1.8)
    _, _, found = drive(TENSOR, parameters, sites_of(sorted_table, views, COUNTS))
    one = TENSOR.Parameters(components=3, bound=1.8, site_constants=False)
    _, _, without = drive(TENSOR, one, sites_of(sorted_table, views, COUNTS))
    far, _ = distance(found.arrays["centres"], found.arrays["weights"], centres)
    near, _ = distance(without.arrays["centres"], without.arrays["weights"], centres)
    assert near < 0.06
    assert far > 0.3


def test_what_is_taken_from_a_person_depends_on_nobody_else():
    """Two persons change places with two others: the mean moves by their own parts alone."""
    _, table, views = mixture(count=50)
    parameters = TENSOR.Parameters(components=3, bound=1.8)
    plan = TENSOR(parameters, shape_of(make_feature_sites(views)))
    _, third = plan.planned()
    offsets = np.random.default_rng(1).standard_normal((4, 6))
    arguments = {"whitening": np.full((6, 3), 0.3), "offsets": offsets}
    query = Query("third", third.statistic, arguments, site=2)

    def answer(columns):
        (site,) = sites_of(columns, views, (columns.shape[1],))
        return columns.shape[1] * plan.statistics[query.statistic](plan, site, query, third.bound)

    together = answer(table)
    assert together == pytest.approx(answer(table[:, :20]) + answer(table[:, 20:]))
    largest = max(np.linalg.norm(answer(table[:, [k]])) for k in range(50))
    assert 0.5 < largest <= 1.0 + 1e-9


def test_a_site_that_did_not_answer_has_no_offset():
    _, table, views = mixture(count=400)
    shape = shape_of(sites_of(table, views, (100,) * 4))
    parts = sites_of(table[:, :300], views, (100,) * 3)
    parameters = TENSOR.Parameters(components=3, bound=1.8)
    plan = TENSOR(parameters, shape)
    (second, _), steps = plan.planned(), plan.run()
    query, local = next(steps), plan.statistics[second.statistic]
    values = [
        local(plan, part, replace(query, site=k), second.bound) for k, part in enumerate(parts)
    ]
    asked = steps.send(Release(np.mean(values, axis=0), 0.0, sites=(0, 1, 2)))
    offsets = asked.arguments["offsets"]
    means = np.array([table[:, 100 * k : 100 * (k + 1)].mean(axis=1) for k in range(3)])
    assert offsets[:3] == pytest.approx(means - means.mean(axis=0), abs=1e-6)
    assert not offsets[3].any()


def test_the_plan_says_which_constants_there_are_and_what_they_cost():
    def remarks(size, **more):
        shape = replace(shape_of(make_feature_sites((("scale", 6),))), subjects=(size,) * 4)
        given = TENSOR.Parameters(components=3, bound=1.8, **more)
        return TENSOR(given, replace(shape, noise=2.0)).remarks()

    assert remarks(10_000) == (SITE_MEANS,)
    assert remarks(30) == (SITE_MEANS, COSTLY)
    assert remarks(30, site_constants=False) == (ONE_CONSTANT,)
    words = shape_of(make_feature_sites(tuple((name, 4) for name in WORDS)))
    topic = TENSOR.Parameters(components=2, model="topics", words=WORDS)
    assert TENSOR(topic, words).remarks() == (TOPICS,)


def test_messages_have_the_planned_sizes():
    _, _, views = mixture()
    shape = shape_of(make_feature_sites(views))
    second, third = TENSOR(TENSOR.Parameters(components=3, bound=2.0), shape).planned()
    assert len(shape.units) == 4
    assert (second.entries, third.entries) == (55, 10)  # 10 · 11 / 2 and 3 · 4 · 5 / 6
    one = TENSOR.Parameters(components=3, bound=2.0, site_constants=False)
    assert TENSOR(one, shape).planned()[0].entries == 28  # 7 · 8 / 2
    assert second.bound == Bound(5.0, cone=True)
    assert third.bound == Bound(1.0)
    assert second.share + third.share == pytest.approx(1)


def test_of_few_words_a_topic_the_third_moment_is_released_whole():
    parameters = TENSOR.Parameters(components=3, model="topics", words=WORDS)
    planned = {}
    for features in (12, 13):
        views = tuple((name, features) for name in WORDS)
        planned[features] = TENSOR(parameters, shape_of(make_feature_sites(views))).planned()[1]
    assert (planned[12].statistic, planned[12].entries) == ("topic_cube", 12 * 13 * 14 // 6)
    assert planned[12].bound == Bound(1.0, cone=True)
    assert (planned[13].statistic, planned[13].entries) == ("topic_third", 10)
    assert planned[13].bound == Bound(1.0)


def test_the_whole_moment_whitened_is_the_moment_of_whitened_words():
    _, table, views = topics(count=50)
    (site,) = sites_of(table, views, (50,))
    whitening = np.random.default_rng(0).standard_normal((8, 3)) / 10  # clips nobody
    said = TENSOR.Parameters(components=3, model="topics", words=WORDS)
    plan = TENSOR(said, shape_of([site]))
    whole, small = (
        Query("third", "topic_cube"),
        Query("third", "topic_third", {"whitening": whitening}),
    )
    cube = plan.statistics["topic_cube"](plan, site, whole, Bound(1.0, cone=True))
    third = plan.statistics["topic_third"](plan, site, small, Bound(1.0))
    again = pack_cubic(transform_tensor(unpack_cubic(cube, 8), whitening))
    assert again == pytest.approx(third, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("analysis", "views", "message"),
    [
        ({"components": 3, "bound": 1.0}, (("x", 2),), "field 'analysis.components'.*got 2"),
        ({"components": 3, "bound": 1.0}, (("x", 3001),), "3000.*got 3001"),
        (
            {"components": 2, "model": "topics", "words": WORDS},
            (("first", 4), ("second", 4), ("third", 5)),
            "field 'analysis.words'",
        ),
        (
            {"components": 2, "model": "topics", "words": ("first", "first", "second")},
            (("first", 4), ("second", 4)),
            "field 'analysis.words'",
        ),
        (
            {"components": 2, "model": "topics", "words": WORDS},
            (("first", 4), ("second", 4)),
            "field 'analysis.words'.*'third'",
        ),
    ],
)
def test_studies_that_can_t_be_are_refused(analysis, views, message):
    with pytest.raises(StudyError, match=message):
        TENSOR(TENSOR.Parameters(**analysis), shape_of(make_feature_sites(views))).planned()


@pytest.mark.parametrize(
    "wrong",
    [
        {"components": 2},
        {"components": 1, "bound": 1.0},
        {"components": 2, "model": "topics", "bound": 1.0, "words": WORDS},
        {"components": 2, "model": "topics"},
        {"components": 2, "bound": 1.0, "words": WORDS},
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        TENSOR.Parameters.model_validate(wrong)


def independent(seed, *, kinds):
    """Whether two kinds are found among 1,500 participants of one kind, or of two."""
    rng = np.random.default_rng(seed)
    table = 0.15 * rng.standard_normal((6, 1500)) + 0.3
    if kinds == 1:
        table[:3] *= 2.0
    else:
        table[3:, 600:] -= 0.6
    sites = [TableSite(each, (("x", 6),)) for each in np.hsplit(table[:, rng.permutation(1500)], 4)]
    result = answer("tensor", {"components": 2, "bound": 1.5}, sites, 8.0, rng)
    return result.numbers["found"] > 0


def test_one_kind_of_independent_entries_is_not_taken_for_two():
    """Agreement of the moments alone reports two kinds in every one of these studies."""
    assert sum(independent(seed, kinds=1) for seed in range(10)) <= 2
    assert sum(independent(seed, kinds=2) for seed in range(3)) == 3
