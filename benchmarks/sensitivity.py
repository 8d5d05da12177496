"""``python -m benchmarks.sensitivity [MINUTES [SEED [NAME]]]``: a search for broken sensitivities.

Two processes share the minutes. With a NAME such as ``glm`` only statistics whose name begins with
it are attacked. The exit code is 1 if a statistic, or a block of one, moved further than its
sensitivity, or a site's refusal to answer depended on one unit.
"""

import random
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.sensitivity_cases import all_attacks
from benchmarks.sensitivity_search import Outcome, search, together
from benchmarks.timing import command

WORKERS = 2
_TURNS = 4  # searches of every statistic, each from its honest question


def work(seconds: float, seed: int, name: str) -> list[Outcome]:
    """Attack every statistic for an equal part of the time, in a process of its own."""
    warnings.simplefilter("ignore")
    generator = np.random.default_rng(seed)
    cases = [case for case in all_attacks() if case.name.startswith(name)]
    part = seconds / len(cases) / _TURNS
    return [together(search(case, part, generator) for _ in range(_TURNS)) for case in cases]


def table(found: list[Outcome]) -> Table:
    """Show the worst of every statistic."""
    columns = "statistic", "trials", "answered", "worst ratio - 1", "least of a block", "refusals"
    shown = Table(*columns, caption="refusals: of one of two neighbours")
    for each in found:
        counts, mark = (f"{each.trials:,}", f"{each.answered:,}"), " BROKEN" if each.broken else ""
        name, least = min(each.moves.items(), key=lambda pair: pair[1], default=("", 0.0))
        worst, block = f"{each.worst - 1:+.1e}{mark}", f"{least:.2f} ({name})"
        shown.add_row(each.name, *counts, worst, block, str(each.differ))
    shown.add_row("all", f"{sum(each.trials for each in found):,}")
    return shown


def main(minutes: float = 1.0, seed: int | None = None, name: str = "") -> int:
    """Search, and print the table."""
    console = Console(width=120)
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    console.print(f"{minutes:g} minutes in {WORKERS} processes; seed {seed}")
    with ProcessPoolExecutor(WORKERS) as pool:
        seeds = [seed + n for n in range(WORKERS)]
        parts = list(pool.map(work, [60 * minutes] * WORKERS, seeds, [name] * WORKERS))
    found = [together(each) for each in zip(*parts, strict=True)]
    console.print(table(found))
    return 1 if any(each.broken for each in found) else 0


if __name__ == "__main__":
    command(main)
