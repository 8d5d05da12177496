"""`import consortium as cc`: what there is, when it is imported, and that its examples are true."""

import ast
import doctest
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import consortium as cc
import consortium.python

MODULES = sorted(each.name for each in pkgutil.iter_modules(consortium.python.__path__))
PUBLIC = sorted(set(cc.__all__) - {"__version__"})


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_has_an_example(name: str) -> None:
    found = getattr(cc, name)
    assert found.__module__.startswith("consortium.python.")
    assert ">>>" in found.__doc__
    assert name in dir(cc)


@pytest.mark.parametrize("name", ["consortium", *(f"consortium.python.{each}" for each in MODULES)])
def test_the_examples_are_true(name: str) -> None:
    module = import_module(name)
    outcome = doctest.testmod(module)
    assert outcome.failed == 0
    own = [each for each in PUBLIC if getattr(cc, each).__module__ == name]
    assert outcome.attempted > 0 or not own


def test_a_name_that_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'consortium' has no attribute 'nothing'"):
        _ = cc.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_no_library() -> None:
    code = "import sys, consortium; print(*{name.split('.')[0] for name in sys.modules})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "sklearn", "nibabel", "pydantic"} & set(told.stdout.split())


def test_type_checkers_see_the_same_names() -> None:
    stub = Path(cc.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    told = {(alias.asname, node.module) for node in imports for alias in node.names}
    assert told == {(name, getattr(cc, name).__module__) for name in PUBLIC}
