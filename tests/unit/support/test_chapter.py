"""The simulation of section 6.5: its shapes, its truth, and its independence of order."""

import tracemalloc

import numpy as np
import pytest
import yaml

from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study
from tests.support.chapter import chapter
from tests.support.gain_index import gain_index


def test_shapes_of_the_dissertation():
    data = chapter(0, subjects=8)
    assert data.mixing.shape == (900, 20)
    assert data.all_sources().shape == (20, 2000)
    assert data.block(3).shape == (900, 250)
    assert data.block(3).dtype == np.float32
    assert np.linalg.matrix_rank(data.mixing) == 20


def test_volumes_have_mean_squared_norm_one():
    block = chapter(0, subjects=1, volumes=20_000, side=8, sources=4).block(0)
    assert (block**2).sum(axis=0).mean() == pytest.approx(1.0, abs=0.05)


def test_blocks_and_sources_tell_the_same():
    data = chapter(1, subjects=6, sites=2, volumes=10, side=6, sources=3)
    sources = data.all_sources()
    order = [*data.members(0), *data.members(1)]
    assert sorted(order) == list(range(6))
    for place, member in enumerate(order):
        part = sources[:, 10 * place : 10 * (place + 1)]
        np.testing.assert_allclose(data.block(member), data.mixing @ part, atol=1e-6)


def test_more_subjects_leave_the_first_as_they_were():
    few, many = (chapter(2, subjects=n, volumes=12, side=6, sources=3) for n in (2, 9))
    np.testing.assert_array_equal(few.mixing, many.mixing)
    np.testing.assert_array_equal(few.block(1), many.block(1))
    assert not np.array_equal(few.block(0), few.block(1))
    other = chapter(3, subjects=2, volumes=12, side=6, sources=3)
    assert not np.array_equal(few.block(1), other.block(1))


def test_noise_has_the_level_that_was_asked_for():
    quiet, noisy = (
        chapter(4, subjects=1, volumes=2000, side=10, sources=4, noise=n) for n in (0.0, 0.5)
    )
    noise = noisy.block(0) - quiet.block(0)
    assert noise.var() == pytest.approx(0.25 / 100, rel=0.05)


def test_least_squares_recovers_the_courses():
    data = chapter(5, subjects=1, noise=0.1)
    found = np.linalg.lstsq(data.mixing, data.block(0), rcond=None)[0]
    for estimate, truth in zip(found, data.sources([0]), strict=True):
        assert np.corrcoef(estimate, truth)[0, 1] > 0.98


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_site_reduces_as_its_blocks_do(noise):
    site = chapter(6, subjects=5, sites=2, volumes=15, side=6, sources=3, noise=noise).site(
        0, "subject"
    )
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((36, 4)))[0]
    expected = basis.T @ np.hstack(list(site.blocks()))
    np.testing.assert_allclose(site.reduced(basis), expected, atol=1e-5)
    assert site.reduced(basis) is site.reduced(basis.copy())
    np.testing.assert_allclose(site.reduced(-basis), -expected, atol=1e-5)
    assert site.lengths == (15, 15, 15)
    assert site.features == 36


def test_blocks_are_not_kept():
    site = chapter(7, subjects=40).site(0, "subject")
    one = 900 * 250 * 4
    tracemalloc.start()
    for _block in site.blocks():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * one


def test_sites_take_part_in_a_study():
    data = chapter(3, subjects=8, sources=4, side=8, volumes=30)
    content = {
        "study": "chapter",
        "sites": ["north", "east", "south", "west"],
        "data": {"detrend": "none", "standardize": "none"},
        "privacy": {
            "unit": "subject",
            "epsilon": 8.0,
            "delta": 1e-5,
            "scheme": "none",
            "colluding_sites": 0,
        },
        "algorithm": "ica",
        "analysis": {"components": 4},
    }
    sites = [data.site(index, "subject") for index in range(4)]
    result = Simulation(parse_study(yaml.safe_dump(content)), sites, 0).run()
    assert gain_index(result.arrays["unmixing"] @ data.mixing) < 0.2
