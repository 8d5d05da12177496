"""``python -m benchmarks.honesty [ANALYSIS ...] [--repetitions N] [--cells short|all]``."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from benchmarks.honesty.cells import every_cell, short_cells
from benchmarks.honesty.table import Row, analyses, outcomes, print_rows

WORKERS = 2


def main() -> None:
    """Repeat every cell of every analysis and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty")
    parser.add_argument("analyses", nargs="*", metavar="ANALYSIS")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--cells", choices=("short", "all"), default="short")
    given = parser.parse_args()
    known = analyses()
    for name in given.analyses:
        if name not in known:
            sys.exit(f"There is no analysis '{name}' here; choose from {', '.join(known)}.")
    cells = short_cells() if given.cells == "short" else every_cell()
    todo = list(product(given.analyses or known, cells))
    seeds = range(given.repetitions)
    with ProcessPoolExecutor(WORKERS) as pool:
        futures = [pool.submit(outcomes, name, cell, seeds) for name, cell in todo]
        found = [future.result() for future in futures]
    print_rows([Row(name, cell, each) for (name, cell), each in zip(todo, found, strict=True)])


if __name__ == "__main__":
    main()
