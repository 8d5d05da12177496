"""Dual regression: a person's own maps of networks whose templates are given.

Regressing templates A (d x R) on a person's series C (d x T) gives each network's course,
S = A⁺C; regressing the series on these courses gives the person's maps, M = C Sᵀ(S Sᵀ)⁻¹ (Beckmann
et al. 2009; Nickerson et al. 2017). Since A⁺M = S Sᵀ(S Sᵀ)⁻¹ = I, a person's map is its template
plus something orthogonal to all templates, in anybody's data, even in noise: what is told is that
part alone, and how large it is beside the template. Normalizing a course scales a map, and maps
are normalized in the end.
"""

import numpy as np

from consortium.base.array import Array
from consortium.privacy.clipping import column_norms

_LARGEST = 1.0 - 1e-6
"""Of a correlation, so that its Fisher transform is finite."""


def courses(series: Array, templates: Array) -> Array:
    """Courses of the networks, of mean zero and norm one: S, shape (R, T).

    Zeros for one that has none, and for a person whose numbers can't be used: whether a site
    answers must not depend on one person.

    Parameters
    ----------
    series : array, shape (d, T)
        Near one, as `projectors.reduce_series` gives it.
    templates : array, shape (d, R)
        Independent columns.
    """
    return centred_and_normed(np.linalg.pinv(templates) @ series)


def person_maps(series: Array, templates: Array) -> Array:
    """A person's maps, each of norm one, or zero for one that can't be had: shape (d, R).

    Parameters
    ----------
    series, templates
        As in `courses`.
    """
    shared = courses(series, templates)
    centred = series - series.mean(axis=1, keepdims=True)
    try:
        maps = np.linalg.lstsq(shared.T, centred.T, rcond=None)[0]
    except np.linalg.LinAlgError:
        return np.zeros(templates.shape)
    return _normed_rows(maps).T


def fisher_connectivity(series: Array, templates: Array) -> Array:
    """Fisher's z of the correlation of every two networks' courses, shape (R(R - 1)/2,)."""
    return fisher_z(courses(series, templates))


def fisher_z(shared: Array) -> Array:
    """Fisher's z between every two of R courses of mean zero and norm one (or zero), as above."""
    between = np.clip((shared @ shared.T)[np.triu_indices(len(shared), 1)], -_LARGEST, _LARGEST)
    return np.asarray(np.arctanh(between))


def centred_and_normed(rows: Array) -> Array:
    """Courses (R x T) with mean zero and norm one, zeros for one that does not vary."""
    return _normed_rows(rows - rows.mean(axis=1, keepdims=True))


def _normed_rows(rows: Array) -> Array:
    """Rows of norm one, whatever their scale; zeros for one that is zero or not finite."""
    norms = column_norms(rows.T)
    usable = np.isfinite(norms) & (norms > 0)
    kept = np.where(usable[:, None], rows, 0.0)
    near = np.ldexp(kept, -np.frexp(np.where(usable, norms, 1.0))[1][:, None])
    return np.asarray(near / np.where(usable, column_norms(near.T), 1.0)[:, None])
