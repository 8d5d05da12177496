"""A field is documented below itself, once, where whoever changes it sees the words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("consortium", "site_agent", "flows", "relay/cape_relay", "benchmarks")
SECTION = re.compile(r"\n(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n\w+\n---|\Z)", re.DOTALL)
ENTRY = re.compile(r"^(\w[\w, ]*)", re.MULTILINE)


def _listed_fields(source: str) -> Iterator[str]:
    """Fields that the docstring of their class lists."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and (found := SECTION.search(_document(node))):
            fields = {each.target.id for each in node.body if _is_field(each)}
            names = {name for row in ENTRY.findall(found[1]) for name in re.findall(r"\w+", row)}
            yield from (f"{node.name}.{name}" for name in sorted(fields & names))


def _document(node: ast.ClassDef) -> str:
    return ast.get_docstring(node) or ""


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_field_is_documented_below_itself(package):
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in sorted((ROOT / package).rglob("*.py"))
        if file.parent != ROOT / "consortium/python"  # of which the reference prints tables
        for name in _listed_fields(file.read_text(encoding="utf-8"))
    }
    assert not found


def test_a_list_of_fields_is_seen():
    document = "A share.\\n\\n    Parameters\\n    ----------\\n    at, of : int\\n    "
    source = f'class Share:\n    """{document}"""\n'
    assert list(_listed_fields(source + "    of: int\n")) == ["Share.of"]
