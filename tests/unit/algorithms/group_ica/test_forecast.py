"""The forecast of networks, and the result that finds them, agree."""

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Release, Shape
from consortium.algorithms.group_ica import forecast, result
from consortium.algorithms.group_ica.forecast import (
    forecast_networks,
    forecast_sentences,
    is_finer_than_waves,
    is_hopeless,
)
from consortium.algorithms.shape import Places
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.projector_forecast import usual_projector

SIZE, KEPT, PERSONS = 60, 6, 300
PLACES = 60.0 * np.random.default_rng(2).uniform(-1.0, 1.0, (SIZE, 3))


def plan(edge, *, persons=PERSONS, places=None, **asked):
    """Return a plan whose noise has so large a spectral norm."""
    parameters = REGISTRY["group_ica"].Parameters(
        directions=KEPT, components=KEPT, replays=10, **asked
    )
    bare = Shape(SIZE, (persons,), (100 * persons,), "subject", region_places=places)
    noise = edge / np.sqrt(2 * SIZE) * persons / np.sqrt(2 * KEPT)
    return REGISTRY["group_ica"](
        parameters, Shape(**{**vars(bare), "noise": noise, "region_places": places})
    )


def test_the_forecast_and_the_result_find_networks_by_one_function():
    assert forecast.separate_release is result.separate_release


@pytest.mark.parametrize("edge", [0.15, 0.5])
def test_as_many_networks_are_forecast_as_are_found_in_usual_participants(edge):
    planned = plan(edge, places=PLACES)
    assert SymmetricNoise(SIZE, planned.deviation).edge == pytest.approx(edge)
    found = []
    for seed in range(4):
        generator = np.random.default_rng(100 + seed)
        truth = usual_projector(KEPT, SIZE, generator)
        noise = SymmetricNoise(SIZE, planned.deviation).draw(generator)
        values = pack_symmetric(truth + noise)
        found.append(result.make_result(Release(values, planned.deviation), planned))
    mean = np.mean([each.numbers["found"] for each in found])
    assert forecast_networks(planned).found == pytest.approx(mean, abs=2.0)


def test_the_forecast_names_the_comparison_that_it_leaves_out():
    """Smooth noise needs places, which the forecast's networks do not have."""
    without, with_places = (
        " ".join(forecast_sentences(plan(0.3, places=each))) for each in (None, PLACES)
    )
    assert "smooth noise" in with_places
    assert "smooth noise" not in without


def test_more_noise_or_a_higher_threshold_find_fewer():
    forecasts = [forecast_networks(plan(edge)) for edge in (0.1, 0.3, 0.6, 1.2)]
    counts = [each.found for each in forecasts]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > KEPT - 2
    assert counts[-1] < 1
    agreed = [each.agreement for each in forecasts]
    assert agreed == sorted(agreed, reverse=True)
    for each in forecasts:
        assert all(0.7 <= value <= 1.0 for value in each.expected)
    higher = forecast_networks(plan(0.3, least=0.85))
    assert higher.found < counts[1]
    assert all(value >= 0.85 for value in higher.expected)


def test_a_study_that_finds_fewer_than_two_is_hopeless():
    assert is_hopeless(plan(1.2))
    assert not is_hopeless(plan(0.1))


def test_usual_participants_share_as_many_directions_as_each_has():
    matrix = usual_projector(KEPT, SIZE, np.random.default_rng(0))
    values = np.linalg.eigvalsh(matrix)
    assert matrix == pytest.approx(matrix.T)
    assert values.sum() == pytest.approx(KEPT, rel=0.1)
    assert values.min() > -1e-9
    assert values.max() == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("edge", "cutoff", "finer"), [(2.0, 22.0, True), (2.0, 16.0, False), (4.0, 22.0, False)]
)
def test_a_study_is_told_that_its_voxels_are_finer_than_its_waves(edge, cutoff, finer):
    steps = np.arange(-30.0, 30.0, edge)
    places = Places(np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3), edge**3)
    shape = Shape(len(places.coordinates), (300,), (30_000,), "subject", places=places, noise=0.01)
    parameters = REGISTRY["group_ica"].Parameters(directions=5, components=5, cutoff=cutoff)
    planned = REGISTRY["group_ica"](parameters, shape)
    assert planned.cutoff == cutoff
    assert is_finer_than_waves(planned) is finer
    assert ("data.resolution: 4" in " ".join(forecast_sentences(planned))) is finer
