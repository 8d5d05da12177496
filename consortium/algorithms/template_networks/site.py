"""The site's half of networks by templates: its participants' maps, and connectivity.

Sensitivity. A participant's R maps are released together as one array M, each map of norm one or
zero. So ‖M‖ ≤ √R and ‖M − M'‖ ≤ 2√R, and the mean over n participants moves by at most 2√R/n. That
is reached in the limit: a map is (a + z)/√(1 + ‖z‖²) for its template a and any z orthogonal to all
templates (`kernels.dual_regression`), which tends to z/‖z‖ for a large z, and −z is another
participant's. Maps of two participants may be opposite, so the cone's √2 is not valid. Fisher's z
of all R(R − 1)/2 correlations are clipped to the norm B, and move by 2B/n.

Templates are signed with the study, and a site uses its own copy. The proof does not depend on
them, on the basis, or on the precision of a participant's regression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.over_persons import sum_over_persons
from consortium.algorithms.subspace import series_in
from consortium.kernels.dual_regression import fisher_connectivity, person_maps
from consortium.kernels.projectors import GlobalSignal
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector

if TYPE_CHECKING:
    from consortium.algorithms.template_networks.centre import TemplateNetworks

_Measure = Callable[[Array, Array], Array]


def mean_maps(plan: TemplateNetworks, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of maps by dual regression, d·R entries, row by row."""
    del query
    return _sum(person_maps, plan, data, bound, plan.maps.shape).ravel() / len(data.lengths)


def mean_connectivity(plan: TemplateNetworks, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean of Fisher's z between networks' time series, R(R - 1)/2 entries."""
    del query
    return _sum(fisher_connectivity, plan, data, bound, (plan.connections,)) / len(data.lengths)


def _sum(
    measure: _Measure,
    plan: TemplateNetworks,
    data: SiteData,
    bound: Bound,
    shape: tuple[int, ...],
) -> Array:
    """Sum over participants a clipped measure of each one's series in the basis."""
    asked = measure, plan.maps, plan.for_series, plan.parameters.global_signal
    return sum_over_persons(data, partial(_sum_measures, *asked, bound.norm, shape), shape)


def _sum_measures(
    measure: _Measure,
    templates: Array,
    basis: Array | None,
    global_signal: GlobalSignal,
    norm: float,
    shape: tuple[int, ...],
    blocks: Iterable[Array],
) -> Array:
    total = np.zeros(shape)
    for series in series_in(blocks, basis, global_signal):
        total += clip_vector(measure(series, templates), norm)
    return total
