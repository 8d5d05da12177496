"""``python -m benchmarks [NAME ...]``: all tables of the limits, or those named, or studies.

A table is also written to docs/replication/performance.md, with the machine of this run.
"""

import sys
from collections.abc import Callable, Mapping

from benchmarks import (
    exchanges,
    glm_outcomes,
    ica,
    loading,
    loading_surface,
    moment,
    pooled,
    power,
    secagg,
    starts,
    whole_cohort,
)
from benchmarks.page import put
from benchmarks.table import COLUMNS, RowMaker, print_table
from benchmarks.timing import command
from consortium.base.one_thread import one_thread

ROWS: Mapping[str, RowMaker] = {
    "moment": moment.second_moment,
    "projectors": moment.projectors,
    "components": moment.components,
    "power": power.power,
    "round": ica.one_round,
    "ica": ica.beside_peers,
    "sums": secagg.sums,
    "bytes": secagg.sent_bytes,
    "running": secagg.running_sum,
    "noise": secagg.noise,
    "sites": secagg.growth,
    "loading": loading.loading,
    "resampling": loading.resampling,
    "cortex": loading_surface.loading_surface,
    "cohort": whole_cohort.whole_cohort,
    "starts": starts.starts,
    "outcomes": glm_outcomes.outcomes,
    "requests": exchanges.requests,
}
"""Tables, in the page's order."""

STUDIES: Mapping[str, Callable[[], None]] = {
    "infomax": ica.whole_run,
    "private": ica.private,
    "optimizers": ica.optimizers,
    "pooled": pooled.pooled,
    "energy": power.private,
}
"""Runs with tables of their own."""


def main(*names: str) -> None:
    """Print and write all tables or those named, and run the studies that are named."""
    for name in names:
        if name not in ROWS and name not in STUDIES:
            known = ", ".join((*ROWS, *STUDIES))
            sys.exit(f"Benchmark '{name}' is unknown; choose from {known}.")
    one_thread()  # as at a site
    for name, maker in ROWS.items():
        if name in names or not names:
            put(name, COLUMNS, [row.cells() for row in print_table([maker])])
    for name in names:
        if name in STUDIES:
            STUDIES[name]()


if __name__ == "__main__":
    command(main)
