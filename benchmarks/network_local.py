"""``python -m benchmarks.networks local FOLDER``: noise that differs between places.

Participants' series of the 200 regions of FOLDER (see `benchmarks.network_halves`) are Gaussian
noise whose strength, width or left-right symmetry differs between places. The table has studies
without networks that find something, and studies in which six published networks lie on the same
noise: how many networks are found, and how many of the found maps correlate by less than .5 with
each network.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.affines import apply_affine
from scipy.spatial.distance import cdist

from benchmarks.network_halves import _centres as centres_of
from benchmarks.network_pool import FALSE, FOUND, answer, cosines
from benchmarks.network_smooth import Group, is_found, region_plan
from benchmarks.network_verdicts import FWHM, MIRROR, OVERLAPPING
from benchmarks.network_verdicts import _sizes as sizes_of
from benchmarks.real_networks import published_maps
from benchmarks.timing import command, show
from consortium.algorithms.base import Array

PERSONS, EPSILON = 600, 8.0
RUNS, FIRST = 4, 500
WITH_NETWORKS = 2
"""Runs with networks."""
_STRONG = 1.3
"""Root mean square of a network's strongest region over that of the noise."""
_WIDTH = 16.0


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of an atlas."""

    centres: Array
    """Shape (d, 3). In mm of the MNI152 space."""
    voxels: Array
    """Shape (v, 3)."""
    labels: Array
    """Shape (v,). Index of each voxel's region."""

    @classmethod
    def of(cls, folder: Path) -> "Regions":
        """Read the atlas of a folder."""
        atlas: Any = nibabel.load(folder / "CC200.nii.gz")
        values = np.asarray(atlas.dataobj).round().astype(np.int64)
        voxels = apply_affine(atlas.affine, np.argwhere(values > 0))
        return cls(
            centres_of(folder), voxels, np.unique(values[values > 0], return_inverse=True)[1]
        )

    @property
    def front(self) -> Array:
        """Return places from 0 at the back to 1 at the front, shape (d,)."""
        along = self.centres[:, 1]
        return np.asarray((along - along.min()) / np.ptp(along))

    @property
    def radius(self) -> Array:
        """Return distances from the middle, over the extent of the brain, shape (d,)."""
        spread = self.centres - self.centres.mean(axis=0)
        return np.asarray(np.linalg.norm(spread / self.centres.std(axis=0), axis=1))

    def within(self, places: Array, distance: float) -> Array:
        """Return where regions are within a distance of a place, shape (d,)."""
        return np.asarray(np.linalg.norm(self.centres - places, axis=1) < distance)


def uneven(regions: Regions, widths: Array | float, deviations: Array | float = 1.0) -> Array:
    """Return the covariance of noise with local widths at half height in mm, and deviations.

    That of Paciorek and Schervish (2006).
    """
    size = len(regions.centres)
    lengths = np.broadcast_to(2.0 * np.asarray(widths) / FWHM, size)
    each = np.broadcast_to(deviations, size)
    squares = (lengths[:, None] ** 2 + lengths**2) / 2.0
    scale = (np.outer(lengths, lengths) / squares) ** 1.5
    apart = cdist(regions.centres, regions.centres, "sqeuclidean")
    return np.asarray(each[:, None] * scale * np.exp(-apart / squares) * each)


def _half_symmetric(regions: Regions) -> Array:
    places, length = regions.centres, 2.0 * _WIDTH / FWHM
    across = np.exp(-cdist(places, places * MIRROR, "sqeuclidean") / length**2)
    front = (places[:, 1] > np.median(places[:, 1])).astype(float)
    return uneven(regions, _WIDTH) + 0.9 * np.outer(front, front) * (across + across.T) / 2.0


def _averaged(regions: Regions) -> Array:
    """Return voxels' noise of 12 mm, averaged over regions."""
    length, size = 2.0 * 12.0 / FWHM, len(regions.centres)
    total = np.zeros((size, size))
    counts = np.bincount(regions.labels)
    for region in range(size):
        own = regions.voxels[regions.labels == region]
        near = np.exp(-cdist(own, regions.voxels, "sqeuclidean") / length**2).mean(axis=0)
        total[region] = np.bincount(regions.labels, near) / counts
    return (total + total.T) / 2.0


def _along_vessels(regions: Regions) -> Array:
    near = (np.abs(regions.centres[:, 0]) < 8.0) | regions.within(np.array([0, -10, -30]), 20.0)
    return uneven(regions, _WIDTH, np.where(near, 3.0, 1.0))


