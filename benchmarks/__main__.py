"""``python -m benchmarks [NAME ...]``: all, or those named."""

from __future__ import annotations

import sys

from benchmarks import ica, pooled

BENCHMARKS = {
    "round": ica.one_round,
    "infomax": ica.whole_run,
    "private": ica.private,
    "optimizers": ica.optimizers,
    "pooled": pooled.pooled,
}

for name in sys.argv[1:] or BENCHMARKS:
    if name not in BENCHMARKS:
        sys.exit(f"There is no benchmark '{name}'; choose from {', '.join(BENCHMARKS)}.")
    BENCHMARKS[name]()
