"""capePCA and the average: against plain NumPy, and the edge that noise alone would have."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Extent, Release, Shape
from consortium.algorithms.pca.centre import MOST_ITERATIONS
from consortium.algorithms.pca.kernels.bulk import selective_interval
from consortium.algorithms.pca.kernels.power_plan import expected_energies
from consortium.algorithms.pca.result import subspace
from consortium.errors import StudyError
from consortium.kernels.moments import pack_symmetric, packed_size
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.plan import count_rounds, make_plan
from tests.support.cases import drive, make_sites, make_study, shape_of

PCA, AVERAGE = REGISTRY["pca"], REGISTRY["average"]


def blocks(sites):
    return [block.astype(np.float64) for site in sites for block in site.blocks()]


def pooled_moment(sites, bound):
    """Mean over units of the clipped second moments, written out."""
    if sites[0].unit == "subject":
        moments = [x @ x.T / x.shape[1] for x in blocks(sites)]
    else:
        moments = [np.outer(v, v) for x in blocks(sites) for v in x.T]
    return np.mean([m * min(1, bound / np.linalg.norm(m)) for m in moments], axis=0)


@pytest.mark.parametrize("unit", ["subject", "timepoint"])
@pytest.mark.parametrize("bound", [0.3, 100.0])
def test_components_are_the_eigenvectors_of_the_pooled_clipped_moment(unit, bound):
    sites = make_sites(unit)
    parameters = PCA.Parameters(components=3, bound=bound)
    _, _, result = drive(PCA, parameters, sites)
    values, vectors = np.linalg.eigh(pooled_moment(sites, bound))
    assert result.arrays["eigenvalues"] == pytest.approx(values[::-1][:3])
    basis = result.arrays["basis"]
    assert np.abs(basis.T @ vectors[:, ::-1][:, :3]) == pytest.approx(np.eye(3), abs=1e-6)
    found = result.numbers["found"]
    assert found == np.count_nonzero(values[-3:] > result.numbers["edge"])
    if found:
        assert result.numbers["captured"] == pytest.approx(values[::-1][:found].sum())
    assert result.numbers["total"] == pytest.approx(values.sum())


def test_scikit_learn_finds_the_same_components():
    decomposition = pytest.importorskip("sklearn.decomposition")
    sites = make_sites("timepoint", seed=4)
    _, _, result = drive(PCA, PCA.Parameters(components=2, bound=1e6), sites)
    volumes = np.hstack(blocks(sites)).T
    both = np.vstack([volumes, -volumes])  # so that the mean which PCA takes away is zero
    theirs = decomposition.PCA(2).fit(both).components_.T
    assert subspace_angles(result.arrays["basis"], theirs).max() < 1e-6


def test_noise_alone_reaches_the_noise_edge():
    generator = np.random.default_rng(0)
    release = Release(0.1 * generator.standard_normal(packed_size(300)), 0.1)
    result = subspace(release, 1, 10_000)
    assert result.arrays["eigenvalues"][0] == pytest.approx(result.numbers["noise_edge"], rel=0.05)


def noisy(moment, deviation, seed):
    generator = np.random.default_rng(seed)
    packed = pack_symmetric(moment)
    return Release(packed + deviation * generator.standard_normal(packed.size), deviation)


def test_white_data_have_no_component_however_many_persons_there_are():
    for deviation in (1e-6, 1e-3):
        generator = np.random.default_rng(1)
        volumes = generator.standard_normal((40, 20_000))
        result = subspace(noisy(volumes @ volumes.T / 20_000 / 40, deviation, 2), 10, 20_000)
        assert result.numbers["found"] == 0
        assert not result.captions.found
        assert result.captions.headline.startswith("Nothing was found")
        assert not any(share.reported for share in result.shares)
        # The falsifier: all are beyond the edge of noise alone.
        assert (result.arrays["eigenvalues"] > result.numbers["noise_edge"]).all()


def test_captured_variance_is_freed_of_the_noise():
    generator = np.random.default_rng(3)
    maps = np.linalg.qr(generator.standard_normal((60, 2)))[0]
    moment = 0.01 * np.eye(60) + (maps * (0.25, 0.15)) @ maps.T
    errors, raw = [], []
    for seed in range(20):
        result = subspace(noisy(moment, 0.01, seed), 5, 10**6)
        assert result.numbers["found"] == 2
        basis = result.arrays["basis"][:, :2]
        truth = np.trace(basis.T @ moment @ basis)
        errors.append(result.numbers["captured"] / truth - 1)
        raw.append(result.arrays["eigenvalues"][:2].sum() / truth - 1)
        assert [share.reported for share in result.shares] == [True, True, False, False, False]
    assert abs(np.mean(errors)) < 0.02
    assert np.mean(raw) > 0.05


@pytest.mark.parametrize("unit", ["subject", "timepoint"])
def test_power_finds_what_the_moment_finds(unit):
    sites = make_sites(unit, features=30, seed=5)
    for site in sites:  # a spectrum that falls, as a brain's does
        for block in site.blocks():
            block *= 0.7 ** np.arange(30, dtype=np.float32)[:, None]
    moment = drive(PCA, PCA.Parameters(components=3, bound=1e6), sites)[2]
    asked = PCA.Parameters(components=3, bound=1e6, solver="power", iterations=30)
    queries, _, power = drive(PCA, asked, sites)
    assert len(queries) == 30
    assert power.arrays["eigenvalues"] == pytest.approx(moment.arrays["eigenvalues"], rel=1e-4)
    assert subspace_angles(power.arrays["basis"], moment.arrays["basis"]).max() < 1e-3


def test_the_solver_follows_the_size_and_never_needs_a_square():
    wide = Shape(70_000, (20,) * 4, (4000,) * 4, "subject")
    (release,) = PCA(PCA.Parameters(components=20), wide).planned()
    assert (release.statistic, release.entries, release.rounds) == ("power", 1_400_000, 5)
    assert not release.bound.cone
    (release,) = PCA(PCA.Parameters(components=20), Shape(900, (2,), (40,), "subject")).planned()
    assert release.statistic == "second_moment"
    with pytest.raises(StudyError, match="The solver moment requires"):
        PCA(PCA.Parameters(components=20, solver="moment"), wide).planned()
    with pytest.raises(StudyError, match=r"field 'analysis.components'"):
        PCA(PCA.Parameters(components=500), Shape(200_000, (2,), (40,), "subject")).planned()


@pytest.mark.parametrize("features", [6, 900, 70_000])
@given(persons=st.integers(1, 100_000), epsilon=st.floats(0.5, 20.0), size=st.integers(2, 6))
def test_products_are_planned_against_the_budget(features, persons, epsilon, size):
    """There are never more than keys are made for before sizes are known, and 50 can be asked."""
    analysis = {"components": size, "solver": "power"}
    study = make_study("pca", analysis, epsilon=epsilon)
    extent = Extent(features)
    shape = extent.shape((persons,) * 4, (100 * persons,) * 4, "subject")
    plan = make_plan(study, shape)
    assert 1 <= plan.rounds <= count_rounds(study, extent) <= MOST_ITERATIONS
    assert plan.mu <= plan.promised_mu * (1 + 1e-9)
    asked = make_study("pca", {**analysis, "iterations": 50}, epsilon=epsilon)
    assert make_plan(asked, shape).rounds == count_rounds(asked, extent) == 50


def test_the_noise_of_a_plan_tells_how_many_products_are_best():
    """Each is a choice that another number of products would be worse than."""
    size, counts, extent = 6, {}, Extent(457)
    study = make_study("pca", {"components": size, "solver": "power"})
    most = count_rounds(study, extent)
    for persons in (100, 500, 10**6):
        sizes = (persons,) * 4, (persons,) * 4
        plan = make_plan(study, extent.shape(*sizes, "subject"))
        mechanism, counts[persons] = plan.stages[0].mechanism, plan.rounds
        alone = mechanism.noise.aggregate() / np.sqrt(plan.rounds)
        energies = expected_energies(457, size, alone, most)
        assert energies[plan.rounds - 1] >= 0.994 * max(energies)
    assert len(set(counts.values())) == 3


def test_another_seed_is_another_start():
    sites = make_sites()
    asked = [PCA.Parameters(components=2, solver="power", seed=seed) for seed in (0, 0, 1)]
    first, same, other = (drive(PCA, each, sites)[0][0].arguments["basis"] for each in asked)
    assert np.array_equal(first, same)
    assert not np.allclose(first, other)


def test_more_components_than_features_are_refused():
    shape = Shape(5, (2, 2), (40, 40), "subject")
    assert PCA(PCA.Parameters(components=5), shape).planned()[0].entries == 15
    with pytest.raises(StudyError, match=r"analysis\.components"):
        PCA(PCA.Parameters(components=6), shape).planned()


def test_the_default_bound_depends_on_the_unit_alone():
    for unit, norm in (("subject", 0.5), ("timepoint", 2.0)):
        shape = Shape(5, (2, 2), (40, 40), unit)
        (release,) = PCA(PCA.Parameters(components=2), shape).planned()
        assert release.bound.norm == norm
        assert release.bound.cone


@pytest.mark.parametrize(("unit", "bound"), [("subject", 0.35), ("timepoint", 0.4)])
def test_the_average_is_that_of_the_clipped_units(unit, bound):
    sites = make_sites(unit)
    parameters = AVERAGE.Parameters(bound=bound)
    _, _, result = drive(AVERAGE, parameters, sites)
    units = [x.mean(axis=1) for x in blocks(sites)]
    if unit == "timepoint":
        units = list(np.hstack(blocks(sites)).T)
    clipped = [u * min(1, bound / np.linalg.norm(u)) for u in units]
    assert any(np.linalg.norm(u) > bound for u in units)
    assert any(np.linalg.norm(u) < bound for u in units)
    assert result.arrays["mean"].ravel() == pytest.approx(np.mean(clipped, axis=0))
    assert AVERAGE(parameters, shape_of(sites)).planned()[0].share == 1.0


def powered(features, persons, size, epsilon, seed, **analysis):
    """A study of persons whose variances fall as one over their number, and the true axes."""
    generator = np.random.default_rng(seed)
    axes = np.linalg.qr(generator.standard_normal((features, features)))[0]
    roots = np.sqrt(1.0 / np.arange(1, features + 1))
    blocks = [(axes * roots) @ generator.standard_normal((features, 40)) for _ in range(persons)]
    blocks = [block / np.sqrt(np.square(block).sum() / 40) for block in blocks]
    study = make_study("pca", {"components": size, "solver": "power", **analysis}, epsilon=epsilon)
    sites = [ArrayData(blocks[site::4]) for site in range(4)]
    return Simulation(study, sites, seed).run(), axes


def held(result, axes):
    """Part of the leading directions' energy that the basis holds."""
    variances = 1.0 / np.arange(1, len(axes) + 1)
    size = result.arrays["basis"].shape[1]
    cosines = np.square(axes.T @ result.arrays["basis"]).sum(axis=1)
    return float(cosines @ variances / variances[:size].sum())


