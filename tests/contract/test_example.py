"""The analysis in the docstring of `algorithms.base` passes the contract tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.new_analysis import CONTRACT

ROOT = Path(__file__).parents[2]
LEAST = 20
"""Contract tests that the example must run at least."""


def test_the_example_of_the_contract_passes_its_tests() -> None:
    plugin = ("-p", "tests.support.example_analysis", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            *plugin,
            *CONTRACT,
            "-k",
            "positives and not honesty",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) >= LEAST, ended.stdout[-4000:]
