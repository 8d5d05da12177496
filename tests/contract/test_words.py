"""Documents and programs use the glossary's terms, and documents keep to their lengths."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.prose_rules import marks, prose

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "reference" / "glossary.md"
FOLDERS = ("guides", "explanation", "analyses", "replication")
"""Folders of ``docs/`` whose pages are held to the glossary."""
GENERATED = ("commands", "errors", "messages", "modules", "privacy-report", "study-fields")
"""Pages of ``docs/reference/`` that are made of the programs' help, fields and errors."""
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "tutorial.md",
    *(DOCS / "reference" / f"{name}.md" for name in GENERATED),
    *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))),
]
COLUMN = "not called"
PACKAGES = (ROOT / "consortium", ROOT / "site_agent")
ROOMS = [
    *PACKAGES,
    *(file.parent for package in PACKAGES for file in sorted(package.glob("*/__init__.py"))),
]
"""Product packages, and the packages in them."""
FEWEST_WORDS = 4
"""Of a string that somebody reads; what is shorter may be a name, a column or a state."""
STORED = (
    *("CREATE TABLE", "ALTER TABLE", "INSERT INTO", "SELECT "),
    *("dataset, study, run, ", "digest = SHA-256 of"),
)
"""How strings begin that name a ledger's columns, which keep their names."""
TEMPLATES = (".j2", ".md", ".yaml")
MOST_OF_A_PAGE = {"README.md": 900} | {
    str(page.relative_to(ROOT)): 1_500
    for folder in ("guides", "explanation", "analyses")
    for page in sorted((DOCS / folder).glob("*.md"))
}
MOST_NUMBERS = 8
"""Of a paragraph or list item: more belong in a table."""
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d+(?:[.,]\d+)*")
LONGEST_SENTENCE, LONGEST_ITEM = 25, 60
"""In words, of the README, the tutorial and the guides; an item is one of a list or of a table."""
GUIDES = [ROOT / "README.md", DOCS / "tutorial.md", *sorted((DOCS / "guides").glob("*.md"))]
_NO_PROSE = re.compile(
    r"<!-- generated: .*?<!-- end -->|<!--.*?-->|^```.*?^```$|`[^`]*`|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)

_FILLED = re.compile(r"{%.*?%}|{{.*?}}|{[^{}]*}|<[^<>]*>", re.DOTALL)
"""Parts of a template or a format that stand for something else, and tags."""
_QUOTED = re.compile(r'"[^"\n]*"|`[^`]*`')

OTHERS = [
    ROOT / name for name in ("SECURITY.md", "paper.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md")
]
LONGEST_BETWEEN_STOPS = 30
"""In words, of a sentence of any page; a cell of a table may list more."""
NOT_YET = {"forecasts.md", "group_ica.md"}
"""Pages of measurements with longer sentences."""
_HEAD = re.compile(r"\A---\n.*?^---$", re.MULTILINE | re.DOTALL)
_FULL_STOP = re.compile(r"(?<=[.!?])[*)`\"]*\s+(?=[^a-z])")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NO_LINE = re.compile(
    r"<!-- generated: .*?<!-- end -->|<!--.*?-->|^```.*?^```$|^ {4}[^\n]*$|^#[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
_STOP = re.compile(r"(?<=[.!?:;])[*)`]*\s+")


def length(text: str) -> int:
    """Words of a text, which have a letter or a digit."""
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def items(page: str) -> Iterator[tuple[bool, str]]:
    """Paragraphs, list items and cells of tables of a page, and whether each is of the last two."""
    for line in _prose_lines(page):
        listed = bool(re.match(r"[-|]|\d+\. ", line))
        yield from ((listed, cell) for cell in (line.split("|") if line[:1] == "|" else [line]))


def too_long(page: str) -> list[str]:
    """Sentences and items of a page that are longer than a guide's may be."""
    long = [text for listed, text in items(page) if listed and length(text) > LONGEST_ITEM]
    sentences = (sentence for _, text in items(page) for sentence in _STOP.split(text))
    return long + [text for text in sentences if length(text) > LONGEST_SENTENCE]


def too_long_between_stops(page: str) -> list[str]:
    """Sentences outside of tables that have more words from full stop to full stop than allowed."""
    lines = [line for line in _prose_lines(_HEAD.sub("", page)) if line[:1] != "|"]
    sentences = (sentence for line in lines for sentence in _FULL_STOP.split(line))
    return [text for text in sentences if length(text) > LONGEST_BETWEEN_STOPS]


def too_many_numbers(page: str) -> list[str]:
    """Paragraphs and list items, outside of tables and code, with more numbers than allowed."""
    lines = (re.sub("`[^`]*`", "", line) for line in _prose_lines(page))
    return [x for x in lines if x[:1] != "|" and len(_NUMBER.findall(x)) > MOST_NUMBERS]


def _prose_lines(page: str) -> list[str]:
    return _LINK.sub(r"\1", _NO_LINE.sub("", page)).splitlines()


def forbidden() -> list[str]:
    """Words of the glossary's column of what a concept is not called."""
    words: list[str] = []
    place: int | None = None
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            place = None
        elif place is None:
            place = cells.index(COLUMN) if COLUMN in cells else len(cells)
        elif set(line) - set("| -") and place < len(cells):
            words += filter(None, map(str.strip, cells[place].split(",")))
    return words


def used(text: str, words: list[str]) -> list[str]:
    """Those words that a page's prose has, outside of code, links' targets and generated parts."""
    prose = " ".join(_NO_PROSE.sub(" ", text).split())
    return [word for word in words if re.search(rf"\b{re.escape(word)}\b", prose, re.IGNORECASE)]


def sentences(source: str) -> Iterator[str]:
    """Strings of a module but for docstrings, whole, with what is filled in taken out."""
    tree = ast.parse(source)
    hidden: set[ast.AST] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):  # a format comes before its parts
        if isinstance(node, ast.JoinedStr):
            hidden.update(node.values)
            parts = (part.value for part in node.values if isinstance(part, ast.Constant))
            yield " … ".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield _FILLED.sub("…", node.value)


def said(file: Path) -> Iterator[str]:
    """What a user may read of a file of a product package."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from (x for x in sentences(text) if not x.strip().startswith(STORED))
    elif file.suffix == ".js":
        yield from (x[1:-1] for x in _QUOTED.findall(text))
    elif file.suffix in TEMPLATES:
        yield _FILLED.sub("…", text)


def files(room: Path) -> list[Path]:
    """Files of a room; of a whole package only those that lie in no room of it."""
    files = room.glob("*.*") if room in PACKAGES else room.rglob("*.*")
    return sorted(file for file in files if file.suffix != ".pyc")


def wrong(file: Path, words: list[str]) -> list[tuple[str, str]]:
    """Those of the words that a file says, each with its sentence."""
    long = (text for text in said(file) if len(text.split()) >= FEWEST_WORDS)
    return [(word, text) for text in long for word in used(text, words)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_word_that_the_glossary_replaces(page: Path) -> None:
    assert used(page.read_text(encoding="utf-8"), forbidden()) == []


@pytest.fixture(scope="module")
def counts() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield importlib.import_module("word_counts")


@pytest.mark.parametrize(("page", "most"), MOST_OF_A_PAGE.items())
def test_a_page_keeps_to_its_length(counts: ModuleType, page: str, most: int) -> None:
    assert counts.words(ROOT / page).written <= most


def test_words_are_counted_by_who_wrote_them(counts: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "replication" / "page.md"
    page.parent.mkdir()
    page.write_text(
        "# One two\n\n[three](four.md), – five <!-- six -->\n\n    seven\n\n| eight |\n| --- |\n"
        "\n<!-- measured: x -->\n| nine | ten |\n<!-- end -->\n```\neleven\n```\n"
    )
    assert counts.words(page) == counts.Words(4, 0, 1, 2, 2)
    assert counts.words(page).written == 4


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_guide_has_short_sentences_and_items(page: Path) -> None:
    assert too_long(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in (*PAGES, *OTHERS)
        if page.parent.name != "reference"
        and not (page.parent.name == "replication" and page.name in NOT_YET)
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_sentence_has_at_most_thirty_words_between_full_stops(page: Path) -> None:
    assert too_long_between_stops(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", MOST_OF_A_PAGE)
def test_a_paragraph_has_at_most_eight_numbers(page: str) -> None:
    assert too_many_numbers((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_ninth_number_is_noticed_outside_of_tables_and_code() -> None:
    numbers = "1, 0.5, 2,000, 4, 5, 6, 7, 8"
    assert too_many_numbers(f"{numbers}\n\n- {numbers} `9` [a](9.md)\n\n| {numbers} | 9 |") == []
    assert len(too_many_numbers(f"{numbers}, −9\n\n- {numbers} and 9")) == 2


def test_a_sentence_with_colons_and_semicolons_is_counted_whole() -> None:
    assert len(too_long_between_stops("A: " + "word " * 15 + "; " + "word " * 15)) == 1
    assert too_long_between_stops("word " * 16 + "end. " + "Word " * 16 + "end.") == []
    assert too_long_between_stops("| " + "word " * 40 + "|") == []


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_other_documents_follow_the_rules_of_plain_language(page: Path) -> None:
    assert marks(prose(page.read_text(encoding="utf-8"))) == 0


def test_a_long_sentence_and_a_long_item_are_noticed() -> None:
    assert len(too_long("word " * 26 + "\n\n" + "word " * 25)) == 1
    assert len(too_long("- " + "A word. " * 31)) == 1
    assert len(too_long("| a | " + "A word. " * 31 + " |")) == 1
    assert too_long("A word. " * 31) == []


def test_the_column_of_every_table_is_read() -> None:
    some = {"persons", "courses", "freed of", "in earnest", "foretold", "nobody"}
    assert some <= set(forbidden())


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_program_says_no_word_that_the_glossary_replaces(room: Path) -> None:
    words = forbidden()
    assert [each for file in files(room) for each in wrong(file, words)] == []


def test_whole_sentences_of_modules_and_templates_are_read(tmp_path: Path) -> None:
    module, template = tmp_path / "a.py", tmp_path / "a.html.j2"
    module.write_text(
        '"""Persons."""\nx = 1\n"""Of persons."""\nprint(f"{x} of all per" "sons told")\n'
    )
    assert [word for word, _ in wrong(module, forbidden())] == ["persons", "told"]
    module.write_text('print("not told")\n')
    assert wrong(module, forbidden()) == []
    template.write_text(
        "{% if told %}<p id='told'>{{ told }} and sixty\nmade-up scans</p>{% endif %}"
    )
    assert [word for word, _ in wrong(template, forbidden())] == ["made-up"]


@pytest.mark.parametrize("text", ["Twenty Persons.", "A\nmade-up\nscan.", "| a | the courses |"])
def test_a_word_is_noticed_wherever_it_stands(text: str) -> None:
    assert len(used(text, forbidden())) == 1


@pytest.mark.parametrize(
    "text", ["`data.persons`", "```text\n20 persons\n```", "[a](persons.md)", "<!-- persons -->"]
)
def test_code_and_links_are_let_through(text: str) -> None:
    assert used(text, forbidden()) == []
