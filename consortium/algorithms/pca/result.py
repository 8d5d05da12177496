"""Eigenpairs of a PCA's release, and which of them exceed the bulk and the noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from consortium.algorithms.base import Captions, Release, Result, Table
from consortium.algorithms.findings import WITHHELD, Finding
from consortium.algorithms.pca.kernels.bulk import (
    find_bulk,
    freed_variances,
    selective_interval,
)
from consortium.base.array import Array
from consortium.base.formatting import count, number
from consortium.kernels.component_bootstrap import directions_of_mean
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.noise_law import SymmetricNoise
from consortium.kernels.power import eigenpairs, noise_edge

_QUANTILE = float(ndtri(0.975))
SETTLED = 0.5
"""Minimum cosine of two estimates of a direction: that of the better one with the truth is then
about the root of a half."""


def subspace(release: Release, components: int, samples: int) -> Result:
    """Return leading eigenpairs of a released second moment of a number of samples.

    Returns
    -------
    Result
        ``basis`` (D x K, orthonormal columns), ``eigenvalues`` (K, descending, as released);
        ``noise_edge`` is the spectral norm of the noise, ``edge`` the upper end of the bulk of
        noise, sampling error and the data's own white part: smaller eigenvalues mean nothing.
    """
    matrix = unpack_symmetric(release.values)
    size = len(matrix)
    level = release.deviation
    _, vectors = eigh(matrix, subset_by_index=(size - components, size - 1))
    values = np.linalg.eigvalsh(matrix)[::-1]
    edge = find_bulk(values, level, samples, np.random.default_rng(0)).edge
    found = int(np.count_nonzero(values[:components] > edge))
    freed, errors, total_error = freed_variances(values, found, level)
    total = float(np.trace(matrix))
    numbers: dict[str, Any] = {
        "noise_edge": level * math.sqrt(2.0 * size),
        "edge": edge,
        "found": found,
        "captured": float(freed.sum()) if found else WITHHELD,
        "total": total,
    }
    whole = _Whole(total, size, level)
    shares = tuple(
        whole.share(float(each), float(value) - edge, float(error))
        for each, value, error in zip(freed, values, errors, strict=False)
    )
    all_found = (
        whole.together(shares, errors, float(freed.sum()), total_error) if found else Finding()
    )
    shares += (Finding(),) * (components - found)
    arrays = {"basis": vectors[:, ::-1], "eigenvalues": values[:components]}
    return make_result(
        arrays, numbers, shares, all_found, tuple(k < found for k in range(components))
    )


def power_subspace(
    product: Array, release: Release, before: Array | None, total: float, samples: int
) -> Result:
    """Return eigenpairs of the last product; ``total`` is the first one's estimate of all variance.

    Those beyond the edge that were also in the product ``before``, which has other noise, count as
    found: a direction of a first product may be a mixture of all strong ones. No share of the
    variance is reported, because that total is estimated from only K random directions.
    """
    features, size = product.shape
    vectors, values = eigenpairs(product, release.deviation)
    noise = noise_edge(features, size, release.deviation)
    white = max(total, 0.0) / features * (1.0 + math.sqrt(features / max(samples, 1))) ** 2
    seen = values > white + noise
    found = seen & (_agreement(vectors, before) >= SETTLED)
    numbers: dict[str, Any] = {"noise_edge": noise}
    if found.any() or not seen.any():
        numbers["edge"] = white + noise
    numbers |= {"found": int(found.sum()), "captured": WITHHELD}
    shares = (Finding(),) * size
    arrays = {"basis": vectors, "eigenvalues": values}
    return make_result(arrays, numbers, shares, Finding(), tuple(found.tolist()))


def _agreement(vectors: Array, before: Array | None) -> Array:
    """Return the absolute cosine of each direction with the nearest one of the product before."""
    if before is None:
        return np.zeros(vectors.shape[1])
    return np.asarray(np.abs(vectors.T @ before).max(axis=1))


@dataclass(frozen=True)
class _Whole:
    """The noisy total variance, which is the denominator of shares.

    c/t varies as c - (c/t) t: c, of k directions, is part of t, which has all D directions.
    """

    total: float
    """t."""
    size: int
    """D."""
    level: float
    """Deviation of the noise along a direction."""

    def spread(self, part: float, many: int, error: float = 0.0) -> float:
        """Return the standard deviation of the share of ``many`` directions."""
        noise = self.level * math.sqrt(max(many * (1.0 - 2.0 * part) + part**2 * self.size, 0.0))
        return math.hypot(noise, error) / self.total

    def share(self, freed: float, beyond: float, error: float) -> Finding:
        """Return a direction's share, given that its eigenvalue exceeds the edge by ``beyond``."""
        if self._drowned:
            return Finding()
        part = freed / self.total
        threshold = part - beyond / self.total
        low, high = selective_interval(part, self.spread(part, 1, error), threshold)
        return Finding(part, max(low, 0.0), min(max(high, part), 1.0))

    def together(
        self, shares: Sequence[Finding], errors: Array, freed: float, total_error: float
    ) -> Finding:
        """Return the share of all found directions, whose lower end accounts for selection."""
        if self._drowned:
            return Finding()
        part = freed / self.total
        reach = _QUANTILE * self.spread(part, len(shares), total_error)
        moved = sum(
            max(each.value - _QUANTILE * self.spread(each.value, 1, error) - each.low, 0.0)
            for each, error in zip(shares, errors, strict=True)
        )
        return Finding(part, max(part - reach - moved, 0.0), min(part + reach, 1.0))

    @property
    def _drowned(self) -> bool:
        return self.total - 2.0 * _QUANTILE * self.level * math.sqrt(self.size) <= 0


