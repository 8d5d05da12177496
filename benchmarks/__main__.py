"""``python -m benchmarks [NAME ...]``: one table, or parts of it, or studies.

The whole table is written to docs/replication/performance.md, too.
"""

import sys
from collections.abc import Callable, Mapping

from benchmarks import ica, loading, loading_surface, moment, pooled, power, secagg, starts
from benchmarks.page import put
from benchmarks.table import COLUMNS, RowMaker, print_table
from consortium.kernels.one_thread import one_thread

ROWS: Mapping[str, RowMaker] = {
    "moment": moment.second_moment,
    "projectors": moment.projectors,
    "components": moment.components,
    "power": power.power,
    "round": ica.one_round,
    "ica": ica.beside_peers,
    "sums": secagg.sums,
    "bytes": secagg.sent_bytes,
    "noise": secagg.noise,
    "sites": secagg.growth,
    "loading": loading.loading,
    "cortex": loading_surface.loading_surface,
    "starts": starts.starts,
}
"""Parts of the one table, in its order."""

STUDIES: Mapping[str, Callable[[], None]] = {
    "infomax": ica.whole_run,
    "private": ica.private,
    "optimizers": ica.optimizers,
    "pooled": pooled.pooled,
    "energy": power.private,
}
"""Runs with tables of their own."""


def main(names: list[str]) -> None:
    """Print the table with all rows or those named, and run the studies that are named."""
    for name in names:
        if name not in ROWS and name not in STUDIES:
            known = ", ".join((*ROWS, *STUDIES))
            sys.exit(f"There is no benchmark '{name}'; choose from {known}.")
    makers = [maker for name, maker in ROWS.items() if name in names or not names]
    if makers:
        one_thread()  # what a site computes with
        rows = print_table(makers)
        if not names:
            put("peers", COLUMNS, [row.cells() for row in rows])
    for name in names:
        if name in STUDIES:
            STUDIES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
