"""Order, sign and scale of components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import median_abs_deviation, skew

from consortium.errors import DataError
from consortium.report.finished import heavier_tail, robust_z, tidy_components
from tests.support.report_samples import blob, box_grid

GRID = box_grid()
# Few values, so that ties of variance, of skewness and of medians are met.
MAPS = arrays(
    np.float64,
    st.tuples(st.just(GRID.features), st.integers(1, 4)),
    elements=st.one_of(
        st.sampled_from([0.0, 1.0, -1.0, 2.0]),
        st.floats(-1e3, 1e3, width=32, allow_subnormal=False),
    ),
    fill=st.sampled_from([0.0, 0.5, -3.0]),
)


@given(maps=MAPS, data=st.data())
def test_incoming_order_and_signs_do_not_matter(maps, data):
    count = maps.shape[1]
    order = data.draw(st.permutations(range(count)))
    signs = data.draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=count, max_size=count))
    one = tidy_components(maps, GRID)
    other = tidy_components(maps[:, order] * np.array(signs), GRID)
    assert one.maps.tobytes() == other.maps.tobytes()
    assert one.shares.tobytes() == other.shares.tobytes()
    assert one.peaks.tobytes() == other.peaks.tobytes()
    assert one.noise.tobytes() == other.noise.tobytes()


@given(maps=MAPS)
def test_order_and_signs_lead_back_to_the_incoming_maps(maps):
    tidy = tidy_components(maps, GRID)
    signed = maps[:, list(tidy.order)] * np.array(tidy.signs)
    restored = tidy.maps * tidy.noise + np.median(signed, axis=0)
    flat = np.ptp(signed, axis=0) == 0
    assert np.allclose(restored[:, ~flat], signed[:, ~flat], rtol=1e-9, atol=1e-9)
    assert (tidy.maps[:, flat] == 0).all()
    assert np.isfinite(tidy.maps).all()


@given(maps=MAPS)
def test_shares_fall_and_add_up_to_one(maps):
    shares = tidy_components(maps, GRID).shares
    assert (np.diff(shares) <= 0).all()
    assert shares.sum() == pytest.approx(1.0 if maps.any() else 0.0)


def test_shares_are_those_of_the_sums_of_squares():
    maps = np.random.default_rng(0).standard_normal((GRID.features, 3)) * [1, 3, 2]
    energy = (maps**2).sum(axis=0)
    tidy = tidy_components(maps, GRID)
    assert tidy.order == (1, 2, 0)
    assert np.allclose(tidy.shares, energy[[1, 2, 0]] / energy.sum())


def test_given_variances_decide_over_the_sums_of_squares():
    maps = np.random.default_rng(0).standard_normal((GRID.features, 3)) * [1, 3, 2]
    tidy = tidy_components(maps, GRID, np.array([5.0, 1.0, 4.0]))
    assert tidy.order == (0, 2, 1)
    assert np.allclose(tidy.shares, [0.5, 0.4, 0.1])


def test_a_flipped_network_is_turned_up_and_its_peak_found():
    generator = np.random.default_rng(1)
    centre = tuple(float(mm) for mm in GRID.coordinates[400])
    noise = generator.standard_normal(GRID.features)
    tidy = tidy_components((-8 * blob(GRID, centre, 5.0) + 0.5 * noise)[:, None], GRID)
    assert tidy.signs == (-1,)
    assert np.linalg.norm(tidy.peaks[0] - centre) <= 4.0
    assert tidy.heights[0] == tidy.maps.max() > 8


def test_noise_voxels_of_a_network_have_unit_spread():
    generator = np.random.default_rng(2)
    network = blob(GRID, (0.0, 0.0, 4.0), 3.0)
    outside = network < 1e-3
    scores, _ = robust_z(50 * network + 0.03 * generator.standard_normal(GRID.features))
    assert outside.mean() > 0.5
    # With this network the plain standard deviation would be several times too large.
    assert np.std(scores[outside]) == pytest.approx(1.0, abs=0.25)
    assert scores.std() > 10


def test_noise_floor_is_scipys():
    values = np.random.default_rng(3).standard_normal(1000) * 7 + 2
    scores, noise = robust_z(values)
    assert noise == pytest.approx(median_abs_deviation(values, scale="normal"), rel=1e-4)
    assert np.allclose(scores, (values - np.median(values)) / noise)


def test_a_sparse_map_is_scaled_by_its_standard_deviation():
    values = np.zeros(100)
    values[:10] = 3.0
    scores, noise = robust_z(values)
    assert noise == pytest.approx(values.std())
    assert scores.max() == pytest.approx(3.0 / values.std())


def test_sign_follows_the_skewness():
    values = np.random.default_rng(4).gamma(2.0, size=500)
    assert skew(values) > 0
    assert heavier_tail(values) == 1
    assert heavier_tail(-values) == -1


def test_without_skewness_the_first_of_the_largest_values_is_positive():
    assert heavier_tail(np.array([-2.0, 1.0, -1.0, 2.0])) == -1
    assert heavier_tail(np.array([2.0, -1.0, 1.0, -2.0])) == 1


def test_what_does_not_fit_is_refused():
    good = np.ones((GRID.features, 2))
    for maps in (good[:-1], good[:, 0], good[:, :0]):
        with pytest.raises(DataError, match="fit a grid"):
            tidy_components(maps, GRID)
    with pytest.raises(DataError, match="not finite"):
        tidy_components(good * np.nan, GRID)
    with pytest.raises(DataError, match="one for each map"):
        tidy_components(good, GRID, np.ones(3))
    with pytest.raises(DataError, match="negative"):
        tidy_components(good, GRID, np.array([1.0, -1.0]))
