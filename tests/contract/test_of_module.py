"""Whoever changes a module finds its tests: `python -m tests.of_module FILE`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.of_module import BY_HAND, ROOT, TABLE, guards_of, main, modules, own_guards
from tests.tracing.table import choose_guards, make_table, read_calls

TRACED = json.loads(TABLE.read_text(encoding="utf-8"))


def test_every_module_of_the_product_has_tests_that_can_be_found():
    assert [module for module in modules() if not guards_of(module)] == []


def test_the_table_names_files_that_are_there_and_nothing_twice():
    makes = (ROOT / "Makefile").read_text(encoding="utf-8")
    told, there = {**TRACED, **BY_HAND}, {*modules()}
    strange = [module for module in told if module not in there]
    gone = [
        test
        for tests in told.values()
        for test in tests
        if not (ROOT / test).is_file() and f"\n{test.removeprefix('make ')}:" not in makes
    ]
    own = [module for module in told if own_guards(module)]
    assert (strange, gone, own, set(TRACED) & set(BY_HAND)) == ([], [], [], set())


@pytest.mark.parametrize("module", ["charges", "rounds"])
def test_who_changes_the_order_of_charge_and_noise_is_sent_where_that_is_seen(module: str):
    guards = guards_of(f"site_agent/run/{module}.py")
    assert "tests/protocol/test_site_promises.py" in guards
    assert "tests/protocol/test_answered_once.py" in guards


def test_first_comes_who_calls_most_of_a_module_and_then_who_runs_least_besides():
    all_of_it, a_part = frozenset({"f", "g"}), frozenset({"h"})
    called = {
        "wide": {"m": all_of_it, "a": a_part, "b": a_part},
        "narrow": {"m": all_of_it, "a": a_part},
        "other": {"m": a_part, "a": a_part, "b": a_part, "c": a_part},
        "apart": {"a": a_part},
    }
    assert choose_guards("m", called) == ("narrow", "other", "wide")
    assert choose_guards("unknown", called) == ()


def test_calls_are_counted_by_test_file_also_in_children_and_threads(tmp_path: Path):
    test = tmp_path / "test_traced.py"
    test.write_text(
        "import subprocess, sys, threading\n"
        "from consortium.base.checkup import free_bytes\n"
        "from consortium.privacy.gdp import compose\n"
        "def test_one():\n"
        "    thread = threading.Thread(target=compose, args=([1.0],))\n"
        "    thread.start(); thread.join()\n"
        "    code = 'from consortium.base.checkup import software; software([])'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    folder = tmp_path / "calls"
    folder.mkdir()
    where = f"{ROOT}:{ROOT / 'tests' / 'tracing' / 'children'}"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.tracing.calls", "--rootdir", tmp_path, test],
        check=True,
        cwd=tmp_path,
        env={"TRACED_CALLS": str(folder), "PYTHONPATH": where, "PATH": ""},
        capture_output=True,
    )
    ((name, called),) = read_calls(folder).items()
    assert name.endswith("test_traced.py")
    assert "software" in called["consortium/base/checkup.py"]
    assert "free_bytes" not in called["consortium/base/checkup.py"]
    assert "compose" in called["consortium/privacy/gdp.py"]
    assert make_table({name: called})["consortium/base/checkup.py"] == [name]


def test_a_file_that_is_none_of_the_product_is_named(capsys: pytest.CaptureFixture[str]):
    assert main(["consortium/secagg/hub.py", "setup.py"]) == 1
    told = capsys.readouterr()
    assert told.out == "tests/unit/secagg/test_hub.py\n"
    assert told.err.startswith("setup.py: no tests are known")
