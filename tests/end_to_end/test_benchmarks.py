"""Every benchmark can at least be started: a module that moved away is found here."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.name != "__main__.py"
)


@pytest.mark.parametrize("name", MODULES)
def test_every_benchmark_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("protocol", "exchange"):  # as the benchmarks of faults do it themselves
        monkeypatch.syspath_prepend(ROOT / "tests" / folder)
    module = importlib.import_module(name)
    assert module.__doc__
