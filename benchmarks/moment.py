"""The second moment and projectors compared with the BLAS calls that they require."""

import numpy as np
from scipy.linalg import eigh, qr
from scipy.linalg.blas import dsyrk
from sklearn.decomposition import PCA

from benchmarks.peers import installed
from benchmarks.table import Row, alternate
from consortium.algorithms.base import Query
from consortium.algorithms.pca.site import second_moment as local
from consortium.algorithms.subspace import Directions, ProjectorPlan, mean_projector
from consortium.kernels.moments import unpack_symmetric
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData

FEATURES, SUBJECTS, VOLUMES, COMPONENTS = 900, 128, 250, 20
QUERY, BOUND = Query("pca", "second_moment"), Bound(0.5)


def second_moment() -> list[Row]:
    """Time clipping, products and packing of all subjects of one site, in both types of number."""
    rows = []
    for kind in (np.float32, np.float64):
        blocks = made_up(kind)
        wide = [block.astype(np.float64, order="F") for block in blocks]
        pooled = np.hstack(wide)
        by_volume, by_subject = (ArrayData(blocks, unit) for unit in ("timepoint", "subject"))
        volume, subject, product, calls = alternate(
            lambda: local(None, by_volume, QUERY, BOUND),  # noqa: B023 - called in this turn
            lambda: local(None, by_subject, QUERY, BOUND),  # noqa: B023
            lambda: pooled @ pooled.T,  # noqa: B023
            lambda: _squares(wide),  # noqa: B023
            repeats=5,
        )
        size = f"D = {FEATURES}, N = {pooled.shape[1]:,}, {np.dtype(kind)}"
        rows += [
            Row(
                f"second moment, {size}, unit timepoint", volume, "NumPy X @ X.T", product, "≤ 1.15"
            ),
            Row(f"second moment, {size}, unit subject", subject, "its two dsyrk", calls, "≤ 1.15"),
        ]
    return rows


def projectors() -> list[Row]:
    """Time participants' leading directions, and product, eigenvectors and orthonormal columns."""
    query, rows = Query("", "projectors"), []
    for kind in (np.float32, np.float64):
        blocks = made_up(kind)[:32]
        wide = [block.astype(np.float64) for block in blocks]
        data = ArrayData(blocks, "subject")
        shape = data.extent.shape((len(blocks),), (sum(data.lengths),), "subject")
        plan = ProjectorPlan(Directions(COMPONENTS, "analysis.components"), shape)
        ours, calls = alternate(
            lambda: mean_projector(plan, data, query, Bound(5.0)),  # noqa: B023 - called in this turn
            lambda: _directions(wide),  # noqa: B023
        )
        work = f"projectors, D = {FEATURES}, {len(blocks)} participants, {np.dtype(kind)}"
        rows.append(Row(work, ours, "its BLAS and LAPACK calls", calls, "≤ 1.15"))
    return rows


def components() -> list[Row]:
    """Compare principal components without noise with scikit-learn's, of pooled participants."""
    blocks = made_up(np.float32)
    pooled, data = np.hstack(blocks).T.astype(np.float64), ArrayData(blocks, "timepoint")
    peer = PCA(COMPONENTS, svd_solver="covariance_eigh")

    def ours() -> None:
        moment = unpack_symmetric(local(None, data, QUERY, Bound(1e9)))
        eigh(moment, subset_by_index=(FEATURES - COMPONENTS, FEATURES - 1))

    mine, theirs = alternate(ours, lambda: peer.fit(pooled), repeats=3)
    work = f"{COMPONENTS} components, D = {FEATURES}, N = {len(pooled):,}, every volume clipped"
    return [Row(work, mine, f"scikit-learn {installed('scikit-learn')} PCA", theirs, "≤ 1.15")]


def made_up(kind: type) -> list[np.ndarray]:
    """Return participants' blocks, volumes contiguous, as the loader leaves them."""
    draws = np.random.default_rng(0)
    shape = (VOLUMES, FEATURES)
    return [draws.standard_normal(shape, dtype=np.float32).astype(kind).T for _ in range(SUBJECTS)]


def _squares(blocks: list[np.ndarray]) -> None:
    """Time the least that the norm of X Xᵀ takes, and its sum."""
    total = np.zeros((FEATURES, FEATURES), order="F")
    for block in blocks:
        dsyrk(1.0, block, trans=1)
        dsyrk(1.0, block, beta=1.0, c=total, overwrite_c=1)


def _directions(blocks: list[np.ndarray]) -> None:
    total = np.zeros((FEATURES, FEATURES), order="F")
    for directions in map(_leading, blocks):
        dsyrk(1.0, directions, beta=1.0, c=total, overwrite_c=1)


def _leading(block: np.ndarray) -> np.ndarray:
    _, vectors = eigh(block.T @ block, subset_by_index=(VOLUMES - COMPONENTS, VOLUMES - 1))
    return np.asfortranarray(qr(block @ vectors, mode="economic")[0])
