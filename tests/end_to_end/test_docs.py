"""The documentation says what the code does: generated parts, links, commands and studies."""

import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.exceptions import TyperException

from consortium.algorithms import REGISTRY
from consortium.coordinator.cli import app as consortium_app
from consortium.engine import closing
from consortium.engine.names import Names
from consortium.secagg import messages
from consortium.study.reader import parse_study
from site_agent.cli import app as site_app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "configs" / "README.md", *sorted(DOCS.rglob("*.md"))]
TYPED = {
    DOCS / "tutorial.md",
    DOCS / "guides" / "installing.md",
    DOCS / "guides" / "first-paper.md",
}
"""Pages whose commands a test of their own types."""
ANALYSES = DOCS / "analyses"
SECTIONS = [
    *("When to use it", "Example", "Method", "Parameters"),
    *("Sensitivity", "Uncertainty", "Limits"),
]
MOST_WORDS = 1_500
"""Of an analysis's page before its proof."""
PROGRAMS = {
    "consortium": typer.main.get_command(consortium_app),
    "site-agent": typer.main.get_command(site_app),
}

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(
    r"`((?:consortium|site_agent|flows|tests|docs|configs)/[\w./-]*\w\.\w+|"
    r"(?:consortium|site_agent|flows|tests|docs|configs)/(?:[\w-]+/)*)`"
)
INLINE_COMMAND = re.compile(r"`(consortium|site-agent) ([a-z][a-z-]*)[^`]*`")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(read(page)) if language in languages]


def prose(page: Path) -> str:
    return FENCE.sub("", read(page))


def shown_commands(page: Path) -> list[str]:
    """Lines after a prompt in a page's code blocks, without the environment's folder."""
    lines = [line for body in blocks(page, "console", "text") for line in body.splitlines()]
    return [x[2:].removeprefix(".venv/bin/") for x in lines if x.startswith("$ ")]


def parse(command: str) -> None:
    """Let a program's own parser read a command, without running it."""
    program, name, *arguments = shlex.split(command)
    PROGRAMS[program].commands[name].make_context(name, arguments)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", read(page)), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        lost = anchor and goal.suffix == ".md" and goal.is_file() and anchor not in anchors(goal)
        if not goal.exists() or lost:
            dead.append(target)
    return dead


@pytest.fixture(scope="module")
def make_docs() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield importlib.import_module("make_docs")


@pytest.fixture
def blocks_of_pages(make_docs: ModuleType) -> ModuleType:
    return importlib.import_module("generators.blocks")


def test_generated_parts_are_fresh(make_docs):
    stale = [path.name for path, text in make_docs.render(DOCS).items() if read(path) != text]
    assert stale == [], "run: python docs/make_docs.py"


def test_every_block_is_used_and_every_state_is_drawn(blocks_of_pages):
    pages = "".join(map(read, PAGES))
    named = [*blocks_of_pages.BLOCKS, *blocks_of_pages.PAGE_BLOCKS]
    assert [name for name in named if f"<!-- generated: {name} -->" not in pages] == []
    for table in (blocks_of_pages.states.PARTY, blocks_of_pages.states.HUB_ROUND):
        drawn = blocks_of_pages.diagram(table)
        for (state, event), following in table.items():
            arrow = rf"^    {state.name} --> {following.name}: (.*, )?{event}(,|$)"
            assert re.search(arrow, drawn, re.MULTILINE), (state, event)


