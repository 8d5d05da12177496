"""The second moment beside NumPy's product of the same data."""

from __future__ import annotations

import numpy as np

from benchmarks.table import Row, alternate
from consortium.algorithms.base import Query
from consortium.algorithms.pca.centre import Pca
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData

FEATURES, SUBJECTS, VOLUMES = 900, 1024, 250


def second_moment() -> list[Row]:
    """Clipping, products and packing of all subjects, one site; its data are float32."""
    rng = np.random.default_rng(0)
    shape = (FEATURES, VOLUMES)
    blocks = [rng.standard_normal(shape, dtype=np.float32) for _ in range(SUBJECTS)]
    wide = np.hstack(blocks).astype(np.float64)
    local, query, bound = Pca.statistics["second_moment"], Query("pca", "second_moment"), Bound(0.5)
    by_volume, by_subject = (ArrayData(blocks, unit) for unit in ("timepoint", "subject"))
    volume, subject, peer = alternate(
        lambda: local(by_volume, query, bound),
        lambda: local(by_subject, query, bound),
        lambda: wide @ wide.T,
        repeats=3,
    )
    work, beside = (
        f"second moment, D = {FEATURES}, N = {wide.shape[1]:,}",
        "NumPy's X @ X.T, float64",
    )
    return [
        Row(f"{work}, unit timepoint", volume, beside, peer, "≤ 1.15"),
        Row(f"{work}, unit subject", subject, beside, peer, "≤ 1.15"),
    ]
