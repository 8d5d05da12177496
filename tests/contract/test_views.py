"""What every kind of view must have, over the registries; nothing else asks which kind one is."""

import ast
import inspect
from pathlib import Path
from typing import get_args

import pytest

import consortium.report.views
import consortium.views
from consortium.report.views import REPORTS, ViewReport
from consortium.views import VIEWS, AnyView, BaseView
from site_agent.loading.feature_vectors import READERS

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for package in ("consortium", "site_agent", "flows")
    for path in sorted((ROOT / package).rglob("*.py"))
]


def test_every_kind_of_view_is_in_every_registry():
    assert set(VIEWS) == set(REPORTS) == set(READERS)
    assert list(VIEWS.values()) == list(get_args(AnyView))


@pytest.mark.parametrize("source", VIEWS)
def test_a_kind_is_two_modules_of_one_name_and_tells_all_that_is_asked(source):
    kind = VIEWS[source]
    assert issubclass(kind, BaseView)
    assert not inspect.isabstract(kind)
    assert kind.__module__ == f"consortium.views.{source}"
    module = REPORTS[source]
    assert module.__name__ == f"consortium.report.views.{source}"
    assert isinstance(module.READING, str)
    for name in ("draw", "write"):
        wanted = inspect.signature(getattr(ViewReport, name)).parameters
        assert list(inspect.signature(getattr(module, name)).parameters) == list(wanted)[1:]


def test_registries_hold_no_kind_without_its_modules():
    for package, helpers in (
        (consortium.views, {"base", "column", "meshes", "regions"}),
        (consortium.report.views, {"axes", "edges"}),
    ):
        modules = {path.stem for path in Path(package.__path__[0]).glob("*.py")}
        assert modules - helpers - {"__init__"} == set(VIEWS)


def questions(text):
    """Lines that ask of which kind a view is."""
    names = {kind.__name__ for kind in VIEWS.values()} | set(VIEWS)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "type"):
            asked = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if asked & names:
                yield node.lineno
        elif isinstance(node, ast.Compare | ast.MatchClass):
            parts = ast.walk(node)
            if any(isinstance(n, ast.Attribute) and n.attr == "source" for n in parts):
                yield node.lineno


def test_nothing_asks_of_which_kind_a_view_is():
    found = {path: list(questions(path.read_text(encoding="utf-8"))) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(view, EegView)",
        "isinstance(view.view, (TableView, int))",
        "view.source == 'fmri'",
    ],
)
def test_such_a_question_would_be_noticed(line):
    assert list(questions(line)) == [1]
