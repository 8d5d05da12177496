"""One public name, one thing: a reader who looks a function or class up finds it once."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("consortium", "site_agent", "flows")
ANALYSIS = "the part that every analysis has in a module of its own"
VIEW = "the part that every kind of view has in a module of its own"
WANTED = {
    "expect": ANALYSIS,
    "make_result": ANALYSIS,
    "draw": VIEW,
    "person": VIEW,
    "write": VIEW,
    "section": "a part of the report's page, one a module",
    "main": "a program's beginning",
    "Release": "what an analysis is sent; and a message, whose class is its word in errors",
}
"""Names that several modules define on purpose, and why."""


def _definitions() -> dict[str, list[str]]:
    """Modules that define each public function or class at their top."""
    found = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if file.parent.name != "commands":  # a command is called as people type it
                for name in _public(file):
                    found[name].append(str(file.relative_to(ROOT)))
    return found


def _public(file: Path) -> Iterator[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_public_function_or_class_is_defined_under_one_accidental_name_twice() -> None:
    twice = {name: files for name, files in _definitions().items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in WANTED} == {}


def test_every_name_that_is_wanted_twice_is_defined_twice() -> None:
    found = _definitions()
    assert [name for name in WANTED if len(found[name]) < 2] == []
