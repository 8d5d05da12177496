"""``python -m tests.long.fuzz [MILLIONS [SEED]]``: nearly sound inputs for every parser there is.

Two processes share the inputs. A finding is any error that the parser does not declare, more than
a second of a processor's time, or more memory than `MEMORY`; its input is kept in
``build/fuzz/``, and the exit code is then 1.
"""

import logging
import random
import resource
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.long.fuzz_messages import open_targets, signed_targets
from tests.long.fuzz_queries import query_targets
from tests.long.fuzz_records import kept_targets, written_targets
from tests.long.fuzz_run import Run
from tests.long.fuzz_scans import scan_targets
from tests.long.fuzz_studies import study_targets
from tests.long.fuzz_targets import Outcome, Target, fuzz, keep

WORKERS = 2
MEMORY = 4 << 30  # bytes of address space of a process, libraries and their threads included
FINDINGS = Path("build/fuzz")


def all_targets(folder: Path) -> list[Target]:
    """Every parser; what is read from files is read in a folder."""
    run = Run()
    return [
        *open_targets(run),
        *signed_targets(run),
        *query_targets(folder),
        *study_targets(),
        *written_targets(folder),
        *kept_targets(folder),
        *scan_targets(folder),
    ]


def work(share: float, seed: int) -> list[Outcome]:
    """Fuzz every parser with a share of its inputs, in a process of its own."""
    logging.disable(logging.CRITICAL)  # nibabel tells what it finds odd in a header
    warnings.simplefilter("ignore")
    memory = tempfile.gettempdir() if not Path("/dev/shm").is_dir() else "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        targets = all_targets(Path(folder))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        return [_told(fuzz(t, max(1, round(t.inputs * share)), seed)) for t in targets]


def _told(outcome: Outcome) -> Outcome:
    line = f"{outcome.name}: {outcome.inputs:,} inputs, {len(outcome.findings)} findings"
    print(line, file=sys.stderr, flush=True)  # a run of millions takes minutes
    return outcome


def table(outcomes: list[Outcome]) -> Table:
    """Show what became of the inputs."""
    found = Table("parser", "inputs", "a second", "refused", "accepted", "slowest", "findings")
    for each in outcomes:
        rate = each.inputs / each.seconds
        counts = (f"{n:,}" for n in (each.inputs, round(rate), each.refused, each.accepted))
        found.add_row(each.name, *counts, f"{1000 * each.slowest:.0f} ms", "; ".join(each.findings))
    total = [sum(getattr(o, name) for o in outcomes) for name in ("inputs", "refused", "accepted")]
    number = sum(len(each.findings) for each in outcomes)
    found.add_row("all", f"{total[0]:,}", "", f"{total[1]:,}", f"{total[2]:,}", "", str(number))
    return found


def main(millions: float, seed: int) -> int:
    """Fuzz, print the table, keep the findings."""
    console = Console(width=140)
    with tempfile.TemporaryDirectory() as folder:
        planned = sum(target.inputs for target in all_targets(Path(folder)))
    share = millions * 1e6 / planned / WORKERS
    console.print(f"{millions:g} million inputs in {WORKERS} processes; seed {seed}")
    with ProcessPoolExecutor(WORKERS) as pool:
        parts = list(pool.map(work, [share] * WORKERS, [seed + n for n in range(WORKERS)]))
    for first, second in zip(*parts, strict=True):
        first.add(second)
        keep(first, FINDINGS)
    console.print(table(parts[0]))
    return 1 if any(outcome.findings for outcome in parts[0]) else 0


if __name__ == "__main__":
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 0.1
    number = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
    sys.exit(main(size, number))
