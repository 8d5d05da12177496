"""``python -m benchmarks.verify``: how long the check of a finished run takes.

A run of 21 rounds over four sites in one process; its folder is then checked by itself, and with
the exchange.
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import show
from consortium.coordinator.verify import Checkup
from consortium.exchange import DirectoryExchange

ROUNDS = 20
REACH = 10.0  # s


def main() -> None:
    """Print the table; exit with 1 if the check takes longer than it may."""
    from tests.support.finished_run import STUDY, play
    from tests.support.local_consortium import build

    text = STUDY.replace("rounds: 2}", f"rounds: {ROUNDS}}}")
    rows, slowest = list[list[str]](), 0.0
    with tempfile.TemporaryDirectory() as name:
        found = play(build(Path(name) / "place", text=text))
        files = [path for path in found.out.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files) / 1000
        for what, exchange in (
            ("folder", None),
            ("and exchange", DirectoryExchange(found.exchange)),
        ):
            wall, processor = time.perf_counter(), time.process_time()
            verdict = Checkup(found.out, exchange=exchange).run()
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            slowest = max(slowest, wall)
            row = (what, verdict.rounds, verdict.code, len(files), f"{size:.0f}")
            rows.append([*map(str, row), f"{processor:.2f}", f"{wall:.2f}"])
    columns = ["checked", "rounds", "exit code", "files", "kB", "CPU s", "wall s"]
    show("The check of a finished run", columns, rows)
    sys.exit(int(slowest > REACH))


if __name__ == "__main__":
    main()
