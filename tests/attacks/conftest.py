"""Attacks are staged with what the tests of the protocol and of secure aggregation use."""

import sys
from pathlib import Path

_TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(_TESTS / name) for name in ("protocol", "secagg")]
