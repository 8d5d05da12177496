"""Every remedy that a message gives is applied to the failing input, which then works."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from consortium.errors import DataError
from consortium.views.table import TableView
from site_agent.advice import Remedy
from site_agent.config import SiteConfig
from site_agent.data.doubts import doubts_about
from site_agent.data.people import everybody_in, site_tables
from site_agent.data.table_summary import summarize_tables
from site_agent.data.tsv import read_table
from site_agent.data.wording import Wording
from site_agent.policy.policy import Policy
from tests.support.cases import make_study

ROOT = Path(__file__).parents[3]
LINE = re.compile(r"write '(?P<line>.*?)' into (?P<file>site\.yaml)")
"""How a message gives a line to write."""
PLACEHOLDER = {"PATH": "raw/participants.tsv", "NAME": "Alter"}
LIMITS = {"low": 0, "high": 99}


def tables_with(folder: Path, line: str = "") -> Any:
    """Settings of a site whose site.yaml has a further line."""
    config = SiteConfig(name="north", dataset=folder / "bids", exchange="x")
    config.save(folder)
    if line:
        fields = {line.partition(":")[0]: yaml.safe_load(line.partition(":")[2])}
        kept = re.sub(rf"(?m)^{next(iter(fields))}:.*\n", "", (folder / "site.yaml").read_text())
        (folder / "site.yaml").write_text(f"{kept}{line}\n")
    return site_tables(SiteConfig.load(folder))


def write_table(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def read(folder: Path, tables: Any, **columns: dict[str, Any]) -> str:
    """Return the error of reading a view, or an empty text."""
    view = TableView.model_validate({"name": "t", "source": "table", "columns": columns})
    try:
        _, lacking = read_table(folder / "bids", view, Wording(tables=tables))
    except DataError as error:
        return str(error)
    return " ".join(each.detail for each in lacking.values())


def alike(folder: Path, line: str) -> str:
    """A column under a name that is written like the study's, with characters of YAML in it."""
    write_table(folder / "bids" / "participants.tsv", "participant_id\tAge: years\n01\t3")
    return read(folder, tables_with(folder, line), **{"age_years": LIMITS})


def unlike(folder: Path, line: str) -> str:
    """A column whose name resembles nothing."""
    write_table(folder / "bids" / "participants.tsv", "participant_id\tAlter\n01\t3")
    return read(folder, tables_with(folder, line), age=LIMITS)


def levels(folder: Path, line: str) -> str:
    """Values that are written like a level, of which one is a word of YAML's."""
    write_table(folder / "bids" / "participants.tsv", "participant_id\tsmoker\n01\tYes\n02\tNo")
    views = [
        {"name": "t", "source": "table", "columns": {"smoker": {"levels": ["yes", "no"]}}},
    ]
    study = make_study("average").model_validate(
        {
            "study": "s",
            "title": "S",
            "sites": ["north", "south", "west"],
            "participants": dict.fromkeys(["north", "south", "west"], 10),
            "features": views,
            "privacy": {"unit": "subject", "epsilon": 4, "delta": 1e-5, "colluding_sites": 1},
            "algorithm": "average",
        }
    )
    return " ".join(doubts_about(folder / "bids", study, tables_with(folder, line)))


def two_rows(folder: Path, line: str) -> str:
    """Two participants in one table whose labels differ in zeros only."""
    write_table(folder / "bids" / "participants.tsv", "participant_id\tage\n1\t3\n01\t4")
    return read(folder, tables_with(folder, line), age=LIMITS)


def two_folders(folder: Path, line: str) -> str:
    """Two participants' folders whose labels differ in zeros only."""
    for name in ("sub-1", "sub-01"):
        (folder / "bids" / name).mkdir(parents=True, exist_ok=True)
    found = everybody_in(folder / "bids", tables_with(folder, line))
    return next(iter(found.twins.values()), "")


