"""Four hospitals' first study on a slow disk, as the guides have it; see ``walk.py``."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.installation import install_both
from tests.long.slow_disk import can_slow
from tests.long.walk import walk_all

pytestmark = pytest.mark.skipif(can_slow() is not None, reason=can_slow() or "")
MOST_COMMANDS = 12
"""Of all parties of a consortium of four, from nothing to a first result."""


@pytest.fixture(scope="module")
def software() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="walk-software-") as folder:
        Path(folder).chmod(0o755)
        install_both(Path(folder, "opt"))
        yield Path(folder, "opt")


@pytest.mark.parametrize("deadline", [None, 60], ids=["impatient", "short-deadlines"])
def test_the_first_run_succeeds_and_the_ledgers_hold_its_epsilon(
    deadline: int | None, software: Path
) -> None:
    """Without deadlines of its own the run begins before anybody has loaded anything."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="walk-") as folder:
        Path(folder).chmod(0o755)
        walk = walk_all(Path(folder), software, deadline)
    assert walk.commands <= MOST_COMMANDS + (deadline is not None)  # which is one edit, and sign
