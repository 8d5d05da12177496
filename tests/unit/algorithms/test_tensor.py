"""capeAGN: centres and weights of mixtures and topics are found."""

from itertools import permutations

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Release
from consortium.errors import ProtocolError, StudyError
from consortium.kernels.tensor import pack_cubic, transformed, unpack_cubic
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
    hopeless, _ = run(make, "cape", epsilon=0.001)
    centres = hopeless.arrays["centres"]
    assert np.isfinite(centres).all()
    assert (np.linalg.norm(centres[:6], axis=0) <= 1.8 + 1e-9).all()
    agreement = [row[2] for row in hopeless.tables["components"].rows]
    assert max(abs(each - 1) for each in agreement) > 0.5  # and the table tells
    assert not hopeless.captions.found
    assert not any(row[1].told for row in hopeless.tables["components"].rows)


def test_the_margin_is_wide_where_noise_allows_it():
    _, table, views = mixture()
    site = sites_of(table, views, (table.shape[1],))
    shape = shape_of(site)
    rows = []
    for deviation in (0.0, 1e-5, 1e-2):
        parameters = TENSOR.Parameters(components=3, bound=1.8)
        second, _ = TENSOR.releases(parameters, shape)
        steps = TENSOR.run(parameters, shape)
        query = next(steps)
        values = TENSOR.statistics[query.statistic](site[0], query, second.bound)
        whitening = steps.send(Release(values, deviation)).arguments["whitening"]
        rows.append(np.sqrt(np.square(whitening.T @ table).sum(axis=0).mean()))
    # The root mean square of a whitened person is 1 / margin.
    assert rows[0] == pytest.approx(1 / 2.5, rel=0.02)
    assert rows[0] <= rows[1] <= rows[2] <= 1.05 / 1.3
    assert rows[2] > 1.2 * rows[0]


def test_messages_have_the_planned_sizes():
    _, _, views = mixture()
    shape = shape_of(make_feature_sites(views))
    second, third = TENSOR.releases(TENSOR.Parameters(components=3, bound=2.0), shape)
    assert (second.entries, third.entries) == (28, 10)  # 7 · 8 / 2 and 3 · 4 · 5 / 6
    assert second.bound == Bound(5.0, cone=True)
    assert third.bound == Bound(1.0)
    assert second.share + third.share == pytest.approx(1)


def test_of_few_words_a_topic_the_third_moment_is_released_whole():
    parameters = TENSOR.Parameters(components=3, model="topics", words=WORDS)
    planned = {}
    for features in (12, 13):
        views = tuple((name, features) for name in WORDS)
        planned[features] = TENSOR.releases(parameters, shape_of(make_feature_sites(views)))[1]
    assert (planned[12].statistic, planned[12].entries) == ("topic_cube", 12 * 13 * 14 // 6)
    assert planned[12].bound == Bound(1.0, cone=True)
    assert (planned[13].statistic, planned[13].entries) == ("topic_third", 10)
    assert planned[13].bound == Bound(1.0)


def test_the_whole_moment_whitened_is_the_moment_of_whitened_words():
    _, table, views = topics(count=50)
    (site,) = sites_of(table, views, (50,))
    whitening = np.random.default_rng(0).standard_normal((8, 3)) / 10  # clips nobody
    starts = {"starts": np.array([0.0, 8.0, 16.0])}
    whole = Query("third", "topic_cube", {**starts, "size": 8})
    small = Query("third", "topic_third", {**starts, "whitening": whitening})
    cube = TENSOR.statistics["topic_cube"](site, whole, Bound(1.0, cone=True))
    third = TENSOR.statistics["topic_third"](site, small, Bound(1.0))
    again = pack_cubic(transformed(unpack_cubic(cube, 8), whitening))
    assert again == pytest.approx(third, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("analysis", "views", "message"),
    [
        ({"components": 3, "bound": 1.0}, (("x", 2),), "can't be told from 2 entries"),
        ({"components": 3, "bound": 1.0}, (("x", 3001),), "at most 3000"),
        (
            {"components": 2, "model": "topics", "words": WORDS},
            (("first", 4), ("second", 4), ("third", 5)),
            "three different views of one size",
        ),
        (
            {"components": 2, "model": "topics", "words": ("first", "first", "second")},
            (("first", 4), ("second", 4)),
            "three different views of one size",
        ),
        (
            {"components": 2, "model": "topics", "words": WORDS},
            (("first", 4), ("second", 4)),
            "there is no view 'third'",
        ),
    ],
)
def test_studies_that_can_t_be_are_refused(analysis, views, message):
    with pytest.raises(StudyError, match=message):
        TENSOR.releases(TENSOR.Parameters(**analysis), shape_of(make_feature_sites(views)))


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


@pytest.mark.parametrize(
    "wrong",
    [
        {"starts": np.array([0.0, 2.0])},
        {"starts": np.array([0.0, 2.0, 7.0])},
        {"starts": np.array([0.0, 2.5, 4.0])},
        {"starts": np.array([0.0, -2.0, 4.0])},
        {"starts": np.array([0.0, np.nan, 4.0])},
        {"size": 9},
        {"size": 0},
    ],
)
def test_a_query_that_does_not_fit_is_refused_by_the_site(wrong):
    (site, *_) = make_feature_sites(tuple((name, 2) for name in WORDS))
    right = {"starts": np.array([0.0, 2.0, 4.0]), "size": 2}
    local = TENSOR.statistics["topic_second"]
    local(site, Query("second", "topic_second", right), Bound(1.0, cone=True))
    with pytest.raises(ProtocolError, match="discard"):
        local(site, Query("second", "topic_second", {**right, **wrong}), Bound(1.0, cone=True))