def test_as_many_products_are_planned_as_show_most_of_usual_data():
    def kept(**given):
        return np.mean([held(*powered(300, 200, 4, 16.0, seed, **given)) for seed in range(3)])

    planned, single = kept(), kept(iterations=1)
    assert planned > 1.5 * single
    assert planned > 0.93 * max(kept(iterations=n) for n in (2, 3, 4, 6))


def test_what_a_power_iteration_finds_is_there():
    true, missed = [], 0
    for seed, epsilon in enumerate([4.0, 8.0, 16.0, 16.0, 32.0, 32.0]):
        for rounds in (1, 2, 4):
            result, axes = powered(200, 200, 6, epsilon, seed, iterations=rounds)
            cosines = np.abs(axes[:, :12].T @ result.arrays["basis"]).max(axis=0)
            found = np.array(result.captions.columns_found)
            true += cosines[found].tolist()
            missed += int(np.sum(cosines[~found] > 0.95)) * (rounds > 1)
            assert not found.any() or rounds > 1
    assert len(true) > 15
    assert np.mean(np.array(true) > 0.6) > 0.95
    assert missed < 0.2 * len(true)


@pytest.mark.parametrize("solver", ["moment", "power", "subspace"])
def test_a_plan_foretells_what_a_pca_will_show(solver):
    parameters = PCA.Parameters(components=6, solver=solver)
    quiet, loud = (
        PCA(
            parameters,
            make_plan(
                make_study("pca", epsilon=e, analysis={"components": 6, "solver": solver}),
                Extent(457).shape((n,) * 4, (100 * n,) * 4, "subject"),
            ).shape,
        ).foretell()
        for e, n in ((16.0, 1000), (1.0, 20))
    )
    told = " ".join(str(row[0]) for row in loud.rows)
    assert "Warning" in told
    assert "would be" in told
    assert "Warning" not in " ".join(str(row[0]) for row in quiet.rows)


@pytest.mark.parametrize("truth", [-1.0, 0.0, 1.5, 2.5, 6.0])
def test_of_those_told_nineteen_of_twenty_hold_the_truth(truth: float) -> None:
    drawn = truth + np.random.default_rng(7).standard_normal(200_000)
    told = drawn[drawn > 2.0][:2000]
    ends = [selective_interval(float(value), 1.0, 2.0) for value in told]
    held = np.mean([low <= truth <= high for low, high in ends])
    assert abs(held - 0.95) < 4 * math.sqrt(0.95 * 0.05 / len(told))
    usual = np.mean(np.abs(told - truth) <= 1.96)
    assert usual < 0.93 or truth > 2.0


def test_far_beyond_the_threshold_it_is_the_usual_one() -> None:
    low, high = selective_interval(30.0, 2.0, 5.0)
    assert (low, high) == pytest.approx((30 - 1.96 * 2, 30 + 1.96 * 2), abs=1e-3)


def test_at_the_threshold_nothing_is_known_from_below() -> None:
    assert selective_interval(2.0, 1.0, 2.0)[0] == -math.inf
    assert selective_interval(2.0 + 1e-6, 1.0, 2.0)[0] == -math.inf
