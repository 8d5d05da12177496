"""From the sites' noisy mean embeddings to distances, a mixture and a summary."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.findings import NOT_TOLD, Finding
from consortium.algorithms.summarize.kernels.mean_embedding import (
    choose_points,
    contrast_deviation,
    fourier_features,
    gram,
    mixture_weights,
    null_floors,
)
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.base.formatting import count
from consortium.errors import SiteError


@dataclass(frozen=True)
class Embeddings:
    """What the sites that answered released.

    Parameters
    ----------
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


def compared(sizes: Array, target: int | None) -> tuple[list[int], Array]:
    """Sites that are compared, and a contrast for each: with the target, or with all others.

    All others count by their sizes.
    """
    single = np.eye(len(sizes))
    asked = [site for site in range(len(sizes)) if site != target]
    others = sizes * (1.0 - single)
    against = others / others.sum(axis=1, keepdims=True) if target is None else single[[target]]
    return asked, single[asked] - (against[asked] if target is None else against)


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
    many = len(found.names)
    target = found.names.index(parameters.target) if parameters.target in found.names else None
    single = np.eye(many)
    goal = found.sizes / found.sizes.sum() if target is None else single[target]
    weights = goal if target is None else mixture_weights(found.rows, target)
    arrays = {
        "points": choose_points(goal @ found.rows, frequencies, parameters.points, generator),
        "weights": weights,
        "distances": np.array(
            [_distance(found, one - other) for one in single for other in single]
        ),
    }
    arrays["distances"] = arrays["distances"].reshape(many, many)
    rows, floors = _rows(parameters, found, target)
    away = _summary_distance(found, goal, arrays["points"], frequencies)
    numbers: dict[str, float | int | str] = {"summary_distance": _told(away, floors)}
    if target is not None:
        numbers["mixture_distance"] = _told(_distance(found, weights - goal), floors)
    seen = sum(bool(row.distance > floor) for row, floor in zip(rows, floors, strict=True))
    shown = weights if seen or target is None else np.full(many, np.nan)
    tables = {"sites": _table(parameters, found, target, shown, rows, floors)}
    numbers |= {"found": seen}
    headline = _headline(seen, len(rows), float(floors.max()))
    words = Captions("point", headline, "A simulated participant of the summary.", persons=True)
    return Result(arrays, numbers, loadings="points", tables=tables, captions=words)


def _distance(found: Embeddings, contrast: Array) -> float:
    return float(contrast @ found.products @ contrast)


def _summary_distance(found: Embeddings, goal: Array, points: Array, frequencies: Array) -> float:
    """MMD² of the summary and what it stands for, without noise."""
    mean = fourier_features(points, frequencies).mean(axis=1)
    return _distance(found, goal) - 2.0 * float(mean @ (goal @ found.rows)) + float(mean @ mean)


def _told(distance: float, floors: Array) -> float | str:
    """A distance, or that it is below what noise could make."""
    return distance if distance > float(floors.max()) else NOT_TOLD


@dataclass(frozen=True)
class _Row:
    """One comparison: a contrast of sites, its distance, its error, and what it is at most."""

    site: int
    distance: float
    spread: float

    @property
    def most(self) -> float:
        """Upper end of the interval; never zero."""
        return max(self.distance, 0.0) + self.spread


def _rows(
    parameters: SummarizeParameters, found: Embeddings, target: int | None
) -> tuple[list[_Row], Array]:
    """Every comparison, and what each stays below, all together, where sites are alike."""
    quantile = float(ndtri((1 + parameters.confidence) / 2))
    products, entries = found.products, found.rows.shape[1]
    asked, contrasts = compared(found.sizes, target)
    rows = []
    for site, contrast in zip(asked, contrasts, strict=True):
        distance = _distance(found, contrast)
        spread = quantile * contrast_deviation(
            contrast, max(distance, 0.0), products, found.deviations, found.sizes, entries
        )
        rows.append(_Row(site, distance, spread))
    chance = np.clip(1.0 - np.diag(products), 0.0, 1.0) / found.sizes
    floors = null_floors(
        contrasts,
        found.deviations,
        chance,
        found.sizes,
        entries,
        1.0 - parameters.confidence,
        np.random.default_rng(parameters.seed),
    )
    return rows, floors


def _table(
    parameters: SummarizeParameters,
    found: Embeddings,
    target: int | None,
    weights: Array,
    rows: list[_Row],
    floors: Array,
) -> Table:
    """A row for each site but the target: how far it is, and at most."""
    return Table(
        _caption(parameters, found, target),
        _COLUMNS,
        tuple(
            (
                found.names[row.site],
                int(found.sizes[row.site]),
                Finding(row.distance, max(row.distance - row.spread, 0.0), row.most)
                if row.distance > floor
                else Finding(),
                row.most,
                float(floor),
                float(weights[row.site]) if target is None else Finding(float(weights[row.site])),
            )
            for row, floor in zip(rows, floors, strict=True)
        ),
    )


def _headline(found: int, rows: int, floor: float) -> str:
    if not found:
        return (
            "Nothing was found: no site's participants are seen to differ; at this ε and these "
            f"numbers a distance below {floor:.2g} would not be seen."
        )
    return f"{found} of {count(rows, 'site')} differ from what they are compared with."


_COLUMNS = ("site", "persons", "MMD²", "at most", "noise floor", "weight")


def _caption(parameters: SummarizeParameters, found: Embeddings, target: int | None) -> str:
    percent = f"{100 * parameters.confidence:g} %"
    shown = (
        "Squared distance (MMD²) of each site's participants from those of "
        f"{found.names[target]}, with {percent} interval; below the noise floor, which all rows "
        "stay below together where sites are alike, it is withheld, and only its upper limit is "
        "reported. The weights make the mixture of sites that is nearest to "
        f"{found.names[target]}; they have no intervals, and are withheld where no site is seen "
        "to differ, as any mixture is then as near."
        if target is not None
        else "Squared distance (MMD²) of each site's participants from all others', with "
        f"{percent} interval; below the noise floor, which all rows stay below together where "
        "sites are alike, it is withheld, and only its upper limit is reported. The weights are "
        "the sites' shares of the participants."
    )
    if parameters.target is not None and target is None:
        shown = f"{parameters.target} did not answer. {shown}"
    return shown
