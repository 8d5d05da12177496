"""The documentation as a site: it is built without a warning, and opens without a network."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.browser import browser, find_browser
from tests.support.gallery import SCRIPTS
from tests.support.html_page import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = ROOT / "build" / "site"
FETCHED = ("script", "src"), ("link", "href"), ("img", "src"), ("object", "data"), ("iframe", "src")

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def site() -> Path:
    subprocess.run(["make", "docs"], cwd=ROOT, check=True)
    return SITE


def test_every_document_and_example_has_a_page(site: Path) -> None:
    pages = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}
    documents = {
        page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")
    }
    assert documents - pages == set()
    assert {Path("gallery") / path.stem for path in SCRIPTS} - pages == set()


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Page(path.read_text(encoding="utf-8"))
        found = [value for tag, name in FETCHED for value in page.values(tag, name)]
        assert [value for value in found if re.match(r"(?:[a-z]+:)?//", value)] == [], path
    for path in site.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import )['\"]?([^'\")]+)", path.read_text("utf-8"))
        assert [url for url in found if re.match(r"(?:https?:)?//", url)] == [], path


def test_diagrams_are_pictures(site: Path) -> None:
    page = Page((site / "explanation" / "protocol.html").read_text(encoding="utf-8"))
    drawn = page.values("object", "data")
    assert len(drawn) == 4
    for name in drawn:
        assert "<svg" in (site / "explanation" / name).read_text(encoding="utf-8")


@pytest.mark.skipif(find_browser() is None, reason="no browser")
def test_it_opens_and_searches_without_a_network(site: Path) -> None:
    with browser() as tab:
        for page in ("index.html", "analyses/glm.html", f"gallery/{SCRIPTS[0].stem}.html"):
            tab.open(site / page)
            assert tab.said == []
            assert [url for url in tab.asked if not url.startswith(("file:", "data:"))] == []
        tab.open(site / "search.html", "?q=clipping")
        tab.wait("document.querySelectorAll('#search-results li').length > 5")
        assert tab.said == []


@pytest.mark.skipif(find_browser() is None, reason="no browser")
def test_nothing_around_a_page_cuts_it_on_paper(site: Path) -> None:
    """Chromium prints no more than a sheet of some boxes that scroll or stand side by side."""
    boxes = (
        "(() => { const found = []; let box = document.querySelector('article');"
        " while (box) { const style = getComputedStyle(box);"
        " found.push([style.display, style.overflowY]); box = box.parentElement; }"
        " return found; })()"
    )
    with browser() as tab:
        tab.send("Emulation.setEmulatedMedia", media="print")
        tab.open(site / "guides" / "coordinator.html")
        assert {tuple(box) for box in tab.run(boxes)} == {("block", "visible")}
