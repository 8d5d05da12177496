"""The example on each analysis's page is short, has a picture, and prints what the page shows."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in (DOCS / "analyses").glob("*.md") if path.stem != "index")
SLOW = {"group_ica", "ica", "template_networks"}
"""Examples that simulate scans."""
MOST_LINES = 23
"""Of an example, without empty ones."""


@pytest.fixture(scope="module")
def pictures() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield importlib.import_module("example_pictures")
        sys.modules.pop("example_pictures")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_is_short_and_pictured(pictures: ModuleType, page: Path) -> None:
    code, _ = pictures.example(page)
    assert len([line for line in code.splitlines() if line]) <= MOST_LINES
    picture = f"../images/example-{page.stem}.png"
    (alternative,) = re.findall(
        rf"!\[([^\]]+)\]\({re.escape(picture)}\)", page.read_text(encoding="utf-8")
    )
    assert len(alternative.split()) > 4
    assert (page.parent / picture).is_file()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.long if page.stem in SLOW else (), id=page.stem)
        for page in PAGES
    ],
)
def test_an_example_prints_what_its_page_shows(pictures: ModuleType, page: Path) -> None:
    code, output = pictures.example(page)
    _, printed = pictures.run(code)
    assert [line.split() for line in printed.splitlines()] == [
        line.split() for line in output.splitlines()
    ]


def test_a_table_with_intervals_is_drawn(pictures: ModuleType, tmp_path: Path) -> None:
    names, _ = pictures.run(pictures.example(DOCS / "analyses" / "average.md")[0])
    pictures.draw(names["result"], tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").read_bytes()[1:4] == b"PNG"
