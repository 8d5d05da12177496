"""`make test` leaves out the tests that take long, and every module keeps a quick one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.of_module import ROOT, guards_of, modules
from tests.slow_tests import choose_slow, read_seconds, slow_cases, slow_tests

CONFTEST = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
WITHOUT = {
    "relay/cape_relay/flare.py",
    "relay/cape_relay/vantage.py",
}
"""Modules that only `make long` tries."""


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the tests of a file, by name."""
    found = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    names = (node.name for node in found if isinstance(node, ast.FunctionDef))
    return frozenset(f"{file}::{name}" for name in names if name.startswith("test_"))


def test_every_listed_test_is_there():
    gone = [test for test in slow_tests() if test not in names_in(test.partition("::")[0])]
    assert gone == []


def test_every_module_keeps_a_quick_test():
    without = {
        module
        for module in modules()
        if not any(
            test.startswith("tests/") and names_in(test) - slow_tests()
            for test in guards_of(module)
        )
    }
    assert without == WITHOUT


def test_the_longest_are_listed_until_the_others_take_a_tenth():
    seconds = {"a.py::long": 50.0, "a.py::short": 0.01, "b.py::long": 40.0, "b.py::some": 9.0}
    assert choose_slow(seconds, 0.1) == ["a.py::long", "b.py::long"]
    assert choose_slow(seconds, 0.0) == ["a.py::long", "b.py::long", "b.py::some"]
    assert choose_slow(seconds, 1.0) == []


def test_the_first_of_several_cases_stays():
    cases = [f"t.py::many[{case}]" for case in "abcde"]
    listed = frozenset({"t.py::many", "t.py::once"})
    tests = ["t.py::once", *cases, "t.py::other[a]"]
    assert slow_cases(tests, listed) == {"t.py::once", *cases[1:]}


def test_times_of_cases_are_added(tmp_path: Path):
    report = tmp_path / "report.xml"
    module = "tests.contract.test_slow_tests"
    cases = "".join(
        f'<testcase classname="{module}" name="{name}" time="{time}"/>'
        for name, time in {"test_a[1]": 1.5, "test_a[2]": 2.0, "test_b": 0.5}.items()
    )
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>", encoding="utf-8")
    file = "tests/contract/test_slow_tests.py"
    assert read_seconds(report) == {f"{file}::test_a": 3.5, f"{file}::test_b": 0.5}


@pytest.mark.parametrize("goal", ["test", "ci"])
def test_both_commands_together_run_every_test(goal: str):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    marks = re.findall(r'\$\(PYTEST\) -m "(.*)"', makefile)
    assert marks == ["not slow and not long", "slow and not long"]
    assert f"make {goal}\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")
