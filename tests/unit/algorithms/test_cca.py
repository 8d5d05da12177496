"""capeCCA: against other implementations, under changes that must not matter, and with noise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmarks.uneven import LINK
from benchmarks.uneven import linked as linked_study
from consortium.algorithms.base import Release, Shape
from consortium.algorithms.cca.centre import Cca
from consortium.algorithms.cca.kernels.canonical_error import captured_share
from consortium.errors import StudyError
from consortium.privacy.gdp import mu_of
from consortium.privacy.mechanism import Sharing, plan_mechanism
from consortium.simulation.array_data import ArrayData
from tests.support.cases import drive, make_vectors, shape_of

CCA = Cca


def wide(*names):
    """Bounds that clip nobody."""
    return {"bounds": dict.fromkeys(names, 1e3), "headroom": 1e3}


def linked(generator, sizes, people, sources=3, noise=1.0):
    """Views that have sources in common, with means."""
    common = generator.standard_normal((sources, people))
    views = []
    for size in sizes:
        mixing = generator.standard_normal((size, sources))
        own = noise * generator.standard_normal((size, people))
        views.append(mixing @ common + own + generator.standard_normal((size, 1)))
    return views


def spread(views, sites=3):
    """Deal persons out to sites."""
    stacked = np.vstack(views)
    names = [(name, len(view)) for name, view in zip("xyw", views, strict=False)]
    return [ArrayData(list(stacked[:, s::sites].T[:, :, None]), views=names) for s in range(sites)]


def solve(views, pairs=3, **analysis):
    given = {"site_constants": False, **wide(*"xyw"[: len(views)]), **analysis}
    parameters = CCA.Parameters(pairs=pairs, **given)
    return drive(CCA, parameters, spread(views))[2]


def direct(first, second):
    """Canonical correlations by QR and SVD (Björck and Golub 1973)."""
    bases = [np.linalg.qr((v - v.mean(axis=1, keepdims=True)).T)[0] for v in (first, second)]
    return np.linalg.svd(bases[0].T @ bases[1])[1]


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_it_is_scikit_learns_and_that_of_an_svd(seed):
    sklearn = pytest.importorskip("sklearn.cross_decomposition")
    generator = np.random.default_rng(seed)
    first, second = linked(generator, (9, 6), 300)
    result = solve([first, second])
    other = sklearn.CCA(3, scale=False, max_iter=5_000, tol=1e-14).fit(first.T, second.T)
    scores = other.transform(first.T, second.T)
    expected = [np.corrcoef(scores[0][:, k], scores[1][:, k])[0, 1] for k in range(3)]
    found = result.arrays["correlations"]
    np.testing.assert_allclose(found, np.sort(expected)[::-1], atol=1e-6)
    np.testing.assert_allclose(found, direct(first, second)[:3], atol=1e-8)


def test_weights_patterns_and_structure_are_what_they_say():
    views = linked(np.random.default_rng(1), (7, 5), 200)
    arrays = solve(views).arrays
    whole = np.vstack(views)
    deviations = whole - arrays["centre"][:, None]
    np.testing.assert_allclose(arrays["centre"], whole.mean(axis=1), atol=1e-8)
    for rows in (slice(0, 7), slice(7, 12)):
        variates = arrays["weights"][rows].T @ deviations[rows]
        np.testing.assert_allclose(variates @ variates.T / 200, np.eye(3), atol=1e-7)
        patterns = deviations[rows] @ variates.T / 200
        np.testing.assert_allclose(arrays["patterns"][rows], patterns, atol=1e-7)
        table = np.corrcoef(whole[rows], variates)[: len(patterns), len(patterns) :]
        np.testing.assert_allclose(arrays["structure"][rows], table, atol=1e-6)


def test_three_views_give_the_largest_eigenvalues_of_the_whitened_whole():
    views = linked(np.random.default_rng(2), (5, 4, 3), 250)
    result = solve(views, pairs=2)
    whitened = [np.linalg.qr((v - v.mean(axis=1, keepdims=True)).T)[0] for v in views]
    values = np.linalg.svd(np.hstack(whitened))[1] ** 2  # of the sum of projections (MAXVAR)
    # Nearly: the correlations are of variates of variance one each.
    np.testing.assert_allclose(result.arrays["correlations"], (values[:2] - 1) / 2, atol=5e-3)
    assert len(result.tables["views"].rows) == 2 * 3


def test_three_views_without_a_third_are_two():
    first, second = linked(np.random.default_rng(3), (5, 4), 400)
    noise = np.random.default_rng(4).standard_normal((2, 400))
    two = solve([first, second], pairs=1).arrays["patterns"]
    three = solve([first, second, noise], pairs=1).arrays["patterns"]
    assert abs(np.corrcoef(two[:5, 0], three[:5, 0])[0, 1]) > 0.99


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_an_invertible_map_within_a_view_changes_no_correlation(seed):
    generator = np.random.default_rng(seed)
    first, second = linked(generator, (4, 3), 120)
    turned = np.linalg.qr(generator.standard_normal((4, 4)))[0] * generator.uniform(0.3, 3.0, 4)
    before, after = solve([first, second]), solve([turned @ first, second])
    np.testing.assert_allclose(
        before.arrays["correlations"], after.arrays["correlations"], atol=1e-6
    )


@pytest.mark.parametrize("solver", ["moment", "power"])
def test_reduced_views_find_the_same_where_they_have_no_more_directions(solver):
    generator = np.random.default_rng(5)
    first, second = linked(generator, (40, 6), 200, noise=0.0)
    second = second + 0.5 * generator.standard_normal(second.shape)
    plain = solve([first, second], pairs=2)
    reduced = solve([first, second], pairs=2, reduce={"x": 3}, solver=solver)
    for key in ("correlations", "patterns"):
        np.testing.assert_allclose(reduced.arrays[key], plain.arrays[key], rtol=1e-5, atol=1e-5)


def private(views, epsilon, seed, pairs=3, **analysis):
    """Run with the noise that a coalition of one site in three is told to expect."""
    sites, generator = spread(views), np.random.default_rng(seed)
    parameters = CCA.Parameters(pairs=pairs, **analysis)
    shape = shape_of(sites)
    deviations = {}
    for release in CCA(parameters, shape).planned():
        mechanism = plan_mechanism(
            Sharing("cape", colluding=1),
            entries=release.entries,
            bound=release.bound,
            units=shape.units,
            target=mu_of(epsilon, 1e-5) * np.sqrt(release.share / release.rounds),
        )
        deviations[release.stage] = mechanism.noise.aggregate()
    plan = CCA(parameters, shape)
    run = plan.run()
    query = next(run)
    try:
        while True:
            weights = np.array(shape.units) / sum(shape.units)
            (bound,) = (r.bound for r in plan.planned() if r.stage == query.stage)
            local = plan.statistics[query.statistic]
            mean = sum(
                w * local(plan, s, replace(query, site=k), bound)
                for k, (w, s) in enumerate(zip(weights, sites, strict=True))
            )
            deviation = deviations[query.stage]
            noise = deviation * generator.standard_normal(len(mean))
            query = run.send(Release(mean + noise, deviation))
    except StopIteration as stop:
        return stop.value


def test_radii_that_the_study_says_are_no_centres_to_say():
    shape = shape_of(spread(linked(np.random.default_rng(0), (3, 2), 12)))
    plan = CCA(CCA.Parameters(pairs=1, radii={"x": 2.0}), shape)
    asked = {"centre": np.ones(5), "radii": np.array([9.0, 0.5])}
    centre, radii = plan.geometry(asked)
    assert centre is asked["centre"]
    assert radii.tolist() == [2.0, 0.5]
    alone = CCA(CCA.Parameters(pairs=1, centre_share=0.0, bounds={"y": 3.0}), shape)
    assert [each.tolist() for each in alone.geometry({})] == [[0.0] * 5, [1.0, 3.0]]


def population(generator, correlations, size, people):
    """Two views of low rank with so large canonical correlations, of norm about 1."""
    rank = len(correlations)
    rho = np.array(correlations)[:, None]
    first, other = generator.standard_normal((2, rank, people))
    profiles = first, rho * first + np.sqrt(1 - rho**2) * other
    bases = [np.linalg.qr(generator.standard_normal((size, rank)))[0] for _ in range(2)]
    views = [0.3 / np.sqrt(rank) * b @ p + 0.1 for b, p in zip(bases, profiles, strict=True)]
    return [view + 0.02 / np.sqrt(size) * generator.standard_normal(view.shape) for view in views]


def told(result):
    return [row[1] for row in result.tables["pairs"].rows]


def test_intervals_hold_the_population_and_the_floor_stops_what_is_not_there():
    inside, above = [], []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        views = population(generator, (0.9, 0.7, 0.0), 20, 900)
        pairs = told(private(views, 4.0, seed))
        inside += [f.low <= r <= f.high for f, r in zip(pairs, (0.9, 0.7), strict=False)]
        above.append([each.state == "found" for each in pairs])
    assert np.mean(inside) >= 0.85
    assert np.mean(above, axis=0)[0] == 1.0
    assert np.mean(above, axis=0)[1] >= 0.9
    assert np.mean(above, axis=0)[2] <= 0.15


def test_an_interval_goes_no_lower_than_it_need():
    estimates, widths = [], []
    for seed in range(12):
        views = population(np.random.default_rng(seed), (0.7,), 12, 600)
        (pair,) = told(private(views, 4.0, seed, pairs=1))
        estimates.append(np.arctanh(pair.value))
        widths.append(np.arctanh(pair.value) - np.arctanh(pair.low))
        assert pair.high == 1.0  # eleven of twelve directions are hidden
    assert 0.4 < 1.96 * np.std(estimates) / np.mean(widths) < 1.6


def scanners(seed, site_constants):
    """Three sites whose scanners move both views, between which there is nothing."""
    generator = np.random.default_rng(seed)
    sites = []
    for _ in range(3):
        views = [0.1 * generator.standard_normal((size, 300)) for size in (4, 3)]
        views = [view + 0.15 * generator.standard_normal((len(view), 1)) for view in views]
        (site,) = spread(views, 1)
        sites.append(site)
    parameters = CCA.Parameters(pairs=1, site_constants=site_constants)
    return drive(CCA, parameters, sites)[2]


def test_differences_between_sites_link_nothing_with_constants_for_each():
    apart = [scanners(seed, True).captions for seed in range(20)]
    together = [scanners(seed, False).captions for seed in range(20)]
    assert np.mean([words.found for words in apart]) <= 0.15
    assert np.mean([words.found for words in together]) > 0.9
    for words in (*apart, *together):  # and the headline warns where there is none
        warned = "Differences between the sites" in words.headline
        assert warned == (words.found and words in together)


def test_the_plan_says_where_constants_of_sites_cost_power():
    views, noise = (("x", 8), ("y", 5)), 8.0
    for persons, costly in ((50, True), (5000, False)):
        shape = Shape(13, (persons,) * 4, (persons,) * 4, "subject", views=views, noise=noise)
        assert Cca(CCA.Parameters(pairs=1), shape).places == 4
        public, *more = CCA(CCA.Parameters(pairs=1), shape).remarks()
        assert "become public" in public
        assert [("more are detected" in said) for said in more] == [True] * costly
        alike = CCA.Parameters(pairs=1, site_constants=False)
        assert Cca(alike, shape).places == 1
        (said,) = CCA(alike, shape).remarks()
        assert "count as a link" in said


def test_the_first_release_makes_the_noise_matter_less():
    views = population(np.random.default_rng(0), (0.9, 0.7), 20, 900)
    with_it = private([view + 0.15 for view in views], 2.0, 0, pairs=2)
    without = private([view + 0.15 for view in views], 2.0, 0, pairs=2, centre_share=0.0)
    assert with_it.numbers["pairs_found"] == 2
    assert without.numbers["pairs_found"] < 2


def test_noise_that_drowns_everything_leaves_nothing_and_no_error():
    result = private(population(np.random.default_rng(0), (0.9,), 20, 30), 0.1, 0, pairs=2)
    assert all(np.isfinite(array).all() for array in result.arrays.values())
    assert result.numbers["pairs_found"] == 0
    assert not any(each.reported for each in told(result))
    assert "none would be" in result.captions.headline


def test_the_same_numbers_wherever_persons_are():
    views = linked(np.random.default_rng(6), (4, 3), 60)
    parameters = CCA.Parameters(pairs=2, site_constants=False, **wide("x", "y"))
    one = drive(CCA, parameters, spread(views, 1))[2]
    many = drive(CCA, parameters, spread(views, 4))[2]
    np.testing.assert_allclose(one.arrays["patterns"], many.arrays["patterns"], atol=1e-9)


@pytest.mark.parametrize(
    ("analysis", "said"),
    [
        ({"bounds": {"nose": 1.0}}, "analysis.bounds.nose"),
        ({"radii": {"faces": -1.0}}, "analysis.radii.faces"),
        ({"reduce": {"faces": 4}}, "field 'analysis.reduce.faces'"),
    ],
)
def test_what_does_not_fit_the_views_is_named(analysis, said):
    with pytest.raises(StudyError, match=said):
        CCA(CCA.Parameters(pairs=1, **analysis), shape_of(make_vectors())).planned()


def test_one_view_or_too_large_a_moment_is_refused():
    large = Shape(7000, (9,), (9,), "subject", views=(("x", 4000), ("y", 3000)))
    with pytest.raises(StudyError, match="at least two"):
        CCA(CCA.Parameters(pairs=1), Shape(4, (9,), (9,), "subject", views=(("x", 4),))).planned()
    with pytest.raises(StudyError, match=r"analysis\.reduce"):
        CCA(CCA.Parameters(pairs=1), large).planned()
    assert CCA(CCA.Parameters(pairs=1, reduce={"x": 20}), large).planned()
    with pytest.raises(ValidationError):
        CCA.Parameters(pairs=0)


def test_the_budget_goes_where_the_noise_is():
    shape = Shape(3100, (900,), (900,), "subject", views=(("x", 3000), ("y", 100)))
    planned = {r.stage: r for r in CCA(CCA.Parameters(pairs=1, reduce={"x": 10}), shape).planned()}
    assert sum(release.share for release in planned.values()) == pytest.approx(1.0)
    assert planned["reduce-x"].share > planned["cca"].share > planned["centre"].share


def test_an_interval_knows_of_links_that_noise_hides():
    # Of 132 and 126 directions a few stand out; along these the link is much weaker.
    found = [linked_study(440, (132, 126), 1.5, 8.0, seed)[0] for seed in range(8)]
    told = [each for each in found if each.bounded]
    assert len(told) > 4
    assert all(each.low <= LINK <= each.high for each in told)
    assert np.mean([each.value for each in told]) < 0.6  # which intervals were around


def test_what_is_seen_of_a_link_is_what_few_of_many_directions_hold():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, 20_000, 6))
    squares = np.square(vectors)
    parts = squares[..., :4].sum(axis=2) / squares.sum(axis=2)
    expected = np.sqrt(np.prod(np.quantile(parts, 0.05, axis=1)))
    assert captured_share((6, 6), (4, 4)) == pytest.approx(expected, rel=0.03)
    assert captured_share((6, 5), (6, 5)) == 1.0
    assert captured_share((6, 5), (0, 5)) == 0.0
    assert captured_share((132, 126), (4, 4)) < 0.02