def shared_directions(release: Release, size: int, persons: int) -> tuple[Array, int, float]:
    """Return the K leading directions of a released mean projector, and how many exceed the noise.

    Returns
    -------
    directions : array, shape (d, K)
        All K directions, the strongest first, whether or not they exceed the noise.
    found : int
        Number of the first directions whose eigenvalues exceed the limit.
    limit : float
        Largest eigenvalue that noise explains.
    """
    matrix = unpack_symmetric(release.values)
    seen = directions_of_mean(matrix, release.deviation, size, persons, size)
    vectors = eigh(matrix, subset_by_index=(len(matrix) - size, len(matrix) - 1))[1]
    return vectors[:, ::-1], seen.count, seen.limit


def axes_within(basis: Array, release: Release, seen: int, limit: float) -> Result:
    """Return principal axes of `pca` within the directions, the largest variance first.

    An axis is found if at least half of it is in found directions. Variances are at least half of
    the edge of the noise, since whitening divides by their roots.
    """
    moment = unpack_symmetric(release.values)
    values, axes = np.linalg.eigh(moment)
    values = values[::-1]
    axes = axes[:, ::-1]
    noise = SymmetricNoise(len(moment), release.deviation).edge
    within = np.square(axes[:seen]).sum(axis=0)
    found = tuple(bool(part >= 0.5) for part in within)
    numbers: dict[str, Any] = {
        "noise_edge": noise,
        "limit": limit,
        "found": sum(found),
        "captured": WITHHELD,
    }
    arrays = {"basis": basis @ axes, "eigenvalues": np.maximum(values, noise / 2.0)}
    return make_result(arrays, numbers, (Finding(),) * len(found), Finding(), found)


def make_result(
    arrays: dict[str, Array],
    numbers: dict[str, Any],
    shares: tuple[Finding, ...],
    together: Finding,
    found: tuple[bool, ...],
) -> Result:
    """Make the result of a PCA from its release, for any solver.

    Parameters
    ----------
    arrays : dict
        ``basis`` (D x K) and ``eigenvalues`` (K).
    numbers : dict
        ``edge`` among them, the variance above which a direction is found, if there is one.
    shares : tuple of Finding
        Share of the variance of each direction.
    together : Finding
        Share of all found ones.
    found : tuple of bool
        Which directions were found.
    """
    values = arrays["eigenvalues"]
    rows = [
        (k, float(value), share, "found" if each else "not found")
        for k, (value, share, each) in enumerate(zip(values, shares, found, strict=True), 1)
    ]
    table = Table(
        "Released eigenvalues, and each direction's share of the variance of the participants in "
        "the study, as clipped, corrected for the noise, with 95 % interval. A direction is "
        "found beyond the edge of noise, chance and white data.",
        ("component", "eigenvalue", "share", "state"),
        (*rows, ("found together", float(values[np.array(found)].sum()), together, "")),
    )
    words = Captions(
        headline=_headline(sum(found), len(found), numbers.get("edge")),
        sign=True,
        found=any(found),
        columns_found=found,
    )
    return Result(
        arrays,
        numbers,
        maps="basis",
        variances="eigenvalues",
        shares=shares,
        tables={"components": table},
        captions=words,
    )


def _headline(found: int, many: int, edge: float | None) -> str:
    if not found and edge is None:
        return (
            "Nothing was found: no direction that participants share stands out of noise and "
            "chance."
        )
    if not found and edge is not None:
        return (
            "Nothing was found; at this ε and these numbers a component with a variance below "
            f"{number(edge)} would not be seen."
        )
    rest = "" if found == many else f"; the other {many - found} could be noise"
    return f"{count(found, 'component')} found{rest}."
