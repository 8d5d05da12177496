"""What the package declares: dependencies that are imported, and what a stranger looks for."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import yaml

from consortium import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"consortium", "flows", "site_agent"}
MODULES = {
    "cape-relay": "cape_relay",
    "dp-accounting": "dp_accounting",
    "jinja2": "jinja2",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
"""Import names that are not the distribution's own."""
PINS = {"whenever"}
"""Declared for Prefect's sake alone."""


def _declared() -> set[str]:
    extras = PROJECT["optional-dependencies"]
    shipped = [
        each for name in extras if name not in ("dev", "bench", "docs") for each in extras[name]
    ]
    names = [
        re.split(r"[<>=\[ ]", each)[0].lower() for each in (*PROJECT["dependencies"], *shipped)
    ]
    return {MODULES.get(name, name) for name in names if name not in PINS}


def _imported() -> set[str]:
    found: set[str] = set()
    for path in (path for room in OWN for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - OWN - set(sys.stdlib_module_names)


def test_what_is_imported_is_declared_and_the_other_way_round() -> None:
    assert _imported() == _declared()


def test_a_stranger_finds_licence_changes_and_how_to_report() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == __version__
    assert citation["license"] == PROJECT["license"]
    for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"):
        assert (ROOT / name).is_file(), name
    assert (ROOT / ".github/workflows/test.yaml").is_file()
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"| {__version__.rpartition('.')[0]}, the newest release | yes |" in security


def test_the_paper_has_the_citations_authors_and_every_reference() -> None:
    text = (ROOT / "paper.md").read_text(encoding="utf-8")
    head = yaml.safe_load(text.split("---")[1])
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = [each["name"] for each in citation["authors"]]
    assert [each["name"] for each in head["authors"]] == authors
    named = set(re.findall(r"@(\w+)", text))
    listed = re.findall(r"^@\w+\{(\w+),$", (ROOT / head["bibliography"]).read_text("utf-8"), re.M)
    assert named == set(listed)
    assert len(listed) == len(set(listed)) > 0


def test_all_lists_of_what_is_installed_are_looked_at_every_week() -> None:
    path = ROOT / ".github" / "workflows" / "dependencies.yaml"
    job = yaml.safe_load(path.read_text(encoding="utf-8"))
    minute, hour, day, month, weekday = job[True]["schedule"][0]["cron"].split()  # YAML's "on"
    assert (day, month) == ("*", "*")
    assert all(each.isdigit() for each in (minute, hour, weekday))
    lists = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("requirements*.lock")}
    assert set(job["jobs"]["audit"]["strategy"]["matrix"]["list"]) == lists
