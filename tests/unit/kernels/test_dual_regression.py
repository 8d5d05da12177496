"""A person's maps by dual regression: their shape, their law and their scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.kernels.dual_regression import courses, fisher_connectivity, person_maps

SIZE, NETWORKS, VOLUMES = 30, 3, 25


def person(seed=0, noise=0.5):
    generator = np.random.default_rng(seed)
    templates = np.eye(SIZE, NETWORKS) + 0.2 * generator.standard_normal((SIZE, NETWORKS))
    series = templates @ generator.standard_normal((NETWORKS, VOLUMES))
    return series + noise * generator.standard_normal((SIZE, VOLUMES)), templates


def test_it_is_two_regressions_as_textbooks_have_them():
    series, templates = person()
    first = np.linalg.lstsq(templates, series, rcond=None)[0]
    first -= first.mean(axis=1, keepdims=True)
    design = (first / first.std(axis=1, keepdims=True)).T
    second = np.linalg.solve(design.T @ design, design.T @ (series - series.mean(1)[:, None]).T).T
    assert person_maps(series, templates) == pytest.approx(
        second / np.linalg.norm(second, axis=0), abs=1e-10
    )
    assert fisher_connectivity(series, templates) == pytest.approx(
        np.arctanh(np.corrcoef(first)[np.triu_indices(NETWORKS, 1)])
    )


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 5.0))
def test_every_map_is_its_template_and_something_beside_all_templates(seed, noise):
    # So that a map like its template shows nothing: noise gives one, too.
    series, templates = person(seed, noise)
    unmixed = np.linalg.pinv(templates) @ person_maps(series, templates)
    assert unmixed == pytest.approx(np.diag(np.diag(unmixed)), abs=1e-9)
    assert (np.diag(unmixed) > 0).all()


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.floats(-300, 300), min_size=SIZE, max_size=SIZE),
    st.integers(1, 40),
)
def test_maps_have_norm_one_or_zero_whatever_the_scales(seed, decades, volumes):
    generator = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        series = generator.standard_normal((SIZE, volumes)) * 10.0 ** np.array(decades)[:, None]
        maps = person_maps(series, person()[1])
    norms = np.linalg.norm(maps, axis=0)
    assert np.all((norms == 0) | (np.abs(norms - 1) < 1e-12))


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_who_has_no_course_has_no_map(value):
    series = np.full((SIZE, VOLUMES), value)
    with np.errstate(all="ignore"):
        assert not courses(series, person()[1]).any()
        assert not person_maps(series, person()[1]).any()
        assert not fisher_connectivity(series, person()[1]).any()


def test_networks_that_go_together_have_a_finite_connectivity():
    series, templates = person(noise=0.0)
    alike = templates @ np.tile(series[:1], (NETWORKS, 1))
    found = fisher_connectivity(alike, templates)
    assert np.isfinite(found).all()
    assert (found > 5).all()
