"""Pages in a real browser without a network: by keyboard, for screen readers, and in time."""

import json
import shutil
import subprocess
import tarfile

import numpy as np
import pytest

from consortium.report.comparison import read_outcome
from consortium.report.comparison_page import write_comparison
from consortium.report.outputs import write_outputs
from consortium.space.grid import template_grid
from tests.support.browser import browser, find_browser
from tests.support.report_samples import blob, finished_maps, sample_study
from tests.support.site_pages import hostile_page

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_browser() is None, reason="needs a browser of Chromium's family"),
]
AXE = "axe-core@4.14.1"
MANY = 100
AT_MOST = 1.0
"""Seconds of the page's own work until it is drawn; the clock would count this machine's others."""


def written(folder, many, edge):
    grid = template_grid(edge)
    rng = np.random.default_rng(0)
    places = grid.coordinates[rng.integers(0, grid.features, many)]
    maps = np.stack([30 * blob(grid, tuple(place), 12.0) for place in places], axis=1)
    write_outputs(
        folder, finished_maps(sample_study(), grid, maps + rng.standard_normal(maps.shape))
    )
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = written(tmp_path_factory.mktemp("three"), 3, 10.0)
    both = read_outcome(folder)
    write_comparison(folder, both, both)
    shutil.copy(hostile_page(tmp_path_factory.mktemp("site")), folder)
    return folder


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The accessibility engine, from npm; its licence (MPL-2.0) stays out of this package."""
    npm, place = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("axe-core comes from npm")
    command = [npm, "pack", AXE, "--silent", "--pack-destination", place]
    if subprocess.run(command, capture_output=True, timeout=120).returncode:
        pytest.skip("npm's registry can't be reached")
    (packed,) = place.glob("*.tgz")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


@pytest.fixture(scope="module")
def tab():
    with browser() as tab:
        yield tab


def ready(tab, folder, fragment="component-1"):
    tab.open(folder / "viewer.html", f"#{fragment}")
    tab.wait(f"document.body.dataset.shown === '{fragment}'")


@pytest.mark.parametrize("name", ["report.html", "viewer.html", "comparison.html", "site.html"])
def test_no_page_has_a_barrier(tab, folder, axe, name):
    tab.open(folder / name)
    if name == "viewer.html":
        ready(tab, folder)
    opened = "document.querySelectorAll('details').forEach((each) => { each.open = true; });"
    style = "'<style>.card { content-visibility: visible !important }</style>'"
    seen = f"document.head.insertAdjacentHTML('beforeend', {style});"
    tab.run(f"{opened}{seen}{axe};0")
    found = json.loads(
        tab.run(
            "axe.run().then((all) => JSON.stringify([all.passes.length, "
            "all.violations.map((each) => [each.id, each.nodes.map((node) => node.html)])]))"
        )
    )
    assert found[0] > 20  # it did look
    assert found[1] == []
    assert tab.said == []


def test_the_engine_finds_a_barrier_that_is_there(tab, folder, axe):
    tab.open(folder / "report.html")
    tab.run("document.querySelector('img').removeAttribute('alt')")
    tab.run(f"{axe};0")
    told = tab.run("axe.run().then((all) => all.violations.map((each) => each.id))")
    assert "image-alt" in told


def test_the_viewer_is_used_by_keyboard_alone(tab, folder):
    ready(tab, folder)
    before = float(tab.run("document.getElementById('threshold').value"))
    tab.run("document.getElementById('map').focus()")
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.id") == "threshold"
    for _ in range(20):
        tab.press("ArrowRight", 39)
    after = float(tab.run("document.getElementById('threshold').value"))
    assert after > before
    assert tab.run("document.getElementById('told-threshold').textContent").startswith("z ≥ ")
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.id") == "x"
    tab.press("ArrowUp", 38)
    here = tab.run("document.getElementById('told').textContent")
    for _ in range(3):
        tab.press("Tab", 9)
    assert tab.run("document.activeElement.id") == "peak"
    tab.press("Enter", 13)
    assert tab.run("document.getElementById('told').textContent") != here


def test_the_viewer_tells_the_peak_s_value_and_follows_the_page_s_links(tab, folder):
    ready(tab, folder, "component-2")
    assert tab.run("document.getElementById('told').textContent").startswith("Component 2 at")
    assert "not coloured" not in tab.run("document.getElementById('told').textContent")
    tab.run("location.hash = 'component-3'")
    tab.wait("document.body.dataset.shown === 'component-3'")
    assert tab.run("document.getElementById('map').value") == "2"


def test_nothing_is_asked_of_any_server(tab, folder):
    ready(tab, folder)
    assert [url for url in tab.asked if not url.startswith(("file://", "data:", "blob:"))] == []
    assert tab.said == []


def test_a_page_of_a_hundred_components_opens_in_under_a_second(tab, tmp_path):
    page = written(tmp_path, MANY, 8.0) / "report.html"
    spent = []
    for _ in range(3):
        tab.send("Performance.enable", timeDomain="threadTicks")
        tab.open(page)
        told = tab.send("Performance.getMetrics")["metrics"]
        spent.append(next(each["value"] for each in told if each["name"] == "ThreadTime"))
        tab.send("Performance.disable")
    assert min(spent) < AT_MOST
    assert tab.run("document.querySelectorAll('article').length") == MANY
