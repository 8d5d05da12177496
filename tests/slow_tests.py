"""``python -m tests.slow_tests JUNIT``: writes which tests `make ci` runs and `make test` does not.

Most of a suite's time goes into few tests. Those that take longest are in `slow_tests.txt`, so many
that all others together take a fourteenth of the time. Times are from a run of all tests, with
``--junitxml=JUNIT``. A listed test with several cases still runs its first case in `make test`, and
each file keeps its quickest test unless that takes long by itself.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".txt")
REST = 0.07
"""Fraction of the time of all tests that the tests of `make test` take."""
LONG = 0.001
"""Fraction of the time of all tests from which on a file keeps none of its tests."""
SEVERAL = 4
"""Cases of a listed test from which on its first one stays in `make test`."""


def function_of(test: str) -> str:
    """Return a test's file and function, without its case."""
    return test.partition("[")[0]


def slow_tests() -> frozenset[str]:
    """Return the listed tests, such as ``tests/unit/test_a.py::test_b``."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def slow_cases(tests: Iterable[str], listed: frozenset[str]) -> set[str]:
    """Return the cases, of all that were collected in this order, that `make test` leaves out."""
    cases = defaultdict(list)
    for test in tests:
        if function_of(test) in listed:
            cases[function_of(test)].append(test)
    return {case for each in cases.values() for case in each[len(each) >= SEVERAL :]}


def choose_slow(seconds: Mapping[str, float], rest: float = REST) -> list[str]:
    """Return the tests that take longest, in alphabetical order.

    Parameters
    ----------
    seconds : mapping of str to float
        Time of each test with all its cases.
    rest : float
        Fraction of the whole time that the others take at most; 0 to 1.
    """
    whole = left = sum(seconds.values())
    quickest: dict[str, str] = {}
    for test in sorted(seconds, key=lambda test: seconds[test]):
        if seconds[test] < LONG * whole:
            quickest.setdefault(test.partition("::")[0], test)
    kept, chosen = set(quickest.values()), []
    for test in sorted(seconds.keys() - kept, key=lambda test: -seconds[test]):
        if left <= rest * whole:
            break
        chosen.append(test)
        left -= seconds[test]
    return sorted(chosen)


def read_seconds(report: Path) -> dict[str, float]:
    """Return the seconds of each test with all its cases, from a report in JUnit's format."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        module, name = case.attrib["classname"], case.attrib["name"]
        parts = module.split(".")
        while parts and not (ROOT / "/".join(parts)).with_suffix(".py").is_file():
            parts.pop()  # a class
        inside = module.split(".")[len(parts) :]
        test = "::".join(["/".join(parts) + ".py", *inside, function_of(name)])
        seconds[test] += float(case.attrib["time"])
    return seconds


def main(report: str) -> None:
    """Write the list."""
    chosen = choose_slow(read_seconds(Path(report)))
    LIST.write_text("".join(f"{test}\n" for test in chosen), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
