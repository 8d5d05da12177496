"""capePCA's power solver at the size of a whole brain: cost, memory, and energy against noise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.timing import best, show
from consortium.algorithms.base import Query
from consortium.algorithms.memory import ArrayData
from consortium.algorithms.power import power_product
from consortium.kernels.power import eigenpairs, orthonormal, start_basis
from consortium.privacy.bounds import Bound
from consortium.privacy.gdp import mu_of
from consortium.privacy.mechanism import plan_mechanism

FEATURES, SITES, SUBJECTS, VOLUMES, SIZE = 70_000, 4, 20, 200, 20
SIGNAL = 0.3  # share of the variance that the components explain
DELTA = 1e-5


def site(index: int) -> ArrayData:
    """Subjects of trace 1: shared maps of falling strength, and a noise of their own."""
    maps = orthonormal(np.random.default_rng(0).standard_normal((FEATURES, SIZE)))
    shares = 0.9 ** np.arange(SIZE)
    maps = (maps * np.sqrt(SIGNAL * shares / shares.sum())).astype(np.float32)
    level = np.float32(np.sqrt((1 - SIGNAL) / FEATURES))
    blocks = []
    for subject in range(SUBJECTS):
        draw = np.random.default_rng((1, index, subject))
        courses = draw.standard_normal((VOLUMES, SIZE), dtype=np.float32)
        series = draw.standard_normal((VOLUMES, FEATURES), dtype=np.float32)
        series *= level
        series += courses @ maps.T
        blocks.append(series.T)  # volumes contiguous, as the loader leaves them
    return ArrayData(blocks)


def power() -> None:
    """All tables, over one set of data."""
    sites = [site(index) for index in range(SITES)]
    cost(sites)
    memory()
    energy(sites)


def cost(sites: list[ArrayData]) -> None:
    """One round's statistic of all sites beside the bare products it must do."""
    basis = start_basis(FEATURES, SIZE, 0)
    narrow, bound = basis.astype(np.float32), Bound(0.3)
    query = Query("pca", "power", {"basis": basis})

    def bare() -> None:
        for block in every(sites):
            block @ (block.T @ narrow)

    def ours() -> None:
        for each in sites:
            power_product(each, query, bound)

    alone, whole = best(bare, 3), best(ours, 3)
    rows = [[f"{whole:.2f}", f"{alone:.2f}", f"{whole / alone:.2f}"]]
    title = f"One power iteration, D = {FEATURES}, {SITES} x {SUBJECTS} x {VOLUMES}, K = {SIZE}"
    show(title, ["statistics, s", "bare products float32, s", "ratio"], rows)


def memory() -> None:
    """Peak memory of one site's process, its data included."""
    peak = subprocess.run(
        [sys.executable, "-m", "benchmarks.power"], check=True, capture_output=True, text=True
    )
    show("A site's process", ["peak memory, GiB"], [[f"{float(peak.stdout):.2f}"]])


def energy(sites: list[ArrayData]) -> None:
    """Energy of the released subspace over the exact one's, by iterations and by ε."""
    best_energy = exact(sites)
    rows = []
    for iterations in (1, 2, 3, 4, 6):
        rows.append(["none", "", f"{iterations}", f"{run(sites, iterations, 0) / best_energy:.4f}"])
    for epsilon, persons in ((8.0, 80), (8.0, 2_000), (8.0, 20_000), (1.0, 200_000), (8, 200_000)):
        deviation = noise(epsilon, persons, 4)
        share = run(sites, 4, deviation) / best_energy
        rows.append([f"{epsilon:g}", f"{persons}", "4", f"{share:.4f}"])
    columns = ["ε (coalition)", "persons", "iterations", "energy over exact"]
    show("Energy in the subspace, bound 0.1; noise as planned for so many persons", columns, rows)


def noise(epsilon: float, persons: int, iterations: int) -> float:
    """Standard deviation of the noise in an entry of the mean, four equal sites, one colluding."""
    mechanism = plan_mechanism(
        "cape",
        entries=FEATURES * SIZE,
        bound=Bound(0.1),
        units=(persons // SITES,) * SITES,
        target=mu_of(epsilon, DELTA) / iterations**0.5,
        colluding=1,
    )
    return mechanism.noise.aggregate(range(SITES))


def run(sites: list[ArrayData], iterations: int, deviation: float) -> float:
    """Energy of the subspace that so many noisy products lead to."""
    draw = np.random.default_rng(2)
    basis = start_basis(FEATURES, SIZE, 0)
    for _ in range(iterations):
        query = Query("pca", "power", {"basis": basis})
        clean = np.mean([power_product(each, query, Bound(0.1)) for each in sites], axis=0)
        basis, _ = eigenpairs(clean + deviation * draw.standard_normal(clean.shape), deviation)
    return captured(sites, basis)


def captured(sites: list[ArrayData], basis: np.ndarray) -> float:
    """Mean over subjects of ‖QᵀX‖²/T."""
    narrow = basis.astype(np.float32)
    return float(np.mean([np.square(narrow.T @ b).sum() / VOLUMES for b in every(sites)]))


def exact(sites: list[ArrayData]) -> float:
    """Energy of the leading eigenvectors, by Lanczos on all data."""

    def product(vector: np.ndarray) -> np.ndarray:
        narrow = vector.astype(np.float32).reshape(FEATURES, -1)
        return np.mean([b @ (b.T @ narrow) for b in every(sites)], axis=0) / VOLUMES

    whole = LinearOperator((FEATURES, FEATURES), matvec=product, dtype=np.float32)
    return float(eigsh(whole, SIZE, tol=1e-3, return_eigenvectors=False).sum())


def every(sites: list[ArrayData]) -> Iterator[np.ndarray]:
    for each in sites:
        yield from each.blocks()


if __name__ == "__main__":  # a site by itself, for its memory
    power_product(site(0), Query("", "", {"basis": start_basis(FEATURES, SIZE, 0)}), Bound(0.3))
    status = Path("/proc/self/status").read_text().splitlines()
    print(next(float(line.split()[1]) / 2**20 for line in status if line.startswith("VmHWM")))
