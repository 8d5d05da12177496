"""Nilearn's images on the cortex go in and come out."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from nilearn.datasets import load_fsaverage
from nilearn.plotting import plot_surf_stat_map
from nilearn.surface import SurfaceImage

import consortium as cc
from consortium.errors import DataError

VERTICES = 10_242


def on_cortex(generator: np.random.Generator) -> SurfaceImage:
    """A series whose left vertices below the middle go up and down together."""
    shapes = load_fsaverage("fsaverage5")["white_matter"]
    sides = {side: generator.standard_normal((VERTICES, 24)) for side in ("left", "right")}
    low = shapes.parts["left"].coordinates[:, 2] < 0
    sides["left"][low] += 3 * generator.standard_normal(24)
    return SurfaceImage(shapes, sides)


def model(**changed: Any) -> cc.PrivatePCA:
    fields = {"data": {"mesh": "fsaverage5"}, "solver": "subspace", **changed}
    return cc.PrivatePCA(1, epsilon=50.0, delta=1e-5, **fields)


@cache
def fitted() -> cc.PrivatePCA:
    generator = np.random.default_rng(0)
    return model().fit([on_cortex(generator) for _ in range(30)])


def test_the_map_is_an_image_that_nilearn_draws() -> None:
    image = fitted().components_img_
    assert image.shape == (2 * VERTICES, 1)
    left, right = (np.abs(image.data.parts[side][:, 0]) for side in ("left", "right"))
    low = image.mesh.parts["left"].coordinates[:, 2] < 0
    assert left[low].mean() > 3 * max(left[~low].mean(), right.mean())
    figure = plot_surf_stat_map(stat_map=image, hemi="left", engine="matplotlib")
    assert len(figure.axes[0].collections) == 1


def test_courses_in_other_series_follow_the_map() -> None:
    other = on_cortex(np.random.default_rng(1))
    (course,) = fitted().transform([other])
    low = other.mesh.parts["left"].coordinates[:, 2] < 0
    mean = other.data.parts["left"][low].mean(axis=0)
    assert abs(np.corrcoef(course[:, 0], mean)[0, 1]) > 0.9


def test_a_mesh_that_is_not_named_or_not_the_images_is_refused() -> None:
    one = on_cortex(np.random.default_rng(0))
    with pytest.raises(DataError, match="name its public mesh, as data="):
        model(data=None).fit([one])
    half = SurfaceImage(one.mesh, {side: one.data.parts[side] for side in ("left", "right")})
    half.data.parts["left"] = half.data.parts["left"][:-1]
    with pytest.raises(DataError, match="vertices in the left hemisphere"):
        model().fit([half])
