"""Run by Python when a child process of a traced test starts; counts its calls for that test."""

import os
import sys
from pathlib import Path

if os.environ.get("PYTEST_CURRENT_TEST"):
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from tests.tracing.calls import start_tracing

    start_tracing()
    sys.path.pop(0)
