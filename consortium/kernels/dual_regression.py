"""Dual regression: a participant's own maps of networks with given templates.

Regression of a participant's series C (d x T) on templates A (d x R) gives each network's time
course, S = A⁺C. Regression of the series on these courses gives the participant's maps, M = C Sᵀ(S
Sᵀ)⁻¹ (Beckmann et al. 2009; Nickerson et al. 2017). Since A⁺M = S Sᵀ(S Sᵀ)⁻¹ = I, a participant's
map is its template plus a part orthogonal to all templates, for any data, even noise. Only this
part is reported, and its size relative to the template. Normalizing a course scales a map, and maps
are normalized in the end.
"""

import numpy as np

from consortium.base.array import Array
from consortium.privacy.clipping import column_norms

_LARGEST = 1.0 - 1e-6
"""Limit of a correlation that keeps its Fisher transform finite."""


def courses(series: Array, templates: Array) -> Array:
    """Return the time courses of the networks, of mean zero and norm one: S, shape (R, T).

    A constant course is zero, and so are all courses of a participant with unusable numbers:
    whether a site answers must not depend on one participant.

    Parameters
    ----------
    series : array, shape (d, T)
        Scaled near one, as `projectors.reduce_series` returns it.
    templates : array, shape (d, R)
        Independent columns.
    """
    return centred_and_normed(np.linalg.pinv(templates) @ series)


def person_maps(series: Array, templates: Array) -> Array:
    """Return a participant's maps, each of norm one, or zero if it is undefined: shape (d, R).

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
    """Return Fisher's z of the correlation of every two networks' courses, shape (R(R - 1)/2,)."""
    return fisher_z(courses(series, templates))


def fisher_z(shared: Array) -> Array:
    """Return Fisher's z of the correlation of every two of R normalized courses."""
    between = np.clip((shared @ shared.T)[np.triu_indices(len(shared), 1)], -_LARGEST, _LARGEST)
    return np.asarray(np.arctanh(between))


def centred_and_normed(rows: Array) -> Array:
    """Return courses (R x T) with mean zero and norm one, and zeros for a constant one."""
    return _normed_rows(rows - rows.mean(axis=1, keepdims=True))


def _normed_rows(rows: Array) -> Array:
    """Return rows of norm one, for any scale; zeros for a row that is zero or not finite."""
    norms = column_norms(rows.T)
    usable = np.isfinite(norms) & (norms > 0)
    kept = np.where(usable[:, None], rows, 0.0)
    near = np.ldexp(kept, -np.frexp(np.where(usable, norms, 1.0))[1][:, None])
    return np.asarray(near / np.where(usable, column_norms(near.T), 1.0)[:, None])
