"""A site's half of analyses of stacked views: means and second moments of persons' vectors.

Every query brings a public centre and, for each view, a norm that deviations from the centre are
clipped to and a factor that they are then multiplied by. A hostile centre may choose all of these;
whatever it chooses, a person's whole contribution is clipped to the planned bound once more.
"""

import math

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.query_arguments import (
    array_argument,
    feature_argument,
    number_argument,
    site_constants,
)
from consortium.errors import ProtocolError
from consortium.kernels.moments import add_second_moment, pack_symmetric
from consortium.kernels.power import add_volume_products
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_columns, finite_columns


def stacked_location(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of their scaled vectors y and of √V/2 times ‖y_v‖² for each view v.

    Returns
    -------
    array, length D + V
        The mean vector, and what the views' mean squared distances from it follow from.
    """
    parts = _deviations(data, query)
    factors = array_argument(query, "factors", 1)
    with np.errstate(all="ignore"):
        scaled = [factor * part for factor, part in zip(factors, parts, strict=True)]
        squares = [np.sqrt(len(parts)) / 2 * np.square(part).sum(axis=0) for part in scaled]
    persons = clip_columns(np.vstack([*scaled, *squares]), bound.norm)
    return np.asarray(persons.sum(axis=1) / data.units)


def stacked_moment(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of z zᵀ, packed; z holds the scaled views and c e.

    e is one in the place of the site, or in its only place, and zero in the others. ‖z‖² is
    clipped to the bound B whatever the query says; z zᵀ has the norm ‖z‖², and two of them an
    inner product of zero or more, so that replacing a person moves the mean by √2·B/n at most.

    A view with a basis (argument ``basis-`` and its name) is first reduced to the basis's columns.

    Returns
    -------
    array, length d (d + 1) / 2, for z of d entries
    """
    parts = _deviations(data, query)
    factors = array_argument(query, "factors", 1)
    rows = []
    with np.errstate(all="ignore"):
        for (name, size), part, factor in zip(data.extent.views, parts, factors, strict=True):
            if f"basis-{name}" in query.arguments:
                part = feature_argument(query, f"basis-{name}", size).T @ part
            rows.append(factor * part)
    rows.append(number_argument(query, "constant") * site_constants(query, data.units))
    persons = clip_columns(np.vstack(rows), math.sqrt(bound.norm))  # ‖z zᵀ‖ = ‖z‖²
    size = len(persons)
    total = add_second_moment(np.zeros((size, size), order="F"), persons, 1.0)
    return pack_symmetric(total) / data.units


def view_moment(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of x xᵀ of one view's scaled deviation x, packed."""
    persons = clip_columns(_one_view(data, query), math.sqrt(bound.norm))
    total = add_second_moment(np.zeros((len(persons),) * 2, order="F"), persons, 1.0)
    return pack_symmetric(total) / data.units


def view_product(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of x xᵀ Q of one view's scaled deviation x, D_v x K entries."""
    persons = _one_view(data, query)
    basis = feature_argument(query, "basis", len(persons))
    total = np.zeros(basis.shape)
    add_volume_products(total, persons, basis, bound.norm)
    return total / data.units


def _one_view(data: SiteData, query: Query) -> Array:
    index = query.arguments.get("view")
    if not isinstance(index, int) or not 0 <= index < len(data.extent.views):
        raise ProtocolError("The query names a view that the study does not have; discard it.")
    with np.errstate(all="ignore"):
        factor = array_argument(query, "factors", 1)[index]
        return finite_columns(factor * _deviations(data, query)[index])


def _deviations(data: SiteData, query: Query) -> list[Array]:
    """Each view's deviations from the centre, clipped to its norm: D_v x M each."""
    centre = feature_argument(query, "centre", data.features, dimensions=1)
    norms, factors = (array_argument(query, name, 1) for name in ("norms", "factors"))
    views = data.extent.views
    if not len(norms) == len(factors) == len(views) > 0:
        raise ProtocolError("The query's norms or factors don't fit the views; discard it.")
    stops = np.cumsum([size for _, size in views])
    with np.errstate(all="ignore"):
        whole = data.table().astype(np.float64) - centre[:, None]
        parts = np.split(whole, stops[:-1])
        return [clip_columns(part, float(norm)) for part, norm in zip(parts, norms, strict=True)]
