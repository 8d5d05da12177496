"""Simulated participants with networks, plain and hard, on an 8 mm grid.

The hard ones have the 20 networks that the 300 regions of Seitzman et al. (NeuroImage 2020) fall
into, whose table nilearn carries (BSD licence): large systems are cut in parts. Courses have the
1/f spectrum of resting-state BOLD and go together between networks; each participant has own
strengths, a shifted brain, own structure, a global signal, spikes; each hospital has its own noise
and gain.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.signal import lfilter

from consortium.algorithms.base import Array, Places
from consortium.simulation.networks import network_maps
from consortium.space.grid import template_grid

EDGE = 8.0
PLAIN = 14
_PARTS = {"DefaultMode": 4, "SomatomotorDorsal": 2, "Visual": 2, "FrontoParietal": 2}
_PARTS |= {"CinguloOpercular": 2}
_SPOT = 7.0  # standard deviation of a region, mm
_TABLE = "data/seitzman_2018_ROIs_300inVol_MNI_allInfo.txt"


def places() -> Places:
    """Return the voxels."""
    return Places(template_grid(EDGE).coordinates, EDGE**3)


@dataclass(frozen=True, eq=False)
class People:
    """A population: its true maps, and participants of it."""

    sizes: tuple[int, ...]
    """Participants of each hospital."""
    maps: Array
    """Shape (D, R). True maps of the group."""
    draw: Callable[[int, np.random.Generator], Array]
    """One participant's D x T series, from the hospital's number and a generator."""

    def persons(self, seed: int) -> Iterator[tuple[int, Array]]:
        """Yield all participants, each with the number of their hospital."""
        for site, size in enumerate(self.sizes):
            generator = np.random.default_rng((seed, site))
            for _ in range(size):
                yield site, self.draw(site, generator)


def plain_people(sizes: tuple[int, ...], volumes: int = 80, networks: float = 1.0) -> People:
    """Simulate 14 networks of amplitudes 1.3 to 0.7, in noise as large as one network's peak.

    Their time series are AR(1) with 0.6.
    """
    grid = template_grid(EDGE)
    maps = network_maps(grid.affine, grid.shape, grid.mask)[1]
    strong = networks * maps * np.linspace(1.3, 0.7, PLAIN, dtype=np.float32)

    def draw(site: int, generator: np.random.Generator) -> Array:
        del site
        steps = generator.standard_normal((PLAIN, volumes + 50), dtype=np.float32)
        courses = lfilter([0.8], [1.0, -0.6], steps, axis=1)[:, 50:].astype(np.float32)
        noise = generator.standard_normal((len(maps), volumes), dtype=np.float32)
        return np.asarray(strong @ courses + noise)

    return People(sizes, maps, draw)


def hard_people(sizes: tuple[int, ...], volumes: int = 100, networks: float = 1.0) -> People:
    """Simulate 20 networks from published regions; ``networks`` 0 leaves all except these."""
    regions, coordinates = Regions(), template_grid(EDGE).coordinates.astype(np.float32)
    maps = regions.maps(coordinates)
    generator = np.random.default_rng(7)
    noises, gains = generator.uniform(0.8, 1.4, len(sizes)), generator.uniform(0.5, 2.0, len(sizes))

    def draw(site: int, generator: np.random.Generator) -> Array:
        shifted = regions.maps(coordinates - 2.5 * generator.standard_normal(3, dtype=np.float32))
        size = shifted.shape[1]
        strengths = np.geomspace(1.6, 0.5, size) * np.exp(0.3 * generator.standard_normal(size))
        courses = _pink(size, volumes, generator) + 0.4 * _pink(1, volumes, generator)
        series = networks * shifted @ (strengths[:, None] * courses)
        series += 0.6 * _own(coordinates, generator) @ _pink(15, volumes, generator)
        series += 0.3 * _pink(1, volumes, generator)  # the global signal
        loud = np.where(generator.random(volumes) < 0.02, 4.0, 1.0)  # spikes
        noise = generator.standard_normal(series.shape, dtype=np.float32)
        return np.asarray(gains[site] * (series + noises[site] * loud * noise), dtype=np.float32)

    return People(sizes, maps, draw)


def _own(coordinates: Array, generator: np.random.Generator) -> Array:
    """Return 15 spots of only this participant."""
    centres = coordinates[generator.integers(len(coordinates), size=15)]
    return _spots(coordinates, centres, 10.0)


def _pink(rows: int, volumes: int, generator: np.random.Generator) -> Array:
    """Return time series with power 1/f, variance 1."""
    waves = np.fft.rfft(generator.standard_normal((rows, 2 * volumes)))
    waves[:, 0] = 0.0
    waves[:, 1:] /= np.sqrt(np.arange(1, waves.shape[1]))
    courses = np.fft.irfft(waves)[:, :volumes]
    return np.asarray(courses / courses.std(axis=1, keepdims=True), dtype=np.float32)


def _spots(coordinates: Array, centres: Array, width: float) -> Array:
    squared = (
        np.sum(coordinates**2, axis=1)[:, None]
        + np.sum(centres**2, axis=1)
        - 2.0 * coordinates @ centres.T
    )
    return np.asarray(np.exp(-0.5 * squared / width**2), dtype=np.float32)


class Regions:
    """Published regions and the networks that they fall into."""

    @cached_property
    def table(self) -> tuple[Array, Array]:
        """Centres in mm (N x 3), and each one's network, 0 to 19."""
        with (files("nilearn.datasets") / _TABLE).open() as file:
            rows = [r for r in csv.DictReader(file, delimiter=" ") if r["netName"] != "unassigned"]
        centres = np.array([[float(row[axis]) for axis in "xyz"] for row in rows], np.float32)
        names = np.array([row["netName"] for row in rows])
        labels, total = np.zeros(len(rows), dtype=int), 0
        for name in sorted(set(names)):
            within = names == name
            parts = _PARTS.get(name, 1)
            labels[within] = total + kmeans2(centres[within], parts, seed=1, minit="++")[1]
            total += parts
        return centres, labels

    def maps(self, coordinates: Array) -> Array:
        """Return one map for each network, largest value 1: D x 20."""
        centres, labels = self.table
        spots = _spots(coordinates, centres, _SPOT)
        members = np.eye(labels.max() + 1, dtype=np.float32)[labels]
        maps = spots @ members
        return np.asarray(maps / maps.max(axis=0))
