"""The page: whole, safe and self-contained."""

from __future__ import annotations

import base64
import io
import re
from datetime import date

import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from consortium.errors import OutputError
from consortium.formatting import number
from consortium.report.brain_figures import draw_components
from consortium.report.components import tidy_components
from consortium.report.page import write_page
from consortium.report.prose import verdict
from consortium.space.grid import template_grid
from tests.support.html_page import Page
from tests.support.report_samples import blob, sample_report, sample_study

HOSTILE = "Networks <script>alert('x')</script> \" onload=\"alert(1)"
PLACES = ((0.0, -52.0, 28.0), (-8.0, -88.0, 0.0))
DAY = date(2026, 11, 1)


@pytest.fixture(scope="module")
def grid():
    return template_grid(10.0)


@pytest.fixture(scope="module")
def components(grid):
    noise = np.random.default_rng(0).standard_normal((grid.features, 2))
    blobs = np.stack([blob(grid, place, 10.0) for place in PLACES], axis=1)
    return tidy_components(blobs * [20.0, -15.0] + noise, grid)


@pytest.fixture(scope="module")
def source(grid, components, tmp_path_factory):
    study = sample_study(title=HOSTILE)
    seen = []
    path = write_page(
        tmp_path_factory.mktemp("page"),
        study,
        grid,
        components,
        sample_report(study),
        numbers={"noise_deviation": 0.125},
        day=DAY,
        watch=seen.append,
    )
    assert path.name == "report.html"
    assert seen == [1, 2]
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_every_component_has_a_name_two_pictures_and_its_peak(page, components):
    texts = page.values("img", "alt")
    assert len(texts) == 2 * len(components)
    for r in range(len(components)):
        assert f"component-{r + 1}" in page.values("article", "id")
        x, y, z = (f"{mm:.0f}".replace("-", "−") for mm in components.peaks[r])
        assert f"{x}, {y}, {z} mm" in page.text
        assert sum(f"Component {r + 1} " in words for words in texts) == 2


def test_pictures_are_whole_and_not_blank(page):
    for link in page.values("img", "src"):
        head, content = link.split(",")
        assert head == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
            colours = np.asarray(picture.convert("RGB"), dtype=int)
            # Red is drawn: the network is positive, although the second came in upside down.
            assert (colours[..., 0] - colours[..., 2] > 80).sum() > 200


def test_the_page_needs_nothing_from_outside(source, page):
    assert "script" not in page.tags
    links = page.values("a", "href") + page.values("link", "href")
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"(?:https?:)?//[\w-]+\.\w", source)
    assert not re.search(r"url\(|@import", source)
    targets = {value for _, name, value in page.attributes if name == "id"}
    assert {link[1:] for link in links} <= targets


def test_a_hostile_title_is_only_text(page):
    assert HOSTILE in page.text
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_figures_of_the_report_are_on_the_page(page):
    report = sample_report(sample_study())
    for guarantee in (report.guarantees.coalition, report.guarantees.outsider):
        assert f"ε\u00a0=\u00a0{number(guarantee.epsilon)}" in page.text
    assert "1 November 2026" in page.text
    for site in report.sites:
        assert site.name in page.text
    assert page.text.count("mean_volume") == len(report.releases)
    assert "0.125" in page.text
    assert page.values("html", "lang") == ["en"]


def test_verdict_counts_in_the_singular_too(grid, components):
    report = sample_report(sample_study())
    one = tidy_components(components.maps[:, :1], grid)
    assert verdict(one, report).startswith("1 component from 244 persons at 3 sites.")
    assert "with 1 colluding site," in verdict(one, report)
    assert "added no noise" in verdict(one, report.model_copy(update={"scheme": "none"}))


def test_drawing_leaves_pyplot_alone_and_a_map_below_threshold_is_drawn_too(grid, components):
    before = plt.get_fignums()
    flat = np.zeros((grid.features, 1))
    (pictures,) = draw_components(grid, flat, components.peaks[:1], 3.0)
    assert plt.get_fignums() == before
    with Image.open(io.BytesIO(pictures.slices)) as picture:
        colours = np.asarray(picture.convert("RGB"), dtype=int)[:, :850]  # the colour bar left out
    assert np.abs(colours[..., 0] - colours[..., 2]).max() < 40


def test_a_folder_that_is_a_file_is_an_output_error(tmp_path, grid, components):
    (tmp_path / "out").write_text("")
    one = tidy_components(components.maps[:, :1], grid)
    report = sample_report(sample_study())
    with pytest.raises(OutputError, match="can't be written"):
        write_page(tmp_path / "out", sample_study(), grid, one, report, numbers={}, day=DAY)


def test_what_privacy_noise_alone_could_make_is_not_drawn(tmp_path, grid, components):
    """A voxel counts if it stands out of its map and of its privacy noise."""
    study = sample_study()
    one = tidy_components(components.maps[:, :1], grid)
    z = np.abs(one.maps[:, 0])
    noise = np.full((grid.features, 1), 0.5)
    strong = np.argsort(z)[-5:]
    noise[strong] = z[strong, None]  # their noise is as large as they are
    path = write_page(
        tmp_path, study, grid, one, sample_report(study), numbers={}, day=DAY, noise=noise
    )
    text = path.read_text(encoding="utf-8")
    count = int(np.count_nonzero(z >= 3.0)) - 5
    assert f"{count} voxels" in text
    assert "z = 0.5" in text
    assert "ends in _noise" in text


def test_nothing_is_said_of_a_noise_that_is_not_known(source):
    assert "Privacy noise in a voxel" not in source
    assert "ends in _noise" not in source
