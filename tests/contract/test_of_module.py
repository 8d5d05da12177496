"""Whoever changes a module finds its tests: `python -m tests.of_module FILE`."""

from __future__ import annotations

import grimp
import pytest

from tests.guards import ELSEWHERE
from tests.of_module import ROOT, guards_of, main, modules


def test_every_module_of_the_product_has_tests_that_can_be_found():
    assert [module for module in modules() if not guards_of(module)] == []


def test_the_table_names_files_that_are_there_and_nothing_twice():
    strange = [module for module in ELSEWHERE if module not in modules()]
    makes = (ROOT / "Makefile").read_text(encoding="utf-8")
    gone = [
        test
        for tests in ELSEWHERE.values()
        for test in tests
        if not (ROOT / test).is_file() and f"\n{test.removeprefix('make ')}:" not in makes
    ]
    own = [module for module, tests in ELSEWHERE.items() if guards_of(module) != tests]
    assert (strange, gone, own) == ([], [], [])


def test_each_test_that_the_table_names_can_reach_the_module():
    graph = grimp.build_graph("consortium", "site_agent", "flows", "tests")
    unmet = [
        (module, test)
        for module, tests in ELSEWHERE.items()
        for test in tests
        if not test.startswith("make ") and not _reaches(graph, test, module)
    ]
    assert unmet == []


def _reaches(graph: grimp.ImportGraph, test: str, module: str) -> bool:
    """Whether a test imports a module, or what imports it; ``consortium`` hands on its `python`."""
    reached = graph.find_upstream_modules(_dotted(test))
    handed = {each for each in graph.modules if each.startswith("consortium.python.")}
    if "consortium" in reached:
        reached = reached.union(handed, *map(graph.find_upstream_modules, handed))
    return _dotted(module) in reached


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def test_a_file_that_is_none_of_the_product_is_named(capsys: pytest.CaptureFixture[str]):
    assert main(["consortium/secagg/hub.py", "setup.py"]) == 1
    told = capsys.readouterr()
    assert told.out == "tests/unit/secagg/test_hub.py\n"
    assert told.err.startswith("setup.py: no tests are known")
