"""``python -m benchmarks.honesty [ANALYSIS ...]``: one table; ``--help`` lists the options."""

import argparse
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from benchmarks.honesty.cells import every_group, short_groups
from benchmarks.honesty.table import analyses, print_markdown, print_rows, rows


def main() -> None:
    """Repeat every cell of every analysis and print one table."""
    given = _parser().parse_args()
    known = analyses()
    for name in given.analyses:
        if name not in known:
            sys.exit(f"Analysis '{name}' is unknown here; choose from {', '.join(known)}.")
    groups = short_groups() if given.cells == "short" else every_group()
    seeds = range(given.repetitions)
    with ProcessPoolExecutor(given.processes) as pool:
        futures = [
            pool.submit(rows, name, group, seeds, given.seconds)
            for name, group in product(given.analyses or known, groups)
        ]
        found = [row for future in futures for row in future.result()]
    (print_markdown if given.markdown else print_rows)(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty")
    parser.add_argument("analyses", nargs="*", metavar="ANALYSIS")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--cells", choices=("short", "all"), default="short")
    parser.add_argument(
        "--seconds",
        type=float,
        default=math.inf,
        help="processor time in seconds after which cells of one kind of data and one number of "
        "participants are not repeated again",
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    return parser


if __name__ == "__main__":
    main()