def row_of_means(folder: Path, line: str) -> str:
    """A participant whose label looks like a row of means."""
    write_table(folder / "bids" / "participants.tsv", "participant_id\tage\n1\t3\nMin\t4")
    return read(folder, tables_with(folder, line), age=LIMITS)


def no_table(folder: Path, line: str) -> str:
    """A table of participants in the raw data set."""
    (folder / "bids" / "sub-01").mkdir(parents=True, exist_ok=True)
    write_table(folder / "raw" / "participants.tsv", "participant_id\tage\n01\t3")
    tables = tables_with(folder, line)
    return " ".join(summarize_tables(folder / "bids", make_study("average"), tables).notes)


def other_name(folder: Path, line: str) -> str:
    """A table of participants in the data set, with the ending of its export."""
    (folder / "bids" / "sub-01").mkdir(parents=True, exist_ok=True)
    write_table(folder / "bids" / "participants.csv", "participant_id,age\n01,3")
    tables = tables_with(folder, line)
    return " ".join(summarize_tables(folder / "bids", make_study("average"), tables).notes)


CASES: dict[Remedy, tuple[Callable[[Path, str], str], ...]] = {
    Remedy.COLUMN_ALIAS: (alike, unlike),
    Remedy.LEVEL_ALIAS: (levels,),
    Remedy.EXACT_LABELS: (two_rows, two_folders, row_of_means),
    Remedy.PARTICIPANTS: (no_table, other_name),
}
"""By remedy, failing inputs: each says what is wrong, given the line that was written."""


@pytest.mark.parametrize("remedy", Remedy)
def test_every_remedy_helps(remedy: Remedy, tmp_path: Path) -> None:
    for number, case in enumerate(CASES[remedy]):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = LINE.search(case(folder, ""))
        assert found is not None, case
        assert remedy.value.startswith(found["file"])
        line = found["line"]
        for word, value in PLACEHOLDER.items():
            line = line.replace(word, value)
        assert case(folder, line) == ""


def strings() -> Iterator[tuple[Path, str]]:
    """Yield the strings of the site's programs that are not docstrings, with ``…`` for values."""
    for path in sorted((ROOT / "site_agent").rglob("*.py")):
        tree = ast.parse(path.read_text())
        docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        parts = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                texts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
                yield path, "".join(map(str, texts))
            elif id(node) not in docs | parts and isinstance(node, ast.Constant):
                yield path, node.value if isinstance(node.value, str) else ""


def test_no_message_gives_a_line_to_write_but_by_a_remedy() -> None:
    """So that a new one has a case above, or the test of its case fails."""
    given = [
        (path, text)
        for path, text in strings()
        if re.search(r"into (site|policy|study)\.yaml", text) and path.name != "advice.py"
    ]
    assert given == []


FIELDS = re.compile(r"'([a-z_]+(?:\.[a-z_]+)*)' (?:in|of) (site|policy)\.yaml")


def test_every_field_that_a_message_names_is_one() -> None:
    named = [(found[1], found[2]) for _, text in strings() for found in FIELDS.finditer(text)]
    models: dict[str, Any] = {"site": SiteConfig, "policy": Policy}
    assert len(named) > 4
    assert [x for x in named if x[0].split(".")[0] not in models[x[1]].model_fields] == []


COMMANDS = re.compile(r"'(site-agent|consortium) ([a-z-]+)[ ']")


def test_every_command_that_a_message_names_is_one() -> None:
    from consortium.coordinator.cli import app as consortium
    from site_agent.cli import app as site_agent

    programs = {"site-agent": site_agent, "consortium": consortium}
    names = {name: set(typer.main.get_command(app).commands) for name, app in programs.items()}  # type: ignore[attr-defined]
    said = [text for _, text in strings() if "export" not in text]  # a file's format
    named = [(found[1], found[2]) for text in said for found in COMMANDS.finditer(text)]
    assert len(named) > 5
    assert [x for x in named if x[1] not in names[x[0]]] == []
