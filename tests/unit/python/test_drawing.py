"""Figures of results: smooth on the template, with sides, and only where a voxel exceeds noise."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

import consortium as cc
from consortium.python.drawing import _Map, _smooth
from consortium.python.result import ReleasedImage, StudyResult, data_frame
from consortium.space.grid import template_grid
from tests.support.report_samples import blob

GRID = template_grid(10.0)
PRIVACY = cc.Privacy(1.0, 1e-5, 0.2, "subject")
LEFT = (-40.0, -20.0, 20.0)


def image(values: np.ndarray) -> ReleasedImage:
    return ReleasedImage(GRID.image(values), {})


def contrast(q: np.ndarray) -> StudyResult:
    t = 8 * blob(GRID, LEFT, 15.0)
    images = {
        f"tpl_contrast-patients_stat-{s}_desc-x_statmap": image(v) for s, v in (("t", t), ("q", q))
    }
    rows = [["image", "1", 0.5, 0.1, 0.9]]
    table = data_frame(["view", "entry", "effect", "low", "high"], rows)
    return StudyResult(PRIVACY, images, {"contrastpatients": table})


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.findobj(plt.Text)]  # type: ignore[attr-defined]


def test_a_map_is_drawn_on_fine_voxels_and_never_grows() -> None:
    values = GRID.image(8 * blob(GRID, LEFT, 15.0))
    limits = np.full(GRID.shape, 3.0)
    drawn = _smooth(_Map(values, limits, ""))
    assert np.abs(drawn.affine[0, 0]) == pytest.approx(2.0)
    fine, coarse = np.asarray(drawn.dataobj), np.asarray(values.dataobj)
    assert fine.max() <= coarse.max() + 1e-6
    assert fine[fine != 0].min() >= 3.0
    assert len(np.unique(fine)) > 10 * len(np.unique(coarse[coarse >= 3.0]))
    volume = (fine != 0).sum() * 8 / ((coarse >= 3.0).sum() * 1000)
    assert 0.5 < volume < 1.5


def test_a_voxel_that_noise_hides_is_not_drawn_by_its_neighbours() -> None:
    values = GRID.image(8 * blob(GRID, LEFT, 15.0))
    assert not np.any(_smooth(_Map(values, np.full(GRID.shape, 9.0), "")).dataobj)


def test_a_contrast_is_drawn_with_its_sides_named() -> None:
    q = np.where(blob(GRID, LEFT, 15.0) > 0.5, 0.01, 1.0)
    figure = contrast(q).plot()
    said = texts(figure)
    assert any("patients: t, coloured where q ≤ 0.05" in text for text in said)
    assert said.count("L") == said.count("R") == 2
    plt.close(figure)


def test_a_contrast_without_a_discovery_draws_none() -> None:
    figure = contrast(np.ones(GRID.features)).plot()
    assert "No map exceeds the noise, so none is drawn." in texts(figure)
    plt.close(figure)
