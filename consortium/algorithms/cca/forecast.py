"""Forecast of a canonical correlation analysis, only from public numbers.

Assumptions: entries of a view have equal variances and are not correlated, except that every view
has one direction whose correlation is the study's `detect`. A view's radius is the headroom times
the usual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.assumed import draw_release
from consortium.algorithms.base import Array, Expectation
from consortium.algorithms.cca.kernels.canonical import view_pairs
from consortium.algorithms.cca.result import Scaled, cca_result
from consortium.algorithms.findings import Finding
from consortium.kernels.moments import pack_symmetric

if TYPE_CHECKING:
    from consortium.algorithms.cca.centre import Cca

_DRAWS = 24
_USUAL = 60
"""Number of drawn studies, and the number of entries above which fewer are drawn."""


def expect(plan: Cca) -> tuple[Expectation, ...]:
    """Forecast the probability that the link is found, and the error of its correlation then."""
    draws = max(6, round(_DRAWS * min(1.0, _USUAL / plan.stacked)))
    first = [_first_pair(plan, np.random.default_rng(seed)) for seed in range(draws)]
    link = plan.parameters.detect
    pairs = np.array([each.value for each in first if each.state == "found"])
    power = len(pairs) / draws
    unsure = np.sqrt(max(power * (1 - power), 0.25 / draws) / draws)
    chance = Expectation(
        f"chance that a correlation of {link:g} is found",
        power,
        max(power - unsure, 0.0),
        min(power + unsure, 1.0),
        ranged="uncertainty by the small number of draws",
    )
    error = float(np.sqrt(np.mean(np.square(pairs - link)))) if len(pairs) else link
    name = f"error of a correlation of {link:g}" + ("" if len(pairs) else ", which is not found")
    return chance, Expectation(name, error, rises=False)


def _first_pair(plan: Cca, generator: np.random.Generator) -> Finding:
    """Return the first pair of a study with new participants and new noise."""
    planned = plan.releases[-1]
    sizes = dict(plan.shape.views)
    release = draw_release(planned, plan.shape, pack_symmetric(_moment(plan, generator)), generator)
    views = [
        Scaled(name, 1.0, size, np.eye(size, kept) if kept < size else None)
        for (name, size), kept in zip(sizes.items(), plan.sizes.values(), strict=True)
    ]
    result = cca_result(release, views, np.zeros(plan.shape.features), plan)
    (pair, *_) = (row[1] for row in result.tables["pairs"].rows)
    return pair if isinstance(pair, Finding) else Finding(state="withheld")


def _moment(plan: Cca, generator: np.random.Generator) -> Array:
    """Draw the moment of stacked vectors of a study, with its sampling error."""
    parts = plan.parts(range(len(plan.shape.units)), plan.shape.units)
    persons = sum(plan.shape.units)
    covariance = _covariance(plan)
    size = len(covariance)
    root = np.linalg.cholesky(covariance) / np.sqrt(persons)
    chance = _wishart_root(size, persons, generator)
    moment = np.zeros((plan.stacked, plan.stacked))
    moment[:size, :size] = root @ chance @ chance.T @ root.T
    at = np.arange(size, plan.stacked)
    moment[at, at] = plan.parameters.constant**2 * parts[: plan.places]
    means = root @ generator.standard_normal((size, plan.places))
    mixed = plan.parameters.constant * means * np.sqrt(parts[: plan.places])
    moment[:size, at] = mixed
    moment[at, :size] = mixed.T
    return moment


def _covariance(plan: Cca) -> Array:
    sizes = list(plan.sizes.values())
    usual = plan.shares / plan.parameters.headroom**2 / sizes
    firsts = np.cumsum([0, *sizes[:-1]])
    covariance = np.diag(np.repeat(usual, sizes))
    for u, v in view_pairs(len(sizes)):
        linked = plan.parameters.detect * np.sqrt(usual[u] * usual[v])
        covariance[firsts[u], firsts[v]] = covariance[firsts[v], firsts[u]] = linked
    return covariance


def _wishart_root(size: int, persons: int, generator: np.random.Generator) -> Array:
    """Draw the root of a Wishart matrix of ``persons`` degrees of freedom: Bartlett's."""
    if persons <= size:
        return generator.standard_normal((size, persons))
    lower = np.tril(generator.standard_normal((size, size)), -1)
    lower[np.diag_indices(size)] = np.sqrt(generator.chisquare(persons - np.arange(size)))
    return lower