def test_a_changed_block_is_noticed(make_docs, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- generated: losses -->\nold\n<!-- end -->\n", encoding="utf-8")
    (fresh,) = [text for path, text in make_docs.render(tmp_path).items() if path == page]
    assert "1.867" in fresh
    assert "old" not in fresh


def test_the_table_of_analyses_is_drawn_from_the_registry():
    text = read(ANALYSES / "index.md")
    drawn = text[text.index("<!-- generated: analyses -->") :].split("<!-- end -->")[0]
    assert re.findall(r"^\| \[`(\w+)`\]", drawn, re.MULTILINE) == sorted(REGISTRY)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_table_of_analyses_says_what_each_page_begins_with(name):
    drawn = read(ANALYSES / "index.md").split("<!-- generated: analyses -->")[1]
    (row,) = re.findall(rf"^\| \[`{name}`\].*$", drawn.split("<!-- end -->")[0], re.MULTILINE)
    result = row.strip("| ").split(" | ")[-1]
    assert re.fullmatch(rf"`{name}` [a-z].*[.]", result)
    assert read(ANALYSES / f"{name}.md").split("\n\n")[1].startswith(result)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_analysis_has_a_page_of_one_shape(name):
    page = read(ANALYSES / f"{name}.md")
    assert page.startswith(f"# `{name}`: ")
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert sections[:7] == SECTIONS
    assert sections[7:] in ([], ["Proof"], ["Proof", "Details"])
    before = re.sub(r"<!--.*?-->", "", page.split("\n## Proof\n")[0])
    assert len(before.split()) <= MOST_WORDS


def test_every_page_of_an_analysis_is_of_one_in_the_registry():
    assert {page.stem for page in ANALYSES.glob("*.md")} - {"index"} == set(REGISTRY)


def test_every_command_and_its_options_are_in_the_reference():
    page = read(DOCS / "reference" / "commands.md")
    for program, group in PROGRAMS.items():
        for name, command in group.commands.items():
            section = page.split(f"### `{program} {name}`\n")[1].split("\n#")[0]
            for option in (each for param in command.params for each in param.opts):
                assert option in section, (program, name, option)


def test_every_message_and_name_is_in_the_reference():
    page = read(DOCS / "reference" / "messages.md")
    bodies = [b for b in vars(messages).values() if inspect.isclass(b)]
    bodies = [b for b in bodies if issubclass(b, messages.Body) and b is not messages.Body]
    bodies += [closing.Closing, closing.Attestation, closing.Published]
    assert len(bodies) == len(re.findall(r"^### `", page, re.MULTILINE))
    for body in bodies:
        assert all(f"| `{field}` |" in page for field in body.__struct_fields__), body
    for name, _ in inspect.getmembers(Names, inspect.isfunction):
        document = inspect.getdoc(getattr(Names, name)) or ""
        content = document.removeprefix("Return the name of ").removeprefix("Return ")
        assert name.startswith("_") or content.rstrip(".") in page, name


def test_every_document_is_reached_from_the_index():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = [link.partition("#")[0] for link in LINK.findall(read(page)) if "://" not in link]
        goals = {(page.parent / target).resolve() for target in targets if target.endswith(".md")}
        waiting += [goal for goal in goals if DOCS in goal.parents and goal not in reached]
    assert set(DOCS.rglob("*.md")) - reached == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert dead_links(page) == []


def test_a_dead_link_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A heading, here\n[a](#a-heading-here) [b](#gone) [c](no.md)", "utf-8")
    assert dead_links(page) == ["#gone", "no.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    missing = [name for name in NAMED_FILE.findall(prose(page)) if not (ROOT / name).exists()]
    assert missing == []


def test_named_tests_exist():
    tests = "".join(map(read, (ROOT / "tests").rglob("*.py")))
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", prose(page))}
    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("page", [p for p in PAGES if p not in TYPED], ids=lambda page: page.name)
def test_shown_commands_are_understood(page):
    made = re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE)
    for command in shown_commands(page):
        program, *rest = shlex.split(command)
        if program == "make":
            assert set(rest) <= set(made), command
        else:
            parse(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_named_in_the_text_exist(page):
    unknown = [
        f"{program} {name}"
        for program, name in INLINE_COMMAND.findall(prose(page))
        if name not in PROGRAMS[program].commands
    ]
    assert unknown == []


@pytest.mark.parametrize(
    "command",
    [
        "consortium plan study.yaml --subject 100",
        "consortium dpia study.yaml",
        "site-agent start --folder north --twice",
    ],
)
def test_a_wrong_command_is_noticed(command):
    with pytest.raises(TyperException):
        parse(command)


def test_the_studies_shown_can_be_read():
    texts = [t for page in PAGES for t in blocks(page, "yaml") if t.startswith("study:")]
    assert texts
    for text in texts:
        parse_study(text)
