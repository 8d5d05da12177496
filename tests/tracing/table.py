"""``python -m tests.tracing.table FOLDER``: writes tests/guards.json from what was traced.

    TRACED_CALLS=FOLDER PYTHONPATH=$PWD/tests/tracing/children \\
        .venv/bin/python -m pytest -n 2 -p tests.tracing.calls

leaves in FOLDER how often each test file calls each function of the product. A module's guards are
chosen one after the other: of the test files that call nearly the most of the functions that none
before has called, the one that runs least of the product besides, so that a fault of the module
shows there and nowhere else.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.of_module import BY_HAND, TABLE, modules, own_guards
from tests.tracing.calls import Counts

MOST = 3
"""Test files of a module."""
ENOUGH = 0.9
"""Part of the most that any test file calls which is as good."""
_ORDER = ("tests/protocol/test_answered_once.py", "tests/protocol/test_site_promises.py")
SEEN = {"site_agent/run/charges.py": _ORDER, "site_agent/run/rounds.py": _ORDER}
"""Tests that saw an edit of a module, as drawing noise before it is charged, when others did not:
which functions are called does not tell."""
Called = Mapping[str, Mapping[str, frozenset[str]]]
"""By test file and module, its functions that were called."""


def read_calls(folder: Path) -> Called:
    """Put together what all processes of a traced run have written."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sorted(folder.glob("calls-*.json")):
        told: Counts = json.loads(path.read_text(encoding="utf-8"))
        for test, counts in told.items():
            for module, functions in counts.items():
                found[test][module].update(functions)
    return {
        test: {module: frozenset(names) for module, names in each.items()}
        for test, each in found.items()
    }


def choose_guards(module: str, called: Called) -> tuple[str, ...]:
    """The few test files that call most of a module and least besides."""
    there = {test: each[module] for test, each in called.items() if module in each}
    chosen = [test for test in SEEN.get(module, ()) if test in there]
    seen = frozenset[str]().union(*(there.pop(test) for test in chosen))
    while there and len(chosen) < MOST:
        # Where nothing is left to call, a second opinion is one that calls as much again.
        seen = seen if any(names - seen for names in there.values()) else frozenset()
        most = max(len(names - seen) for names in there.values())
        enough = [t for t, names in there.items() if len(names - seen) >= ENOUGH * most]
        best = min(enough, key=lambda test: (len(called[test]), test))
        seen |= there.pop(best)
        chosen.append(best)
    return tuple(chosen)


def make_table(called: Called) -> dict[str, list[str]]:
    """Guards of every module that has no tests of its own."""
    table = {
        module: choose_guards(module, called) for module in modules() if not own_guards(module)
    }
    return {module: list(tests) for module, tests in table.items() if tests}


def main(folder: str) -> None:
    """Write the table; a module that the traced tests did not call keeps its guards."""
    before = json.loads(TABLE.read_text(encoding="utf-8"))
    kept = {module: tests for module, tests in before.items() if module in modules()}
    table = {**kept, **make_table(read_calls(Path(folder)))}
    told = {
        module: table[module]
        for module in sorted(table)
        if module not in BY_HAND and not own_guards(module)
    }
    TABLE.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
