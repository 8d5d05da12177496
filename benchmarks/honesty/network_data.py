"""Simulated series of participants who share networks, or have nothing but noise of their own."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from benchmarks.honesty.cells import Cell
from benchmarks.honesty.people import scanners
from consortium.algorithms.base import Array, Templates
from consortium.simulation.array_data import ArrayData

FEATURES, VOLUMES, NETWORKS = 80, 40, 3
AMPLITUDE = 2.0
WIDE = 12  # features of a network


def true_maps() -> Array:
    """Return networks of a few features each, FEATURES x NETWORKS."""
    maps = np.zeros((FEATURES, NETWORKS))
    for k in range(NETWORKS):
        maps[k * WIDE : (k + 1) * WIDE, k] = 1.0
    return maps


def made_sites(
    cell: Cell, rng: np.random.Generator, templates: Templates | None = None
) -> list[ArrayData]:
    """Simulate participants whose networks have bursting time series of their own, of trace 1.

    Cells that differ only in ε use the same participants for one state of ``rng``; these are
    cached.
    """
    return _made(replace(cell, epsilon=0.0), int(rng.integers(2**62)), templates)


@lru_cache(maxsize=1)
def _made(cell: Cell, seed: int, templates: Templates | None) -> list[ArrayData]:
    rng = np.random.default_rng(seed)
    law, maps = scanners(cell, FEATURES, rng), true_maps()
    sites = []
    for size, table in zip(
        cell.sizes, law.persons([size * VOLUMES for size in cell.sizes], rng), strict=True
    ):
        blocks = []
        for block in np.split(table, size, axis=1):
            if cell.effect:
                bursts = np.exp(np.repeat(rng.standard_normal((NETWORKS, VOLUMES // 5)), 5, axis=1))
                courses = bursts * rng.standard_normal((NETWORKS, VOLUMES))
                courses /= courses.std(axis=1, keepdims=True)
                block = block + AMPLITUDE * maps @ courses
            block = block - block.mean(axis=1, keepdims=True)
            blocks.append(block / np.sqrt(np.sum(block**2) / VOLUMES))
        sites.append(ArrayData(blocks, templates=templates))
    return sites


def agreement(found: Array) -> Array:
    """Return the largest correlation of each found map (column) with a true one."""
    if not found.shape[1]:
        return np.zeros(0)
    table = np.abs(np.corrcoef(true_maps().T, found.T)[:NETWORKS, NETWORKS:])
    return np.asarray(table.max(axis=0))
