"""Pictures of brains."""

import io

import numpy as np
import pytest
from PIL import Image

from consortium.report.brain_figures import draw_map, draw_mosaic
from consortium.space.grid import template_grid
from tests.support.report_samples import blob


def colours(picture):
    """Red minus blue, but for the colour bar."""
    with Image.open(io.BytesIO(picture.webp)) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=int)[:, :850]
    return pixels[..., 0] - pixels[..., 2]


@pytest.mark.parametrize("sign", [1, -1])
def test_red_is_positive_and_blue_is_negative_even_where_only_one_is_there(sign):
    grid, peak = template_grid(12.0), (-4.0, -52.0, 28.0)
    values = sign * 10 * blob(grid, peak, 14.0)
    mosaic = draw_mosaic(grid, values, 3.0, "Network")
    for picture in (*draw_map(grid, values, np.array(peak), 3.0, "Network"), mosaic):
        redness = sign * colours(picture)
        assert (redness > 80).sum() > 100
        assert not (redness < -40).any()
