"""Eigenpairs of what a PCA released, and which of them stand out of bulk and noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from consortium.algorithms.base import Array, Captions, Release, Result, Table
from consortium.algorithms.findings import NOT_TOLD, Finding
from consortium.formatting import count, number
from consortium.kernels.bulk import find_bulk, freed_variances
from consortium.kernels.moments import unpack_symmetric
from consortium.kernels.power import eigenpairs, noise_edge

_QUANTILE = float(ndtri(0.975))


def subspace(release: Release, components: int, samples: int) -> Result:
    """Leading eigenpairs of a released second moment of so many samples.

    Returns
    -------
    Result
        ``basis`` (D x K, orthonormal columns), ``eigenvalues`` (K, descending, as released);
        ``noise_edge`` is the spectral norm that noise alone would have, ``edge`` where the bulk of
        noise, chance and the data's own white part ends: smaller eigenvalues mean nothing.
    """
    matrix = unpack_symmetric(release.values)
    size, level = len(matrix), release.deviation
    _, vectors = eigh(matrix, subset_by_index=(size - components, size - 1))
    values = np.linalg.eigvalsh(matrix)[::-1]
    edge = find_bulk(values, level, samples, np.random.default_rng(0)).edge
    found = int(np.count_nonzero(values[:components] > edge))
    freed, doubts = freed_variances(values, found, level)
    total = float(np.trace(matrix))
    numbers: dict[str, Any] = {
        "noise_edge": level * math.sqrt(2.0 * size),
        "edge": edge,
        "found": found,
        "captured": float(freed.sum()) if found else NOT_TOLD,
        "total": total,
    }
    shares = tuple(
        _share(float(each), 1, total, size, level, float(doubt))
        for each, doubt in zip(freed, doubts, strict=True)
    )
    shares += (Finding(),) * (components - found)
    all_found = _share(float(freed.sum()), found, total, size, level) if found else Finding()
    arrays = {"basis": vectors[:, ::-1], "eigenvalues": values[:components]}
    return _result(arrays, numbers, shares, all_found)


def power_subspace(product: Array, release: Release, total: float, samples: int) -> Result:
    """Eigenpairs of the last product; ``total`` is what the first one tells of all variance.

    No share of the variance is told: that total is known from K random directions only.
    """
    features, size = product.shape
    vectors, values = eigenpairs(product, release.deviation)
    noise = noise_edge(features, size, release.deviation)
    white = max(total, 0.0) / features * (1.0 + math.sqrt(features / max(samples, 1))) ** 2
    found = int(np.count_nonzero(values > white + noise))
    numbers: dict[str, Any] = {
        "noise_edge": noise,
        "edge": white + noise,
        "found": found,
        "captured": NOT_TOLD,
    }
    shares = (Finding(),) * size
    return _result({"basis": vectors, "eigenvalues": values}, numbers, shares, Finding())


def _share(
    freed: float, many: int, total: float, size: int, level: float, doubt: float = 0.0
) -> Finding:
    """Part of the total variance, which has noise of its own: c/t varies as c − (c/t) t.

    c, of so many directions, is part of t, which has D of them.
    """
    if total - 2.0 * _QUANTILE * level * math.sqrt(size) <= 0:
        return Finding()
    part = freed / total
    noise = level * math.sqrt(max(many * (1.0 - 2.0 * part) + part**2 * size, 0.0))
    spread = math.hypot(noise, doubt) / total
    return Finding(part, max(part - _QUANTILE * spread, 0.0), min(part + _QUANTILE * spread, 1.0))


def _result(
    arrays: dict[str, Array], numbers: dict[str, Any], shares: tuple[Finding, ...], all_: Finding
) -> Result:
    found, many = int(numbers["found"]), len(shares)
    rows = [
        (k + 1, float(value), share, "found" if k < found else "not found")
        for k, (value, share) in enumerate(zip(arrays["eigenvalues"], shares, strict=True))
    ]
    table = Table(
        "Released eigenvalues, and each direction's share of the variance of the persons in the "
        "study, as clipped, without what noise adds, with 95 % interval. Found are those beyond "
        "the edge of what noise, chance and white data make.",
        ("component", "eigenvalue", "share", "state"),
        (*rows, ("found together", float(arrays["eigenvalues"][:found].sum()), all_, "")),
    )
    words = Captions(
        headline=_headline(found, many, float(numbers["edge"])),
        sign=True,
        found=found > 0,
        columns_found=tuple(k < found for k in range(many)),
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


def _headline(found: int, many: int, edge: float) -> str:
    if not found:
        return (
            "Nothing was found; at this ε and these numbers a component with a variance below "
            f"{number(edge)} would not be seen."
        )
    rest = "" if found == many else f"; the other {many - found} could be noise"
    return f"{count(found, 'component')} found{rest}."
