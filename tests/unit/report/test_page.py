"""The page: whole, safe and self-contained."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from consortium.base.formatting import number
from consortium.errors import OutputError
from consortium.report.brain_figures import draw_map
from consortium.report.page import first_picture, write_page
from consortium.report.sections.verdict import verdict
from consortium.space.grid import template_grid
from tests.support.html_page import Page
from tests.support.report_samples import blob, finished_maps, sample_report, sample_study

HOSTILE = "Networks <script>alert('x')</script> \" onload=\"alert(1)"
PLACES = ((0.0, -52.0, 28.0), (-8.0, -88.0, 0.0))


@pytest.fixture(scope="module")
def grid():
    return template_grid(10.0)


@pytest.fixture(scope="module")
def run(grid):
    noise = np.random.default_rng(0).standard_normal((grid.features, 2))
    blobs = np.stack([blob(grid, place, 10.0) for place in PLACES], axis=1)
    maps = blobs * [20.0, -15.0] + noise
    study = sample_study(title=HOSTILE)
    return finished_maps(study, grid, maps, numbers={"noise_deviation": 0.125})


@pytest.fixture(scope="module")
def components(run):
    return run.components.components


@pytest.fixture(scope="module")
def one(run, grid):
    """The first component alone."""
    return finished_maps(sample_study(), grid, run.result.arrays["maps"][:, :1])


@pytest.fixture(scope="module")
def source(run, tmp_path_factory):
    path = write_page(tmp_path_factory.mktemp("page"), run)
    assert path.name == "report.html"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    return text


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_sections_stand_in_one_order(run, tmp_path):
    """The summary, what was found and how to read it, what is promised, and how it was done."""
    page = write_page(tmp_path, run).read_text(encoding="utf-8")
    parts = ("findings", "reading", "privacy", "methods")
    places = [page.index("components from 244 participants")]
    places += [page.index(f'<section id="{name}"') for name in parts]
    assert places == sorted(places)


def test_every_component_has_a_name_three_pictures_and_its_peak(page, components):
    texts = page.values("img", "alt")
    assert len(texts) == 3 * len(components)
    for r in range(len(components)):
        assert f"component-{r + 1}" in page.values("article", "id")
        x, y, z = (f"{mm:.0f}".replace("-", "−") for mm in components.peaks[r])
        assert f"{x}, {y}, {z} mm" in page.text
        assert sum(f"Component {r + 1} " in words for words in texts) == 3


def test_pictures_are_whole_and_not_blank(page):
    for link in page.values("img", "src"):
        head, content = link.split(",")
        assert head == "data:image/webp;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
            colours = np.asarray(picture.convert("RGB"), dtype=int)
            # Red is drawn: the network is positive, although the second came in upside down.
            assert (colours[..., 0] - colours[..., 2] > 80).sum() > 200


def test_the_page_needs_nothing_from_outside(source, page):
    assert "script" not in page.tags
    links = page.values("a", "href") + page.values("link", "href")
    assert links
    assert all(link.startswith(("#", "viewer.html#")) for link in links)
    assert not re.search(r"(?:https?:)?//[\w-]+\.\w", source)
    assert not re.search(r"url\(|@import", source)
    targets = {value for _, name, value in page.attributes if name == "id"}
    assert {link.partition("#")[2] for link in links} <= targets


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


def test_verdict_counts_in_the_singular_too(one):
    assert verdict(one).startswith("1 component from 244 participants at 3 sites.")
    assert "with 1 colluding site," in verdict(one)
    open_to_all = replace(one, report=one.report.model_copy(update={"scheme": "none"}))
    assert "added no noise" in verdict(open_to_all)


def test_drawing_leaves_pyplot_alone_and_a_map_below_threshold_is_drawn_too(grid, components):
    before = plt.get_fignums()
    _, slices = draw_map(grid, np.zeros(grid.features), components.peaks[0], 3.0, "Nothing")
    assert plt.get_fignums() == before
    with Image.open(io.BytesIO(slices.webp)) as picture:
        colours = np.asarray(picture.convert("RGB"), dtype=int)[:, :850]  # the colour bar left out
    assert np.abs(colours[..., 0] - colours[..., 2]).max() < 40


def test_a_folder_that_is_a_file_is_an_output_error(tmp_path, one):
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="can't be written"):
        write_page(tmp_path / "out", one)


def test_what_privacy_noise_alone_could_make_is_not_drawn(tmp_path, one):
    """A voxel counts if it stands out of its map and of its privacy noise."""
    z = np.abs(one.components.components.maps[:, 0])
    noise = np.full(len(z), 0.5)
    strong = np.argsort(z)[-5:]
    noise[strong] = z[strong]  # their noise is as large as they are
    noise *= one.components.components.noise[0]
    known = replace(one, components=replace(one.components, noise=noise))
    text = write_page(tmp_path, known).read_text(encoding="utf-8")
    count = int(np.count_nonzero(z >= 3.0)) - 5
    assert f"{count} voxels" in text
    assert "z = 0.5" in text.replace("\u00a0", " ")
    assert "ends in _noise" in text


def test_nothing_is_said_of_a_noise_that_is_not_known(source):
    assert "Privacy noise in a voxel" not in source
    assert "ends in _noise" not in source


def test_the_first_picture_is_found_where_there_is_one(run, tmp_path):
    write_page(tmp_path, run)
    address = first_picture(tmp_path)
    kind, coded = address.split(",")
    assert kind == "data:image/webp;base64"
    with Image.open(io.BytesIO(base64.b64decode(coded))) as picture:
        assert picture.width == 990
    (tmp_path / "report.html").write_text("<p>Nothing was found.</p>")
    assert first_picture(tmp_path) == ""
