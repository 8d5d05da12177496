"""The simulation of the dissertation's section 6.5, as arrays.

R = 20 spatial maps of 30 x 30 pixels, M subjects with 250 volumes each, S sites with equal shares;
X_m = A S_m. A subject is a child of one seed sequence, so each subject can be drawn separately,
with the same result in any order and in any process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Extent, Resolution, units_of
from consortium.base.position_hashes import hashes_of_positions
from consortium.privacy.bounds import Unit
from consortium.simulation.signals import garch_filter, garch_innovations

Array = NDArray[np.float32]

SIDE = 30
SOURCES = 20
VOLUMES = 250
SITES = 4


@dataclass(frozen=True, eq=False)
class Chapter:
    """Simulated data with its truth; only the maps and the seed are stored.

    Parameters
    ----------
    mixing : array, shape (D, R)
        A; `chapter` scales it to Frobenius norm 1, which makes a volume's mean squared norm 1.
    subjects : int
        M.
    volumes : int
        T, of each subject.
    sites : int
        S; subject m belongs to site m mod S.
    noise : float
        Standard deviation of the white noise over the signal's root mean square per pixel.
    entropy : int
        Root of the random numbers in the time series.
    """

    mixing: Array
    subjects: int
    volumes: int
    sites: int
    noise: float
    entropy: int

    def members(self, site: int) -> range:
        """Return the subjects of a site, counted over the whole simulation."""
        return range(site, self.subjects, self.sites)

    def sources(self, members: Sequence[int]) -> Array:
        """Return several subjects' time series side by side, shape (R, len(members) * T).

        One pass of the recursion computes all subjects: 1024 subjects take less than a second.
        """
        rank = self.mixing.shape[1]
        drawn = [
            garch_innovations(self._generator(member, 0), rank, self.volumes) for member in members
        ]
        courses = garch_filter(np.stack(drawn, axis=1))
        return np.ascontiguousarray(courses.transpose(2, 1, 0).reshape(rank, -1))

    def all_sources(self) -> Array:
        """Return all subjects' time series, ordered by site and then by subject, shape (R, N)."""
        members = [member for site in range(self.sites) for member in self.members(site)]
        return self.sources(members)

    def block(self, member: int) -> Array:
        """Return one subject's volumes, shape (D, T)."""
        signal: Array = self.mixing @ self.sources([member])
        if self.noise:
            white = self._generator(member, 1).standard_normal(signal.shape, dtype=np.float32)
            level = self.noise * np.linalg.norm(self.mixing) / np.sqrt(len(self.mixing))
            signal += np.float32(level) * white
        return signal

    def site(self, site: int, unit: Unit) -> ChapterSite:
        """Return one site's data as analyses receive them."""
        return ChapterSite(self, self.members(site), unit)

    def _generator(self, member: int, purpose: int) -> np.random.Generator:
        seed = np.random.SeedSequence(self.entropy, spawn_key=(member, purpose))
        return np.random.default_rng(seed)


class ChapterSite:
    """A site of the simulation; fits `consortium.algorithms.base.SiteData`."""

    def __init__(self, chapter: Chapter, members: Sequence[int], unit: Unit) -> None:
        self.chapter = chapter
        self.members = members
        self.unit = unit
        self.features = self.voxels = len(chapter.mixing)
        self.extent = Extent(self.features, self.voxels)
        self.lengths = (chapter.volumes,) * len(members)
        self._last: tuple[NDArray[Any], Array] | None = None

    @property
    def units(self) -> int:
        """Units of privacy."""
        return units_of(self.unit, self.lengths)

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """One number per subject."""
        return hashes_of_positions(len(self.members))

    def blocks(self, resolution: Resolution = "features") -> Iterator[Array]:
        """Yield one D x T array per subject, drawn when it is asked for."""
        del resolution  # there is but one
        return map(self.chapter.block, self.members)

    def table(self) -> Array:
        """Return all subjects' blocks side by side."""
        return np.hstack(list(self.blocks()))

    def reduced(self, basis: NDArray[Any]) -> Array:
        """Return ``basis.T @ X``, shape (K, N_s); the last one is kept."""
        if self._last is None or not np.array_equal(basis, self._last[0]):
            self._last = np.array(basis), self._reduce(np.asarray(basis, dtype=np.float32))
        return self._last[1]

    def _reduce(self, basis: Array) -> Array:
        if self.chapter.noise:
            return np.hstack([basis.T @ block for block in self.blocks()])
        # Without noise the pixels are not needed: (BᵀA) S instead of Bᵀ(A S).
        gain = np.asarray(basis.T @ self.chapter.mixing, dtype=np.float32)
        return gain @ self.chapter.sources(self.members)


def chapter(
    seed: int,
    *,
    subjects: int,
    sites: int = SITES,
    sources: int = SOURCES,
    side: int = SIDE,
    volumes: int = VOLUMES,
    noise: float = 0.0,
) -> Chapter:
    """Set up the simulation.

    Parameters
    ----------
    seed : int
        Of maps and courses; the maps are the same for any number of subjects.
    subjects, sites, sources, side, volumes, noise
        M, S, R, pixels along an edge, T, and the noise of `Chapter`.
    """
    maps_seed, courses_seed = np.random.SeedSequence(seed).generate_state(2, dtype=np.uint64)
    maps = chapter_maps(np.random.default_rng(int(maps_seed)), sources, side)
    mixing = maps / np.linalg.norm(maps)
    return Chapter(mixing.astype(np.float32), subjects, volumes, sites, noise, int(courses_seed))


def chapter_maps(generator: np.random.Generator, sources: int, side: int) -> Array:
    """Draw spatial maps: an oblique Gaussian blob each, spread over the image without crowding.

    Parameters
    ----------
    generator : numpy.random.Generator
    sources : int
        R.
    side : int
        Pixels along an edge.

    Returns
    -------
    array, shape (side², R)
        Columns of norm 1, so second moments do not distinguish the sources; every second map has
        a weaker negative partner.
    """
    columns = int(np.ceil(np.sqrt(sources)))
    rows = -(-sources // columns)
    cell = np.array([side / rows, side / columns])
    places = np.argwhere(np.ones((rows, columns)))[:sources] + 0.5
    centres = (places + generator.uniform(-0.25, 0.25, places.shape)) * cell
    maps = np.stack([_blob(generator, centre, side) for centre in centres], axis=1)
    partners = np.roll(maps, sources // 2, axis=1)
    partners[:, ::2] = 0
    maps -= 0.4 * partners
    return np.asarray(maps / np.linalg.norm(maps, axis=0), dtype=np.float32)


def _blob(
    generator: np.random.Generator, centre: NDArray[np.float64], side: int
) -> NDArray[np.float64]:
    """Return one oblique Gaussian on a square image, flattened."""
    pixels = np.indices((side, side)).reshape(2, -1).T - centre
    angle = generator.uniform(0, np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    widths = side * generator.uniform(0.04, 0.10, size=2)
    return np.asarray(np.exp(-0.5 * np.sum((pixels @ turn / widths) ** 2, axis=1)))
