"""capePCA's power solver at the size of a whole brain: cost, memory, and energy against noise."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.table import Row, alternate
from benchmarks.timing import show
from consortium.algorithms.base import Query
from consortium.algorithms.pca.site import power_product
from consortium.kernels.power import ITERATIONS, eigenpairs, orthonormal, start_basis
from consortium.privacy.bounds import Bound
from consortium.privacy.gdp import mu_of
from consortium.privacy.mechanism import Sharing, plan_mechanism
from consortium.simulation.array_data import ArrayData

FEATURES, SITES, SUBJECTS, VOLUMES, SIZE = 70_000, 4, 20, 200, 20
RANK, FALL = 100, 0.95  # shared maps, and the ratio of their strengths: no gap after the 20th
SIGNAL = 0.4  # share of the variance that they explain
DELTA = 1e-5
BOUND = Bound(0.1)  # no subject of these data is clipped


def site(index: int) -> ArrayData:
    """Simulate subjects of trace 1: shared maps of falling strength, and a noise of their own."""
    maps = orthonormal(np.random.default_rng(0).standard_normal((FEATURES, RANK)))
    shares = FALL ** np.arange(RANK)
    maps = (maps * np.sqrt(SIGNAL * shares / shares.sum())).astype(np.float32)
    level = np.float32(np.sqrt((1 - SIGNAL) / FEATURES))
    blocks = []
    for subject in range(SUBJECTS):
        draw = np.random.default_rng((1, index, subject))
        courses = draw.standard_normal((VOLUMES, RANK), dtype=np.float32)
        series = draw.standard_normal((VOLUMES, FEATURES), dtype=np.float32)
        series *= level
        series += courses @ maps.T
        blocks.append(series.T)  # volumes contiguous, as the loader leaves them
    return ArrayData(blocks)


def power() -> list[Row]:
    """Return the one table's rows: a round's cost, a site's memory, and the subspace's energy."""
    sites = [site(index) for index in range(SITES)]
    what = f"power, D = {FEATURES:,}, {SITES} x {SUBJECTS} x {VOLUMES}, K = {SIZE}"
    few = [ArrayData(list(each.blocks())[:3]) for each in sites]
    share = run(few, ITERATIONS, 0.0)[-1]
    return [
        Row(f"{what}: one product", *cost(sites), "≤ 1.3"),
        Row(f"{what}: memory of a site", memory(), "the limit", 2.0, "≤ 1", "GiB"),
        Row(f"{what}: energy, no noise", share, "exact", exact(few), "≥ 0.99", ""),
    ]


def private() -> None:
    """Measure the energy of the subspace at ε = 8, over numbers of participants."""
    energy([site(index) for index in range(SITES)])


def cost(sites: list[ArrayData]) -> tuple[float, str, float]:
    """Time one round's statistic of all sites, and the bare products that it requires, in ms."""
    basis = start_basis(FEATURES, SIZE, 0)
    narrow, bound = basis.astype(np.float32), Bound(0.3)
    query = Query("pca", "power", {"basis": basis})

    def bare() -> None:
        for block in every(sites):
            block @ (block.T @ narrow)

    def ours() -> None:
        for each in sites:
            power_product(None, each, query, bound)

    whole, alone = alternate(ours, bare, repeats=3)
    return whole, "bare products, float32", alone


def memory() -> float:
    """Return the peak memory of one site's process, its data included, in GiB."""
    peak = subprocess.run(
        [sys.executable, "-m", "benchmarks.power"], check=True, capture_output=True, text=True
    )
    return float(peak.stdout)


def energy(sites: list[ArrayData]) -> None:
    """Return the energy of the released subspace over the exact one's, product by product."""
    few = [ArrayData(list(each.blocks())[:3]) for each in sites]  # the noise is what matters
    whole, rows, products = exact(few), [], ITERATIONS
    for epsilon, persons in ((None, 12), (8.0, 80), (8.0, 8_000), (8.0, 80_000), (8.0, 800_000)):
        deviation = noise(epsilon, persons, products) if epsilon else 0.0
        shares = [f"{share / whole:.4f}" for share in run(few, products, deviation)]
        rows.append([f"{epsilon or 'none'}", f"{persons}", f"{deviation:.2g}", *shares])
    columns = ["ε (coalition)", "participants", "σ", *(f"after {j + 1}" for j in range(products))]
    show(f"Energy in the subspace over the exact one's, bound {BOUND.norm}", columns, rows)


def noise(epsilon: float, persons: int, iterations: int) -> float:
    """Return the noise's deviation in an entry of the mean, four equal sites, one colluding."""
    mechanism = plan_mechanism(
        Sharing("cape", colluding=1),
        entries=FEATURES * SIZE,
        bound=BOUND,
        units=(persons // SITES,) * SITES,
        target=mu_of(epsilon, DELTA) / iterations**0.5,
    )
    return mechanism.noise.aggregate(range(SITES))


def run(sites: list[ArrayData], iterations: int, deviation: float) -> list[float]:
    """Return the energy of the subspace after each of the given number of noisy products."""
    draw = np.random.default_rng(2)
    basis, found = start_basis(FEATURES, SIZE, 0), []
    for _ in range(iterations):
        query = Query("pca", "power", {"basis": basis})
        clean = np.mean([power_product(None, each, query, BOUND) for each in sites], axis=0)
        basis, _ = eigenpairs(clean + deviation * draw.standard_normal(clean.shape), deviation)
        found.append(captured(sites, basis))
    return found


def captured(sites: list[ArrayData], basis: np.ndarray) -> float:
    """Return the mean over subjects of ‖QᵀX‖²/T."""
    narrow = basis.astype(np.float32)
    return float(np.mean([np.square(narrow.T @ b).sum() / VOLUMES for b in every(sites)]))


def exact(sites: list[ArrayData]) -> float:
    """Return the leading eigenvectors' energy: six products of twice as many columns, then Ritz."""
    basis = start_basis(FEATURES, 2 * SIZE, 1)
    for _ in range(6):
        query = Query("pca", "power", {"basis": basis})
        product = np.mean([power_product(None, each, query, Bound(1e9)) for each in sites], axis=0)
        previous, basis = basis, orthonormal(product)
    return float(np.linalg.eigvalsh(previous.T @ product)[-SIZE:].sum())


def every(sites: list[ArrayData]) -> Iterator[np.ndarray]:
    for each in sites:
        yield from each.blocks()


if __name__ == "__main__":  # a site by itself, for its memory
    power_product(
        None, site(0), Query("", "", {"basis": start_basis(FEATURES, SIZE, 0)}), Bound(0.3)
    )
    status = Path("/proc/self/status").read_text().splitlines()
    print(next(float(line.split()[1]) / 2**20 for line in status if line.startswith("VmHWM")))
