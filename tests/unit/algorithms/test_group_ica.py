"""Group ICA: networks are found where there are some, and only there."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places, Query, Release
from consortium.algorithms.group_ica.at_home import results_at_home
from consortium.algorithms.group_ica.forecast import AGREEMENT, FOUND, YARDSTICK
from consortium.algorithms.group_ica.result import _headline
from consortium.algorithms.subspace import (
    directions_of,
    mean_projector,
    smooth_basis,
)
from consortium.coordinator.console_tables import show_plan
from consortium.errors import StudyError
from consortium.kernels.home_posterior import ReleaseShare, combine_projectors
from consortium.kernels.moments import pack_symmetric, unpack_symmetric
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.outlook import Outlook
from consortium.study.plan import count_rounds, make_plan
from tests.support.cases import SITES, drive, make_study, plan_of, shape_of

GROUP_ICA = REGISTRY["group_ica"]
EDGE, RADIUS, NETWORKS, SPOT = 8.0, 48.0, 5, 11.0


def ball(edge):
    steps = np.arange(-RADIUS, RADIUS + edge / 2, edge)
    places = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    return places[np.linalg.norm(places, axis=1) <= RADIUS]


VOXELS, FINE = ball(EDGE), ball(5.0)
PLACES = Places(VOXELS, EDGE**3, FINE)
CENTRES = 26.0 * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]])


def true_maps(places):
    squared = np.sum((places[:, None] - CENTRES) ** 2, axis=2)
    return np.exp(-0.5 * squared / SPOT**2)


def make_brains(persons=40, *, amplitude=1.0, seed=0, places=PLACES, volumes=40):
    """Four sites whose persons share networks, or nothing if the amplitude is 0."""
    generator, maps = np.random.default_rng(seed), amplitude * true_maps(VOXELS)
    return [
        ArrayData(
            [
                (
                    maps @ generator.standard_normal((NETWORKS, volumes))
                    + 0.5 * generator.standard_normal((len(VOXELS), volumes))
                ).astype(np.float32)
                for _ in range(persons)
            ],
            places=places,
        )
        for _ in SITES
    ]


def study(epsilon=8.0, **analysis):
    return make_study("group_ica", {"components": NETWORKS, **analysis}, epsilon=epsilon)


def correlations(found, truth):
    """Best correlation of every true map with one that was found."""
    size = found.shape[1]
    return np.abs(np.corrcoef(found.T, truth.T)[:size, size:]).max(axis=0)


def mean_of_projectors(sites, parameters):
    """What a release is, without noise."""
    return unpack_symmetric(drive(GROUP_ICA, parameters, sites)[1][0].values)


def answer(matrix, deviation, seed, parameters, shape):
    """The result of a release of a matrix with noise of so large a deviation."""
    values = pack_symmetric(matrix)
    noisy = values + deviation * np.random.default_rng(seed).standard_normal(len(values))
    run = GROUP_ICA(parameters, shape).run()
    next(run)
    with pytest.raises(StopIteration) as stop:
        run.send(Release(noisy, deviation, (0, 1, 2, 3)))
    return stop.value.value


@pytest.fixture(scope="module")
def brains():
    return make_brains()


def test_networks_are_found_and_their_accuracy_is_told(brains):
    asked = study()
    result = Simulation(asked, brains, 0).run()
    assert result.numbers["found"] == NETWORKS
    assert correlations(result.arrays["maps"], true_maps(FINE)).min() > 0.85
    smooth = smooth_basis(PLACES, result.numbers["cutoff"])
    seen = smooth.evaluate(smooth.matrix.T @ true_maps(VOXELS), FINE)
    true = correlations(seen, result.arrays["maps"])
    assert result.arrays["expected"] == pytest.approx(true, abs=0.1)
    told = result.tables["components"].rows
    resolved = result.numbers["resolved"]
    assert [row[2].value for row in told] == pytest.approx(
        [row[1].value * resolved for row in told]
    )
    assert result.captions.headline == "5 networks found."
    assert all(result.images[name].fine for name in ("components", "z", "errors"))


def test_without_noise_they_are_what_a_plain_average_of_projectors_gives(brains):
    parameters = GROUP_ICA.Parameters(components=NETWORKS, cutoff=28.0, replays=10)
    shape = shape_of(brains)
    matrix = mean_of_projectors(brains, parameters)
    basis = smooth_basis(PLACES, GROUP_ICA(parameters, shape).cutoff).matrix
    expected = np.zeros_like(matrix)
    people = [block for site in brains for block in site.blocks()]
    for block in people:
        left = np.linalg.svd(basis.T @ block.astype(float), full_matrices=False)[0][:, :NETWORKS]
        expected += left @ left.T / len(people)
    assert matrix == pytest.approx(expected, abs=1e-4)
    result = answer(matrix, 0.0, 0, parameters, shape)
    assert correlations(result.arrays["maps"], true_maps(FINE)).min() > 0.98
    assert result.arrays["expected"].min() > 0.97


def test_maps_without_finer_voxels_are_on_the_study_s_own(brains):
    coarse = Places(VOXELS, EDGE**3)
    sites = [ArrayData(list(site.blocks()), places=coarse) for site in brains]
    result = Simulation(study(), sites, 0).run()
    assert result.arrays["maps"].shape == (len(VOXELS), NETWORKS)
    assert not result.images["components"].fine
    assert np.square(result.arrays["maps"]).mean(axis=0) == pytest.approx(np.ones(NETWORKS))


def test_where_there_is_no_network_nothing_is_found():
    sites = make_brains(amplitude=0.0)
    parameters = GROUP_ICA.Parameters(components="auto", cutoff=32.0, replays=10)
    matrix = mean_of_projectors(sites, parameters)
    shape = shape_of(sites)
    for deviation in (0.0, 0.01, 0.05):
        for seed in range(4):
            result = answer(matrix, deviation, seed, parameters, shape)
            assert result.numbers["found"] == 0
            assert result.captions.headline.startswith("No network was found")
            assert not any(any(images.found) for images in result.images.values())


def test_standard_errors_are_the_spread_over_repeated_runs(brains):
    parameters = GROUP_ICA.Parameters(components=NETWORKS, cutoff=36.0, replays=20, starts=3)
    shape = shape_of(brains)
    matrix = mean_of_projectors(brains, parameters)
    runs = [answer(matrix, 0.02, seed, parameters, shape) for seed in range(8)]
    first = runs[0].arrays["maps"]
    aligned = []
    for run in runs:
        found = run.arrays["maps"]
        cosines = np.corrcoef(first.T, found.T)[:NETWORKS, NETWORKS:]
        order = np.abs(cosines).argmax(axis=1)
        aligned.append(found[:, order] * np.sign(cosines[np.arange(NETWORKS), order]))
    spread = np.sqrt(np.var(aligned, axis=0, ddof=1).mean())
    told = np.sqrt(np.mean([np.square(run.arrays["errors"]).mean() for run in runs]))
    assert told == pytest.approx(spread, rel=0.2)


def test_the_plan_grows_finer_with_persons_and_epsilon(brains):
    def cutoff(epsilon, persons):
        shape = replace(shape_of(brains), subjects=(persons,) * 4, samples=(40 * persons,) * 4)
        plan = make_plan(study(epsilon), shape)
        assert plan.rounds == 1
        assert plan.epsilon <= epsilon * (1 + 1e-9)
        assert plan.analysis.computed["cutoff"] == plan.analysis.cutoff
        return plan.analysis.cutoff

    assert cutoff(4.0, 40) > cutoff(16.0, 40)
    assert cutoff(8.0, 30) > cutoff(8.0, 400)
    assert count_rounds(study(), brains[0].extent) == 1


def test_the_planned_sensitivity_is_exact(brains):
    plan = make_plan(study(), shape_of(brains))
    release = plan.stages[0].release
    assert release.bound.norm == np.sqrt(NETWORKS)
    assert release.bound.spread == pytest.approx(np.sqrt(2 * NETWORKS))
    size = plan.analysis.size
    assert release.entries == size * (size + 1) // 2
    found = plan.analysis.deviation
    assert found == pytest.approx(plan.stages[0].mechanism.noise.aggregate(), rel=1e-3)
    # Two persons whose directions are orthogonal are as far apart as two can be.
    one, other = np.zeros((12, 5)), np.zeros((12, 5))
    one[:5], other[5:10] = np.eye(5), np.eye(5)
    asked = {"components": NETWORKS, "basis": "voxels"}
    sites, query = [ArrayData([person]) for person in (one, other)], Query("", "")
    plan = plan_of("group_ica", asked, sites)
    moved = mean_projector(plan, sites[0], query, release.bound)
    moved = moved - mean_projector(plan, sites[1], query, release.bound)
    assert np.linalg.norm(moved) == pytest.approx(release.bound.sensitivity(1), rel=1e-12)


def told(asked, shape):
    return [line for (line,) in GROUP_ICA(asked.analysis, shape).foretell().rows]


def test_a_hopeless_study_is_refused_with_what_would_be_enough(brains):
    shape = shape_of(brains)
    with pytest.raises(StudyError, match=r"participants would be enough.*analysis.anyway"):
        make_plan(study(0.2), shape)
    plan = make_plan(study(0.2, anyway=True), shape)
    assert any(line.startswith("Warning") for line in told(study(0.2), plan.shape))
    result = Simulation(study(0.2, anyway=True, replays=10), brains, 0).run()
    assert result.numbers["found"] == 0


def test_what_is_said_to_be_enough_is_enough(brains):
    shape = shape_of(brains)
    with pytest.raises(StudyError) as caught:
        make_plan(study(0.2), shape)
    words = str(caught.value).split(". About ")[1]
    persons = int(words.split()[0].replace(",", ""))
    make_plan(study(0.2), replace(shape, subjects=(-(-persons // 4),) * 4))


def test_a_forecast_says_resolution_and_accuracy(brains):
    asked = study(8.0)
    plan = make_plan(asked, shape_of(brains))
    first, second, third, *_ = told(asked, plan.shape)
    assert f"{plan.analysis.cutoff:g} mm" in first
    numbers = {e.name: e for e in plan.analysis.expect()}
    assert f"about {numbers[FOUND].value:.1f} of {NETWORKS} components" in second
    assert f"{numbers[AGREEMENT].value:.2f}" in third
    assert YARDSTICK in third
    expected = numbers["expected correlation"]
    assert 0.7 <= expected.low <= expected.value <= expected.high < 1.0


def test_only_persons_are_its_unit():
    with pytest.raises(StudyError, match="Set unit: subject"):
        GROUP_ICA(
            GROUP_ICA.Parameters(), replace(shape_of(make_brains(2)), unit="timepoint")
        ).planned()


@pytest.mark.parametrize(
    ("analysis", "words"),
    [
        ({"basis": "atlas"}, "basis atlas requires an atlas"),
        ({"cutoff": 5.0}, "The cutoff must be"),
        ({"directions": 39, "cutoff": 60.0}, "must be less than the basis.s 15 maps, got 39"),
        ({"directions": 40}, "participants with 40 volumes"),
    ],
)
def test_a_basis_that_can_t_be_had_is_refused(brains, analysis, words):
    with pytest.raises(StudyError, match=words):
        GROUP_ICA(GROUP_ICA.Parameters(**analysis), shape_of(brains)).planned()


def test_regions_are_their_own_basis(brains):
    regions = [ArrayData([block[::30] for block in site.blocks()]) for site in brains]
    with pytest.raises(StudyError, match="an atlas has regions"):
        GROUP_ICA(GROUP_ICA.Parameters(basis="smooth"), shape_of(regions)).planned()
    parameters = GROUP_ICA.Parameters(components=2, replays=10)
    plan = GROUP_ICA(parameters, shape_of(regions))
    assert plan.planned()
    assert (plan.cutoff, plan.for_series) == (0.0, None)
    _, _, result = drive(GROUP_ICA, parameters, regions)
    assert result.arrays["maps"].shape[0] == len(VOXELS[::30])
    assert "whether they are networks" in result.captions.headline
    assert "out of the noise" in {row[-1] for row in result.tables["components"].rows}


def test_a_plan_prints_the_forecast(brains):
    asked = study(8.0)
    plan = make_plan(asked, shape_of(brains))
    lines = told(asked, plan.shape)
    assert Outlook(plan).as_json()["forecast"] == [{"forecast": line} for line in lines]
    console = Console(record=True, width=200, file=io.StringIO())
    show_plan(plan, console)
    assert "components found" in console.export_text()


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (5, "5 networks found."),
        (6, "found; 1 of 6 components is too"),
        (7, "2 of 7 components are"),
    ],
)
def test_the_headline_counts_those_that_are_not_found(seen, words):
    assert words in _headline(5, seen)


def test_a_course_that_all_voxels_share_is_no_network():
    generator = np.random.default_rng(3)
    sites = [
        ArrayData(
            [
                block + 3.0 * generator.standard_normal((1, block.shape[1])).astype(np.float32)
                for block in site.blocks()
            ],
            places=PLACES,
        )
        for site in make_brains(10, amplitude=0.0)
    ]
    parameters = GROUP_ICA.Parameters(components="auto", cutoff=36.0, replays=10)
    matrix, shape = mean_of_projectors(sites, parameters), shape_of(sites)
    result = answer(matrix, 0.001, 0, parameters, shape)
    assert result.numbers["seen"] == 1
    assert result.numbers["found"] == 0


def smooth_regions(networks, persons=40, volumes=40):
    """Four sites whose persons share a covariance that falls with distance, and networks on it."""
    generator = np.random.default_rng(5)
    centres = generator.uniform(-60.0, 60.0, (60, 3))
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    root, maps = np.linalg.cholesky(np.exp(-apart / 30.0)), np.zeros((60, networks))
    for number in range(networks):
        maps[6 * number : 6 * number + 6, number] = 2.0
    return [
        ArrayData(
            [
                root @ generator.standard_normal((60, volumes))
                + maps @ generator.standard_normal((networks, volumes))
                for _ in range(persons)
            ],
            region_places=centres,
        )
        for _ in SITES
    ]


def test_participants_who_share_a_smooth_covariance_alone_have_no_network():
    parameters = GROUP_ICA.Parameters(components=8, replays=10)
    for networks, deviations in ((0, (0.0, 0.01, 0.02)), (4, (0.005,))):
        sites = smooth_regions(networks)
        matrix, shape = mean_of_projectors(sites, parameters), shape_of(sites)
        for deviation in deviations:
            result = answer(matrix, deviation, 0, parameters, shape)
            assert result.numbers["seen"] > 0
            assert result.numbers["found"] == networks
            unknown = answer(matrix, deviation, 0, parameters, replace(shape, region_places=None))
            assert unknown.numbers["found"] == 0
            assert unknown.numbers["stand_out"] >= networks


def test_the_old_separation_stays(brains):
    parameters = GROUP_ICA.Parameters(
        components=NETWORKS, cutoff=36.0, replays=10, starts=3, separation="fastica"
    )
    result = answer(mean_of_projectors(brains, parameters), 0.01, 0, parameters, shape_of(brains))
    assert result.numbers["found"] == NETWORKS
    assert correlations(result.arrays["maps"], true_maps(FINE)).min() > 0.85


@pytest.mark.parametrize("gain", [1.0, 3e4])
def test_what_a_hospital_takes_off_is_what_it_sent(brains, gain):
    """Its own mean is the statistic's, whatever the scale; taken off, the others' is left."""
    plan, query = GROUP_ICA(study(cutoff=36.0).analysis, shape_of(brains)), Query("", "")
    sent = [unpack_symmetric(mean_projector(plan, each, query, plan.bound)) for each in brains]
    blocks = [gain * block for block in brains[0].blocks()]
    own = list(directions_of(blocks, plan.for_series, "keep", NETWORKS))
    found = combine_projectors(own, np.mean(sent, axis=0), ReleaseShare(40, 160, 4, 1e-6))
    assert found.own == pytest.approx(sent[0], abs=1e-6)
    others = (found.matrix - found.share * found.own) / (1.0 - found.share)
    assert others == pytest.approx(np.mean(sent[1:], axis=0), abs=1e-6)


def test_both_together_have_the_networks_at_least_as_well(brains):
    plan = make_plan(study(cutoff=36.0), shape_of(brains)).analysis
    matrix, deviation = mean_of_projectors(brains, plan.parameters), plan.deviation
    generator = np.random.default_rng(5)
    packed = pack_symmetric(matrix)
    packed = packed + deviation * generator.standard_normal(len(packed))
    own = list(directions_of(brains[0].blocks(), plan.for_series, "keep", NETWORKS))
    found = combine_projectors(own, unpack_symmetric(packed), ReleaseShare(40, 160, 4, deviation))
    release = Release(packed, deviation, (0, 1, 2, 3))
    results = results_at_home(found, release, plan)
    agreed = {
        name: correlations(result.arrays["maps"], true_maps(FINE)).mean()
        for name, result in results.items()
    }
    assert agreed["posterior"] > max(agreed["own"], agreed["release"]) - 0.02
    cutoffs = {result.numbers["cutoff"] for result in results.values()}
    assert cutoffs == {plan.cutoff}
    assert results["posterior"].numbers["found"] == NETWORKS
