"""The site's half of networks by templates: its persons' maps, and how their networks go together.

Sensitivity. A person's R maps are released together as one array M, each map of norm one or zero,
so that ‖M‖ ≤ √R and ‖M − M'‖ ≤ 2√R: the mean over n persons moves by 2√R/n at the most. That is
reached in the limit: a map is (a + z)/√(1 + ‖z‖²) for its template a and any z orthogonal to all
templates (`kernels.dual_regression`), which tends to z/‖z‖ for a large z, and −z is another
person's; two persons' maps may point apart, and the cone's √2 does not hold. Fisher's z of all
R(R − 1)/2 correlations are clipped to the norm B, and move by 2B/n.

Templates are signed with the study, and a site takes them from its own copy. Nothing of the proof
rests on them, on the basis, or on how exactly a person's regression is solved.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

import numpy as np

from consortium.algorithms.base import AnyPlaces, Array, Query, SiteData, Templates
from consortium.algorithms.over_persons import sum_over_persons
from consortium.algorithms.query_arguments import number_argument, word_argument
from consortium.algorithms.subspace import basis_at, series_in, smooth_basis
from consortium.errors import ProtocolError
from consortium.kernels.dual_regression import fisher_connectivity, person_maps
from consortium.kernels.projectors import GlobalSignal
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector, column_norms

_Measure = Callable[[Array, Array], Array]


def mean_maps(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of their maps by dual regression, d·R entries, row by row."""
    templates = _templates(data, query)
    total = _sum(person_maps, data, query, templates, bound, templates.shape)
    return total.ravel() / len(data.lengths)


def mean_connectivity(_plan: object, data: SiteData, query: Query, bound: Bound) -> Array:
    """Mean over persons of Fisher's z between their networks' courses, R(R - 1)/2 entries."""
    templates = _templates(data, query)
    count = templates.shape[1]
    shape = (count * (count - 1) // 2,)
    return _sum(fisher_connectivity, data, query, templates, bound, shape) / len(data.lengths)


def in_basis(templates: Templates, places: AnyPlaces | None, cutoff: float) -> Array:
    """Templates as a study has them in its basis, each of norm one, or zero: d x R."""
    values = np.asarray(templates.values, dtype=np.float64)
    if cutoff and places is not None:
        values = smooth_basis(places, cutoff).coefficients(values)
    norms = column_norms(values)
    return np.asarray(values / np.where(norms > 0, norms, 1.0))


def _templates(data: SiteData, query: Query) -> Array:
    """The study's templates in the basis."""
    cutoff = number_argument(query, "cutoff")
    places, templates = data.extent.places, data.extent.templates
    if templates is None or (cutoff and places is None):
        raise ProtocolError("The query's 'cutoff' or templates don't fit the study; discard it.")
    return in_basis(templates, places, cutoff)


def _sum(
    measure: _Measure,
    data: SiteData,
    query: Query,
    templates: Array,
    bound: Bound,
    shape: tuple[int, ...],
) -> Array:
    """Sum over persons of a measure of each one's series in the basis, clipped."""
    basis = basis_at(data.extent.places, number_argument(query, "cutoff"))
    word = cast("GlobalSignal", word_argument(query, "global_signal", "keep", "remove"))
    part = partial(_sum_measures, measure, templates, basis, word, bound.norm, shape)
    return sum_over_persons(data, part, shape)


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
