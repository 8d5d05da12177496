"""Every field that an analysis's texts name exists in its study files, also in shared modules."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

import consortium
from consortium.algorithms import REGISTRY

ROOT = Path(consortium.__file__).parents[1]
SHARED = ("consortium.algorithms", "consortium.kernels")
"""Modules whose texts may reach the users of any analysis that imports them."""
NAMED = re.compile(r"\banalysis\.([a-z_]+)")


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules of analyses and kernels that a module imports, itself included.

    Modules that are imported for annotations also count: they belong to the same analysis.
    """
    found = set[str]()
    ahead = [module]
    while ahead:
        each = ahead.pop()
        if each in found or not path_of(each).exists():
            continue
        found.add(each)
        for node in ast.walk(tree_of(each)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SHARED):
                names = (f"{node.module}.{name.name}" for name in node.names)
                ahead += [str(node.module), *names]
    return frozenset(found)


def path_of(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_text(encoding="utf-8"))


def fields_named_in(module: str) -> set[str]:
    """Return the fields of ``analysis`` in a module's texts, docstrings excluded."""
    tree = tree_of(module)
    described = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    texts = (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in described
    )
    return {field for text in texts for field in NAMED.findall(text)}


def fields_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_field_that_is_named_to_an_analysis_users_is_theirs(name: str) -> None:
    analysis = REGISTRY[name]
    known = fields_of(analysis.Parameters)
    modules = imported(analysis.__module__)
    assert len(modules) > 3
    strange = {each: fields_named_in(each) - known for each in modules}
    assert {each: fields for each, fields in strange.items() if fields} == {}


def test_fields_are_found_in_texts_of_imported_modules() -> None:
    modules = imported(REGISTRY["describe"].__module__)
    assert "consortium.kernels.smooth_basis" in modules
    assert {"bins"} <= {field for each in modules for field in fields_named_in(each)}
