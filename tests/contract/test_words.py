"""Documents use the glossary's terms: no word that it says a concept is not called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "reference" / "glossary.md"
FOLDERS = ("guides", "explanation")
"""Folders of ``docs/`` whose pages are held to the glossary."""
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "tutorial.md",
    *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))),
]
COLUMN = "not called"
_NO_PROSE = re.compile(
    r"<!-- generated: .*?<!-- end -->|<!--.*?-->|^```.*?^```$|`[^`]*`|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)


def forbidden() -> list[str]:
    """Words of the glossary's column of what a concept is not called."""
    words: list[str] = []
    place: int | None = None
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            place = None
        elif place is None:
            place = cells.index(COLUMN)
        elif set(line) - set("| -"):
            words += filter(None, map(str.strip, cells[place].split(",")))
    return words


def used(text: str, words: list[str]) -> list[str]:
    """Those words that a page's prose has, outside of code, links' targets and generated parts."""
    prose = " ".join(_NO_PROSE.sub(" ", text).split())
    return [word for word in words if re.search(rf"\b{re.escape(word)}\b", prose, re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_word_that_the_glossary_replaces(page: Path) -> None:
    assert used(page.read_text(encoding="utf-8"), forbidden()) == []


def test_the_column_of_every_table_is_read() -> None:
    some = {"persons", "courses", "freed of", "in earnest", "foretold", "nobody"}
    assert some <= set(forbidden())


@pytest.mark.parametrize("text", ["Twenty Persons.", "A\nmade-up\nscan.", "| a | the courses |"])
def test_a_word_is_noticed_wherever_it_stands(text: str) -> None:
    assert len(used(text, forbidden())) == 1


@pytest.mark.parametrize(
    "text", ["`data.persons`", "```text\n20 persons\n```", "[a](persons.md)", "<!-- persons -->"]
)
def test_code_and_links_are_let_through(text: str) -> None:
    assert used(text, forbidden()) == []
