"""From the sites' noisy mean embeddings to distances, a mixture and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from consortium.algorithms.base import Array, Captions, Release, Result, Table
from consortium.algorithms.findings import WITHHELD, Finding
from consortium.algorithms.summarize.kernels.mean_embedding import (
    choose_points,
    contrast_deviation,
    fourier_features,
    gram,
    mixture_weights,
    null_floors,
)
from consortium.base.formatting import count
from consortium.errors import SiteError

if TYPE_CHECKING:
    from consortium.algorithms.summarize.centre import Summarize


@dataclass(frozen=True)
class Embeddings:
    """Released embeddings of the sites that answered."""

    names: tuple[str, ...]
    rows: Array
    """S x E. Noisy mean embeddings."""
    deviations: Array
    """Length S. Standard deviation of the noise of a row's entries."""
    sizes: Array
    """Length S. Participants."""
    target: int | None
    """Which of them the others are compared with, if it answered."""

    @cached_property
    def products(self) -> Array:
        """G, unbiased inner products of the true mean embeddings."""
        return gram(self.rows, self.deviations, self.sizes)

    def distance(self, contrast: Array) -> float:
        """Return the squared distance of two mixtures of sites."""
        return float(contrast @ self.products @ contrast)


def compared_sites(sizes: Array, target: int | None) -> tuple[list[int], Array]:
    """Return compared sites, and a contrast for each: with the target, or with all others.

    All others are weighted by their sizes.
    """
    single = np.eye(len(sizes))
    asked = [site for site in range(len(sizes)) if site != target]
    others = sizes * (1.0 - single)
    against = others / others.sum(axis=1, keepdims=True) if target is None else single[[target]]
    return asked, single[asked] - (against[asked] if target is None else against)


def read_embeddings(plan: Summarize, release: Release) -> Embeddings:
    """Combine sites' answers with their names and sizes.

    Noise in a site's answer is proportional to one over its size, and `Release.deviation` is that
    of the smallest. Raises SiteError if fewer than two answered.
    """
    sites = plan.present(release)
    shape = plan.shape
    if len(sites) < 2:
        raise SiteError(
            f"A comparison requires the answers of at least two sites, got {len(sites)}. Run the "
            "study again."
        )
    sizes = plan.units_in(release)
    names = tuple(shape.sites[s] if shape.sites else f"site {s + 1}" for s in sites)
    target = names.index(plan.parameters.target) if plan.parameters.target in names else None
    return Embeddings(names, release.values, release.deviation * sizes.min() / sizes, sizes, target)


def summarize_result(plan: Summarize, found: Embeddings) -> Result:
    """Return distances of the sites, the mixture nearest the target, and the synthetic points."""
    many = len(found.names)
    target = found.target
    single = np.eye(many)
    goal = found.sizes / found.sizes.sum() if target is None else single[target]
    weights = goal if target is None else mixture_weights(found.rows, target)
    frequencies, generator = plan.drawn()
    points = choose_points(goal @ found.rows, frequencies, plan.parameters.points, generator)
    distances = [[found.distance(one - other) for other in single] for one in single]
    rows = _rows(plan, found)
    floor = max(row.floor for row in rows)
    seen = sum(row.seen for row in rows)
    away = _summary_distance(found, goal, fourier_features(points, frequencies))
    numbers: dict[str, float | int | str] = {"summary_distance": _told(away, floor)}
    if target is not None:
        numbers["mixture_distance"] = _told(found.distance(weights - goal), floor)
    numbers["found"] = seen
    shown = weights if seen or target is None else np.full(many, np.nan)
    headline = _headline(seen, len(rows), floor)
    return Result(
        {"points": points, "weights": weights, "distances": np.array(distances)},
        numbers,
        loadings="points",
        tables={"sites": _table(plan, found, shown, rows)},
        captions=Captions(
            "point",
            f"{headline} {plan.undetermined}".rstrip(),
            "A simulated participant of the summary.",
            persons=True,
        ),
    )


def _summary_distance(found: Embeddings, goal: Array, features: Array) -> float:
    """Return MMD² of the summary and the embedding that it represents, without noise."""
    mean = features.mean(axis=1)
    return found.distance(goal) - 2.0 * float(mean @ (goal @ found.rows)) + float(mean @ mean)


def _told(distance: float, floor: float) -> float | str:
    """Return a distance, or that it is below the noise floor."""
    return distance if distance > floor else WITHHELD


@dataclass(frozen=True)
class _Row:
    """A site's distance, half its interval, and what all rows' stay below where sites are alike."""

    site: int
    distance: float
    spread: float
    floor: float

    @property
    def seen(self) -> bool:
        """Whether there is more than noise and chance make."""
        return self.distance > self.floor

    @property
    def most(self) -> float:
        """Upper end of the interval; never zero."""
        return max(self.distance, 0.0) + self.spread


def _rows(plan: Summarize, found: Embeddings) -> list[_Row]:
    """Return every comparison."""
    quantile = float(ndtri((1 + plan.parameters.confidence) / 2))
    products = found.products
    entries = found.rows.shape[1]
    rows = []
    asked, contrasts = compared_sites(found.sizes, found.target)
    chance = np.clip(1.0 - np.diag(products), 0.0, 1.0) / found.sizes
    floors = noise_floors(plan, contrasts, found.deviations, chance, found.sizes)
    for site, contrast, floor in zip(asked, contrasts, floors.tolist(), strict=True):
        distance = found.distance(contrast)
        spread = quantile * contrast_deviation(
            contrast=contrast,
            distance=max(distance, 0.0),
            products=products,
            deviations=found.deviations,
            sizes=found.sizes,
            entries=entries,
        )
        rows.append(_Row(site, distance, spread, floor))
    return rows


def noise_floors(
    plan: Summarize, contrasts: Array, deviations: Array, chance: Array, sizes: Array
) -> Array:
    """Return joint upper limits of all contrasts of `summarize` if sites are equal."""
    entries = 2 * plan.parameters.frequencies
    risk = 1.0 - plan.parameters.confidence
    generator = np.random.default_rng(plan.parameters.seed)
    return null_floors(
        contrasts=contrasts,
        deviations=deviations,
        chance=chance,
        sizes=sizes,
        entries=entries,
        risk=risk,
        generator=generator,
    )


def _table(plan: Summarize, found: Embeddings, weights: Array, rows: list[_Row]) -> Table:
    """Tabulate for each site but the target its distance, and the upper limit."""
    shown = [each if found.target is None else Finding(each) for each in weights.tolist()]
    return Table(
        _caption(plan, found),
        ("site", "persons", "MMD²", "at most", "noise floor", "weight"),
        tuple(
            (
                found.names[row.site],
                round(found.sizes[row.site]),
                Finding(row.distance, max(row.distance - row.spread, 0.0), row.most)
                if row.seen
                else Finding(),
                row.most,
                row.floor,
                shown[row.site],
            )
            for row in rows
        ),
    )


def _headline(found: int, rows: int, floor: float) -> str:
    if not found:
        return (
            "Nothing was found: no site's participants are seen to differ; at this ε and these "
            f"numbers a distance below {floor:.2g} would not be seen."
        )
    return f"{found} of {count(rows, 'site')} differ from the sites that they are compared with."


def _caption(plan: Summarize, found: Embeddings) -> str:
    parameters = plan.parameters
    target = found.target
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
