"""A site's half of `pca`: second moments, and their products with a few columns.

Products are for the features of a whole brain, without forming the second moment A: a round
releases A Q, D x K numbers, for the orthonormal Q of the round before. A unit's X Xᵀ Q / T is
clipped to a Frobenius norm. So the sensitivity is valid for any Q. Two units' products may have any
angle, so it is 2·B, not √2·B. Variances within a few directions are again a moment.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from consortium.algorithms.base import Query, SiteData
from consortium.algorithms.over_persons import sum_over_persons
from consortium.base.array import Array
from consortium.kernels.moments import add_person_moment, add_volume_moments, pack_symmetric
from consortium.kernels.power import add_subject_product, add_volume_products
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.clipping import bounded_basis


def second_moment(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `pca`'s mean over units of the clipped second moment, packed: D(D+1)/2 entries."""
    del query
    part = partial(_sum_moments, data.features, data.unit, bound.norm)
    total = sum_over_persons(data, part, (data.features,) * 2)
    return pack_symmetric(total) / data.units


def power_product(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `pca`'s mean over units of the clipped X Xᵀ Q / T (x xᵀ Q of a volume), D x K."""
    basis = bounded_basis(query.arguments["basis"])
    part = partial(_sum_products, basis, data.unit, bound.norm)
    return sum_over_persons(data, part, basis.shape) / data.units


def variances_within(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return `pca`'s mean over participants of the clipped second moment of Qᵀ X, packed."""
    basis = bounded_basis(query.arguments["basis"])
    part = partial(_sum_variances, basis, bound.norm)
    total = sum_over_persons(data, part, (basis.shape[1],) * 2)
    return pack_symmetric(total) / data.units


def _sum_moments(features: int, unit: Unit, norm: float, blocks: Iterable[Array]) -> Array:
    total = np.zeros((features, features), order="F")
    add = add_person_moment if unit == "subject" else add_volume_moments
    for block in blocks:
        total = add(total, block, norm)
    return total


def _sum_products(basis: Array, unit: Unit, norm: float, blocks: Iterable[Array]) -> Array:
    total = np.zeros(basis.shape)
    narrow: Array = basis
    for block in blocks:
        if unit == "timepoint":
            add_volume_products(total, block, basis, norm)
            continue
        if narrow.dtype != block.dtype:
            with np.errstate(over="ignore"):
                narrow = basis.astype(block.dtype)
        add_subject_product(total, block, narrow, norm)
    return total


def _sum_variances(basis: Array, norm: float, blocks: Iterable[Array]) -> Array:
    total = np.zeros((basis.shape[1],) * 2, order="F")
    narrow: Array = basis
    for block in blocks:
        with np.errstate(over="ignore", invalid="ignore"):
            if narrow.dtype != block.dtype:
                narrow = basis.astype(block.dtype)
            reduced = narrow.T @ block
        total = add_person_moment(total, reduced, norm)
    return total
