"""From the released moment of the stacked views to canonical pairs and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from consortium.algorithms.base import Array, Captions, Release, Result, Shape, Table
from consortium.algorithms.cca.kernels.canonical import (
    Canonical,
    Spectrum,
    clean_spectrum,
    solve_canonical,
    view_pairs,
)
from consortium.algorithms.cca.kernels.canonical_error import (
    CrossNoise,
    captured_share,
    correlation_interval,
)
from consortium.algorithms.findings import Finding, State
from consortium.base.formatting import number
from consortium.kernels.moments import unpack_symmetric

if TYPE_CHECKING:
    from consortium.algorithms.cca.centre import Cca


@dataclass(frozen=True, eq=False)
class Scaled:
    """How a view's features became entries of the stacked vector of `cca`."""

    name: str
    factor: float
    """Their factor."""
    size: int
    """D_v."""
    basis: Array | None = None
    """D_v x k_v. Orthonormal columns that they were projected on first."""

    @property
    def entries(self) -> int:
        """Entries of the stacked vector."""
        return self.size if self.basis is None else self.basis.shape[1]

    def lift(self, values: Array) -> Array:
        """Return values of these entries as values of the features, before the factor."""
        return values if self.basis is None else self.basis @ values

    def variances(self, block: Array) -> Array:
        """Return the diagonal of the features' covariance, from that of the entries."""
        if self.basis is None:
            return np.diag(block)
        return np.asarray((self.basis @ block * self.basis).sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Centred:
    """The covariance of all views within sites, and the subtracted means."""

    covariance: Array
    """d x d."""
    means: Array
    """d x S. Means of the sites that answered, or of all together; none without a constant."""
    parts: Array
    """Length S. Fractions of the participants."""
    persons: int


@dataclass(frozen=True, eq=False)
class _Solved:
    """The released covariance, view by view, with its solution in the stacked coordinates."""

    blocks: Sequence[Sequence[Array]]
    spectra: Sequence[Spectrum]
    solution: Canonical

    @property
    def sizes(self) -> list[Array]:
        """Standard deviations of the solved variates, 1 for a missing pair."""
        pairs = zip(self.spectra, self.solution.coordinates, strict=True)
        found = [spectrum.sizes(part) for spectrum, part in pairs]
        return [np.where(each > 0, each, 1.0) for each in found]

    @property
    def weights(self) -> list[Array]:
        pairs = zip(self.spectra, self.solution.coordinates, self.sizes, strict=True)
        return [spectrum.weighting @ part / size for spectrum, part, size in pairs]

    @property
    def patterns(self) -> list[Array]:
        pairs = zip(self.spectra, self.solution.coordinates, self.sizes, strict=True)
        return [spectrum.patterns @ part / size for spectrum, part, size in pairs]

    @property
    def correlations(self) -> Array:
        """Correlation of the variates: the mean over the pairs of views."""
        weights = self.weights
        found = [
            np.einsum("ik,ij,jk->k", weights[u], self.blocks[u][v], weights[v], optimize=True)
            for u, v in view_pairs(len(weights))
        ]
        return np.asarray(np.clip(np.mean(found, axis=0), 0.0, 1.0))


_NOISY = 0.35
"""Increase of a link's noise by site means above which bounds on undetected links are withheld."""


def cca_result(release: Release, views: Sequence[Scaled], centre: Array, plan: Cca) -> Result:
    """Solve for canonical pairs, and return everything in the features' own units.

    Returns
    -------
    Result
        ``patterns`` (D x K): covariance of each feature with its view's variate, that is, its
        change with one standard deviation of the variate; ``weights`` (D x K): the variate is the
        weighted sum of a participant's deviations from ``centre``; ``structure`` (D x K):
        correlation of each feature with the variate; ``correlations`` and ``found`` (K), 0 for
        withheld ones.
    """
    parameters = plan.parameters
    centred = _centred(release, plan)
    solved = _solve(centred.covariance, views, release.deviation, plan)
    law = _law(centred, solved, plan, release.deviation)
    generator = np.random.default_rng(parameters.seed)
    floor = law.floor(generator)
    values = solved.solution.correlations
    many = int(np.cumprod(values > floor).sum())
    bounded = many if plan.means_noise > _NOISY else many + 1
    counted = dimensions(views, plan.shape), [len(s.variances) for s in solved.spectra]
    hidden = release.deviation > 0 and counted[0] != counted[1]
    seen = captured_share(*counted) if hidden else 1.0
    pairs = _findings(
        solved=solved, law=law, many=many, bounded=bounded, seen=seen, generator=generator
    )
    found = np.array([each.state == "found" for each in pairs])
    arrays = _in_features(solved, views, release.deviation)
    left = np.split(centred.means @ centred.parts, np.cumsum([v.entries for v in views])[:-1])
    lifted = [v.lift(part) / v.factor for v, part in zip(views, left, strict=True)]
    arrays |= {"centre": centre + np.concatenate(lifted), "found": found}
    arrays |= {"correlations": np.array([each.value if each.reported else 0.0 for each in pairs])}
    kept = {
        f"{v.name}_directions": len(s.variances) for v, s in zip(views, solved.spectra, strict=True)
    }
    numbers: dict[str, float | int | str] = {
        "noise_deviation": release.deviation,
        "pairs_found": many,
        "persons": centred.persons,
        **kept,
    }
    tables = {"pairs": _pair_table(pairs, values, floor, plan, hidden=hidden)}
    if len(views) > 2 and many:
        tables["views"] = _view_table(solved, [view.name for view in views], many)
    said = _words(pairs, floor, solved, plan, hidden=hidden)
    return Result(arrays, numbers, loadings="patterns", tables=tables, captions=said)


def _centred(release: Release, plan: Cca) -> _Centred:
    """Split the moment into means of sites and the covariance within them.

    Squares of noisy means are too large by σ²/(2 c² π²), only in a view's own block, since noise of
    different entries is independent. This is added again.
    """
    matrix = unpack_symmetric(release.values)
    size = plan.stacked - plan.places
    present = plan.present(release)
    units = plan.units_in(release)
    constant = plan.parameters.constant
    parts = plan.parts(present, units)
    at = size + np.flatnonzero(parts)
    parts = parts[parts > 0]
    means = matrix[:size, at] / (constant * parts) if len(parts) else np.zeros((size, 0))
    covariance = matrix[:size, :size] - (means * parts) @ means.T
    if len(parts):
        extra = release.deviation**2 / (2.0 * constant**2) * float((1.0 / parts).sum())
        covariance[np.diag_indices(size)] += extra
    return _Centred(covariance, means, parts, round(units.sum()))


def _solve(covariance: Array, views: Sequence[Scaled], deviation: float, plan: Cca) -> _Solved:
    parameters = plan.parameters
    stops = np.cumsum([view.entries for view in views])[:-1]
    blocks = [np.split(rows, stops, axis=1) for rows in np.split(covariance, stops)]
    spectra = [clean_spectrum(blocks[v][v], deviation, parameters.keep) for v in range(len(views))]
    weighted: list[list[Array]] = [[np.eye(len(each.variances))] * len(views) for each in spectra]
    for u, v in view_pairs(len(views)):
        weighted[u][v] = spectra[u].weighting.T @ blocks[u][v] @ spectra[v].weighting
    return _Solved(
        blocks, spectra, _turned(solve_canonical(weighted, parameters.pairs), spectra, views)
    )


def _law(centred: _Centred, solved: _Solved, plan: Cca, deviation: float) -> CrossNoise:
    stops = np.cumsum([len(each.vectors) for each in solved.spectra])[:-1]
    means = [
        spectrum.vectors.T @ part
        for spectrum, part in zip(solved.spectra, np.split(centred.means, stops), strict=True)
    ]
    constant = plan.parameters.constant
    return CrossNoise(
        spectra=solved.spectra,
        means=means,
        parts=centred.parts,
        constant=constant,
        deviation=deviation,
        persons=centred.persons,
    )


def _turned(solution: Canonical, spectra: Sequence[Spectrum], views: Sequence[Scaled]) -> Canonical:
    """Fix each pair's sign: the heavier tail of the first view's pattern is positive."""
    first = views[0].lift(spectra[0].patterns @ solution.coordinates[0])
    third = np.sum((first - first.mean(axis=0)) ** 3, axis=0)
    signs = np.where(third < 0, -1.0, 1.0)
    return Canonical(solution.correlations, tuple(part * signs for part in solution.coordinates))


def _findings(
    solved: _Solved,
    law: CrossNoise,
    many: int,
    bounded: int,
    seen: float,
    generator: np.random.Generator,
) -> tuple[Finding, ...]:
    """Return the correlation of each pair: an interval for found pairs and the next one only.

    There is none of the next one either if site means are mostly noise: whitening is then too
    inaccurate for a bound on undetected links.
    """
    values = solved.solution.correlations
    correlations = solved.correlations
    present = min(len(each.variances) for each in solved.spectra)
    pairs = []
    for k in range(len(values)):
        if k >= min(bounded, present):
            pairs.append(Finding(state="withheld"))
        elif len(solved.spectra) > 2:  # a mean over pairs of views has no known interval
            pairs.append(Finding(float(correlations[k])) if k < many else Finding(state="withheld"))
        else:
            low, high = _interval(solved, law, k, generator)
            high = min(high / seen, 1.0) if seen else 1.0
            value = float(np.clip(correlations[k], low, high))
            whole = low <= 0.0 and high >= 1.0
            state: State = "withheld" if whole else "found" if k < many else "not found"
            pairs.append(Finding(value, low, high, state))
    return tuple(pairs)


def dimensions(views: Sequence[Scaled], shape: Shape) -> list[int]:
    """Return the number of directions of each view along which participants may differ."""
    ends = np.cumsum([0, *(view.size for view in views)])
    starts = [entries.start for entries, _ in shape.known_sums]
    still = np.histogram(starts, ends)[0]
    return [view.size - int(few) for view, few in zip(views, still, strict=True)]


def _interval(
    solved: _Solved, law: CrossNoise, pair: int, generator: np.random.Generator
) -> tuple[float, float]:
    left, right = solved.solution.coordinates
    scale = solved.sizes[0] * solved.sizes[1]
    squares = [np.square(weights).sum(axis=0) for weights in solved.weights]
    scale_error = law.deviation / 2.0 * np.hypot(*squares)
    values = (left, solved.solution.correlations, right)
    return correlation_interval(law, values, (scale, scale_error), pair, generator)


def _in_features(solved: _Solved, views: Sequence[Scaled], deviation: float) -> dict[str, Array]:
    patterns = []
    weights = []
    structure = []
    for index, view in enumerate(views):
        pattern = view.lift(solved.patterns[index])
        variances = view.variances(solved.blocks[index][index])
        # The correlation of a feature whose variance is below its noise is withheld.
        sound = variances > deviation
        spread = np.sqrt(np.where(sound, variances, 1.0))[:, None]
        structure.append(np.clip(np.where(sound[:, None], pattern / spread, 0.0), -1.0, 1.0))
        patterns.append(pattern / view.factor)
        weights.append(view.lift(solved.weights[index]) * view.factor)
    return {
        "patterns": np.vstack(patterns),
        "weights": np.vstack(weights),
        "structure": np.vstack(structure),
    }


def _view_table(solved: _Solved, names: Sequence[str], many: int) -> Table:
    """Tabulate correlations of every two views' variates, for each found pair."""
    rows = []
    weights = solved.weights
    for k in range(many):
        for u, v in view_pairs(len(names)):
            r = float(weights[u][:, k] @ solved.blocks[u][v] @ weights[v][:, k])
            rows.append((k + 1, names[u], names[v], float(np.clip(r, -1.0, 1.0))))
    columns = ("pair", "view", "other view", "correlation")
    return Table("Correlations of every two views, without intervals.", columns, tuple(rows))


def _words(
    pairs: Sequence[Finding], floor: float, solved: _Solved, plan: Cca, *, hidden: bool
) -> Captions:
    """State how many pairs were found, or which would have been detected."""
    found = tuple(each.state == "found" for each in pairs)
    many = sum(found)
    names = " and ".join(name for name, _ in plan.shape.views)
    least = min(floor / float(np.prod([s[0] for s in solved.sizes]) ** (2 / len(solved.sizes))), 1)
    if many:
        headline = (
            f"{many} of {len(pairs)} canonical pairs of {names} {'is' if many == 1 else 'are'} "
            "linked."
        )
        if plan.places < len(plan.shape.units):
            headline += " Differences between the sites may be what links them."
    elif least >= 1.0:
        headline = f"No link of {names} was found; at this ε and these numbers none would be."
    else:
        headline = (
            f"No link of {names} was found; at this ε and these numbers of participants a "
            f"correlation below {number(float(least))} would not be "
            f"seen{', nor one along directions of the views that noise hides.' if hidden else '.'}"
        )
    return Captions(
        "pair",
        headline,
        "Change of a feature, in its view's own unit, with one standard deviation of its view's "
        "variate. It is noise if the pair was not found.",
        sign=True,
        found=any(found),
        columns_found=found,
    )


def _pair_table(
    pairs: Sequence[Finding], values: Array, floor: float, plan: Cca, *, hidden: bool
) -> Table:
    """Tabulate every pair's correlation with its interval."""
    rows = [
        (k + 1, each, float(value), floor, "yes" if each.state == "found" else "no")
        for k, (each, value) in enumerate(zip(pairs, values, strict=True))
    ]
    two = len(plan.shape.views) == 2
    what = "Canonical correlations" if two else "Mean correlations over the pairs of views"
    over = "within sites" if plan.places > 1 else "over the participants of all sites together"
    ends = ", with 95 % intervals (few participants, and the noise of privacy)" if two else ""
    if two and hidden:
        ends += (
            ". Noise hides directions of the views: the correlation is that of the directions "
            "that were found, which is smaller than the views' own, and the upper end is valid "
            "if the link is equally likely along all directions. The lower end is always valid"
        )
    return Table(
        f"{what} {over}{ends}. The statistic weighs directions by how well they are known; the "
        "floor is what its largest exceeds in 5 % of studies without any link. A pair is found if "
        "it and all before it are above the floor.",
        ("pair", "correlation", "statistic", "noise floor", "found"),
        tuple(rows),
    )
