"""From the sites' noisy mean embeddings to distances, a mixture and a summary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.errors import SiteError
from consortium.kernels.mean_embedding import (
    choose_points,
    contrast_deviation,
    fourier_features,
    gram,
    mixture_weights,
)


@dataclass(frozen=True)
class Embeddings:
    """What the sites that answered released.

    Parameters
    ----------
    names : tuple of str
    rows : array, S x E
        Noisy mean embeddings.
    deviations : array, length S
        Of the noise of a row's entries.
    sizes : array, length S
        Persons.
    """

    names: tuple[str, ...]
    rows: Array
    deviations: Array
    sizes: Array

    @property
    def products(self) -> Array:
        """G, unbiased inner products of the true mean embeddings."""
        return gram(self.rows, self.deviations, self.sizes)

    def others(self, site: int) -> Array:
        """Weights of all other sites, by their sizes."""
        weights = np.where(np.arange(len(self.sizes)) == site, 0.0, self.sizes)
        share: Array = weights / weights.sum()
        return share


def read_embeddings(release: Release, shape: Shape) -> Embeddings:
    """Put sites' names and sizes beside their answers.

    Noise in a site's answer is in proportion to one over its size, and `Release.deviation` is that
    of the smallest.

    Raises
    ------
    SiteError
        If fewer than two answered.
    """
    sites = release.sites or tuple(range(len(shape.units)))
    if len(sites) < 2:
        raise SiteError("One site alone answered, which leaves nothing to compare; run again.")
    sizes = np.array([shape.units[site] for site in sites], dtype=np.float64)
    names = tuple(shape.sites[s] if shape.sites else f"site {s + 1}" for s in sites)
    return Embeddings(names, release.values, release.deviation * sizes.min() / sizes, sizes)


def summarize_result(
    parameters: SummarizeParameters,
    found: Embeddings,
    frequencies: Array,
    generator: np.random.Generator,
) -> Result:
    """Distances of the sites, the mixture that makes up the target, and the made-up persons."""
    count = len(found.names)
    target = found.names.index(parameters.target) if parameters.target in found.names else None
    single = np.eye(count)
    goal = found.sizes / found.sizes.sum() if target is None else single[target]
    weights = goal if target is None else mixture_weights(found.rows, target)
    arrays = {
        "points": choose_points(goal @ found.rows, frequencies, parameters.points, generator),
        "weights": weights,
        "distances": np.array(
            [_distance(found, one - other) for one in single for other in single]
        ),
    }
    arrays["distances"] = arrays["distances"].reshape(count, count)
    numbers = {"summary_distance": _summary_distance(found, goal, arrays["points"], frequencies)}
    if target is not None:
        numbers["mixture_distance"] = max(0.0, _distance(found, weights - goal))
    tables = {"sites": _table(parameters, found, target, weights)}
    words = Captions("point", "", "A made-up person of the summary.")
    return Result(arrays, numbers, loadings="points", tables=tables, captions=words)


def _distance(found: Embeddings, contrast: Array) -> float:
    return float(contrast @ found.products @ contrast)


def _summary_distance(found: Embeddings, goal: Array, points: Array, frequencies: Array) -> float:
    """MMD² of the summary and what it stands for, without noise; 0 if less than that is seen."""
    mean = fourier_features(points, frequencies).mean(axis=1)
    seen = _distance(found, goal) - 2.0 * float(mean @ (goal @ found.rows)) + float(mean @ mean)
    return max(0.0, seen)


def _table(
    parameters: SummarizeParameters, found: Embeddings, target: int | None, weights: Array
) -> Table:
    """A row for each site but the target: how far it is, and what noise alone would show."""
    quantile = float(ndtri((1 + parameters.confidence) / 2))
    products, entries = found.products, found.rows.shape[1]
    rows: list[tuple[float | int | str, ...]] = []
    for site, name in enumerate(found.names):
        if site == target:
            continue
        contrast = np.eye(len(found.names))[site]
        contrast = contrast - (
            found.others(site) if target is None else np.eye(len(contrast))[target]
        )
        distance = _distance(found, contrast)
        spread, floor = (
            quantile
            * contrast_deviation(contrast, d, products, found.deviations, found.sizes, entries)
            for d in (max(distance, 0.0), 0.0)
        )
        low, high = (max(0.0, distance + sign * spread) for sign in (-1, 1))
        rows.append(
            (
                name,
                int(found.sizes[site]),
                max(0.0, distance),
                low,
                high,
                floor,
                float(weights[site]),
            )
        )
    return Table(_caption(parameters, found, target), _COLUMNS, tuple(rows))


_COLUMNS = ("site", "persons", "MMD²", "low", "high", "noise floor", "weight")


def _caption(parameters: SummarizeParameters, found: Embeddings, target: int | None) -> str:
    percent = f"{100 * parameters.confidence:g} %"
    shown = (
        f"Squared distance (MMD²) of each site's persons from those of {found.names[target]}, with "
        f"{percent} interval; below the noise floor no difference is seen. The weights make the "
        f"mixture of sites that is nearest to {found.names[target]}."
        if target is not None
        else f"Squared distance (MMD²) of each site's persons from all others', with {percent} "
        "interval; below the noise floor no difference is seen. The weights are the sites' shares "
        "of the persons."
    )
    if parameters.target is not None and target is None:
        shown = f"{parameters.target} did not answer. {shown}"
    return shown