def _bump(regions: Regions) -> Array:
    spot = np.square((regions.centres - np.array([30.0, -60.0, 40.0])) / 20.0).sum(axis=1)
    return uneven(regions, 15.0, 1.0 + 3.0 * np.exp(-spot / 2.0))


def _random(regions: Regions) -> Array:
    generator, size = np.random.default_rng(11), len(regions.centres)
    widths = generator.uniform(8.0, 20.0, size)
    return uneven(regions, widths, np.exp(0.3 * generator.standard_normal(size)))


def _edge(regions: Regions) -> Array:
    outer = regions.radius > np.quantile(regions.radius, 0.6)
    return uneven(regions, _WIDTH, np.where(outer, 2.5, 1.0))


def _outside(regions: Regions) -> Array:
    return uneven(regions, np.where(regions.radius > np.median(regions.radius), 26.0, 10.0))


def _unequal(regions: Regions) -> Array:
    generator = np.random.default_rng(7)
    return uneven(regions, _WIDTH, np.exp(0.4 * generator.standard_normal(len(regions.centres))))


KINDS: Mapping[str, Callable[[Regions], Array]] = {
    "2.5 times the standard deviation at the brain's edge": _edge,
    "3 times the standard deviation along vessels": _along_vessels,
    "width of 10 to 25 mm from back to front": lambda r: uneven(r, 10.0 + 15.0 * r.front),
    "26 mm outside and 10 mm inside": _outside,
    "unequal standard deviations of regions (log-normal, 0.4)": _unequal,
    "voxel noise of 12 mm, averaged over regions": _averaged,
    "left-right symmetric (.90) in the front half alone": _half_symmetric,
    "standard deviation rising three-fold from back to front": (
        lambda r: uneven(r, 15.0, 1.0 + 2.0 * r.front)
    ),
    "one spot with 4 times the standard deviation": _bump,
    "random widths (8 to 20 mm) and standard deviations": _random,
    "covariance exp(-distance / 20 mm)": lambda r: np.exp(-cdist(r.centres, r.centres) / 20.0),
    "two widths, 8 and 40 mm": lambda r: 0.6 * uneven(r, 8.0) + 0.4 * uneven(r, 40.0),
}
"""Covariances of the noise; the width is 16 mm or 15 mm where none is named."""


def local(folder: Path) -> None:
    """Print studies that find something in noise, and networks that are found on it."""
    regions, rows = Regions.of(folder), []
    networks = np.maximum(published_maps(folder), 0.0)
    for name, make in KINDS.items():
        noise = make(regions)
        none = np.zeros((len(noise), 0))
        told = [_study(regions, noise, none, FIRST + run) for run in range(RUNS)]
        without = [found for found, _, _ in told]
        deviation = np.sqrt(np.trace(noise) / len(noise))
        strong = _STRONG * deviation * networks / networks.max(axis=0)
        with_them = np.array(
            [
                _study(regions, noise, _some(strong, run), FIRST + run)
                for run in range(WITH_NETWORKS)
            ]
        ).mean(axis=0)
        rows.append(
            [name, str(sum(each > 0 for each in without)), f"{np.mean(without):.1f}"]
            + [f"{each:.1f}" for each in with_them]
        )
    show(
        f"Noise that differs between places, {PERSONS} participants, ε = {EPSILON:g}: studies that "
        f"find something, of {RUNS}, and maps of each; with {OVERLAPPING} networks, of "
        f"{WITH_NETWORKS}: maps found, networks among them, maps that are none",
        ["noise", "find something", "maps", "found", f"of {OVERLAPPING} by {FOUND}", "none"],
        rows,
    )


def _some(networks: Array, seed: int) -> Array:
    order = np.random.default_rng(seed).permutation(networks.shape[1])
    return np.asarray(networks[:, order[:OVERLAPPING]])


def _study(regions: Regions, noise: Array, networks: Array, seed: int) -> tuple[int, int, int]:
    """Return the maps found, networks that one of them has, and maps that have no network."""
    made = region_plan(sizes_of(PERSONS), EPSILON, regions.centres)
    matrix = Group(noise, networks / 2.0).mean_projector(PERSONS, np.random.default_rng(seed))
    result = answer(matrix, made, seed)
    found = is_found(result)
    if not found.any() or not networks.shape[1]:
        return int(found.sum()), 0, int(found.sum())
    agreed = cosines(result.arrays["maps"], networks)[:, found]
    return (
        int(found.sum()),
        int(np.sum(agreed.max(axis=1) >= FOUND)),
        int(np.sum(agreed.max(axis=0) < FALSE)),
    )


if __name__ == "__main__":
    command(lambda folder: local(Path(folder)))
