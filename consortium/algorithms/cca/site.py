"""A site's half of analyses of stacked views: means and second moments of participants' vectors.

After the first release a query contains its estimates: a public centre and, for each view, a radius
to which deviations from the centre are clipped and by which they are then divided. A hostile centre
may choose both. For any choice, a participant's whole contribution is clipped to the planned bound
again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.site_constants import site_constants
from consortium.kernels.moments import add_second_moment, pack_symmetric
from consortium.kernels.power import add_volume_products
from consortium.kernels.tiles import product_of_columns
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import bounded_basis, clip_columns, finite_columns

if TYPE_CHECKING:
    from consortium.algorithms.cca.centre import Cca


def reduction(view: str) -> str:
    """Return the stage of `cca` that reduces a view."""
    return f"reduce-{view}"


def stacked_location(plan: Cca, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of scaled vectors y, and of √V/2 ‖y_v‖² for each view v.

    Returns
    -------
    array, length D + V
        The mean vector, and numbers from which the views' mean squared distances from it follow.
    """
    del query
    parts = _deviations(plan, data, np.zeros(data.features), plan.bounds)
    with np.errstate(all="ignore"):
        scaled = [part / scale for scale, part in zip(plan.scales, parts, strict=True)]
        squares = [np.sqrt(len(parts)) / 2 * np.square(part).sum(axis=0) for part in scaled]
    persons = clip_columns(np.vstack([*scaled, *squares]), bound.norm)
    return np.asarray(persons.sum(axis=1) / data.units)


def stacked_moment(plan: Cca, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of z zᵀ, packed; z contains the scaled views and c e.

    e is one at the site's place, or at its only place, and zero elsewhere. ‖z‖² is clipped to the
    bound B for any query. z zᵀ has the norm ‖z‖², and two of them an inner product of zero or more.
    So replacing a participant moves the mean by at most √2·B/n.

    A view with a basis (argument ``basis-`` and its name) is first reduced to the basis's columns.

    Returns
    -------
    array, length d (d + 1) / 2, for z of d entries
    """
    parts = _unit_deviations(plan, data, query)
    rows = []
    with np.errstate(all="ignore"):
        for (name, _), part, share in zip(plan.shape.views, parts, plan.shares, strict=True):
            if name in plan.parameters.reduce:
                basis = bounded_basis(query.arguments[f"basis-{name}"])
                part = product_of_columns(basis.T, part)
            rows.append(np.sqrt(share) * part)
    constants = site_constants(plan.places, query.site, data.units)
    rows.append(plan.parameters.constant * constants)
    persons = clip_columns(np.vstack(rows), math.sqrt(bound.norm))  # ‖z zᵀ‖ = ‖z‖²
    size = len(persons)
    total = add_second_moment(np.zeros((size, size), order="F"), persons, 1.0)
    return pack_symmetric(total) / data.units


def view_moment(plan: Cca, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of x xᵀ of one view's scaled deviation x, packed."""
    persons = clip_columns(_one_view(plan, data, query), math.sqrt(bound.norm))
    total = add_second_moment(np.zeros((len(persons),) * 2, order="F"), persons, 1.0)
    return pack_symmetric(total) / data.units


def view_product(plan: Cca, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of x xᵀ Q of one view's scaled deviation x: D_v x K."""
    basis = bounded_basis(query.arguments["basis"])
    total = np.zeros(basis.shape)
    add_volume_products(total, _one_view(plan, data, query), basis, bound.norm)
    return total / data.units


def _one_view(plan: Cca, data: SiteData, query: Query) -> Array:
    """Return unit deviations of the view that a stage reduces."""
    index = [reduction(name) for name, _ in plan.shape.views].index(query.stage)
    return finite_columns(_unit_deviations(plan, data, query)[index])


def _unit_deviations(plan: Cca, data: SiteData, query: Query) -> list[Array]:
    """Return each view's deviations from the centre, over the radius of the clipping."""
    centre, radii = plan.geometry(query.arguments)
    parts = _deviations(plan, data, centre, radii)
    with np.errstate(all="ignore"):
        return [part / radius for part, radius in zip(parts, radii, strict=True)]


def _deviations(plan: Cca, data: SiteData, centre: Array, radii: Array) -> list[Array]:
    """Return each view's deviations from the centre, clipped to its radius: D_v x M each."""
    stops = np.cumsum([size for _, size in plan.shape.views])
    with np.errstate(all="ignore"):
        whole = data.table().astype(np.float64) - centre[:, None]
        parts = np.split(whole, stops[:-1])
        return [clip_columns(part, float(most)) for part, most in zip(parts, radii, strict=True)]
