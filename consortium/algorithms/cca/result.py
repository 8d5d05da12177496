"""From the released moment of the stacked views to canonical pairs and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array, Captions, Release, Result, Table
from consortium.algorithms.cca.parameters import CcaParameters
from consortium.kernels.canonical import Canonical, Spectrum, canonical, clean_spectrum, pairs_of
from consortium.kernels.canonical_error import (
    correlation_deviation,
    correlation_interval,
    noise_floor,
)
from consortium.kernels.moments import unpack_symmetric


@dataclass(frozen=True, eq=False)
class Scaled:
    """How a view's features became entries of the stacked vector.

    Parameters
    ----------
    name : str
    factor : float
        What they were multiplied by.
    size : int
        D_v.
    basis : array, D_v x k_v, optional
        Orthonormal columns that they were projected on first.
    """

    name: str
    factor: float
    size: int
    basis: Array | None = None

    @property
    def entries(self) -> int:
        """Entries of the stacked vector."""
        return self.size if self.basis is None else self.basis.shape[1]

    def lift(self, values: Array) -> Array:
        """Values of these entries as values of the features, before the factor."""
        return values if self.basis is None else self.basis @ values

    def variances(self, block: Array) -> Array:
        """Diagonal of the features' covariance, from that of the entries."""
        if self.basis is None:
            return np.diag(block)
        return np.asarray((self.basis @ block * self.basis).sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Solved:
    """The released covariance, view by view, with its solution in the stacked coordinates."""

    blocks: Sequence[Sequence[Array]]
    spectra: Sequence[Spectrum]
    solution: Canonical

    @property
    def weights(self) -> list[Array]:
        pairs = zip(self.spectra, self.solution.coordinates, strict=True)
        return [spectrum.whitening @ part for spectrum, part in pairs]

    @property
    def patterns(self) -> list[Array]:
        pairs = zip(self.spectra, self.solution.coordinates, strict=True)
        return [spectrum.patterns @ part for spectrum, part in pairs]


def cca_result(
    release: Release,
    views: Sequence[Scaled],
    centre: Array,
    parameters: CcaParameters,
    persons: int,
) -> Result:
    """Solve, and give everything in the features' own units.

    Returns
    -------
    Result
        ``patterns`` (D x K): covariance of each feature with its view's variate, that is, what
        one standard deviation of the variate changes; ``weights`` (D x K): the variate is the
        weighted sum of a person's deviations from ``centre``; ``structure`` (D x K): correlation
        of each feature with the variate; ``correlations``, ``low`` and ``high`` (K).
    """
    mean, covariance = _centred(release, [v.entries for v in views], parameters.constant)
    solved = _solve(covariance, views, release.deviation, parameters)
    generator = np.random.default_rng(parameters.seed)
    floor = noise_floor(solved.spectra, release.deviation, persons, generator)
    correlations = solved.solution.correlations
    low, high = correlation_interval(correlations, _deviation(solved, release.deviation, persons))
    # Of a pair that the noise left no direction for, nothing is known.
    absent = np.arange(len(correlations)) >= min(len(each.variances) for each in solved.spectra)
    low, high = np.where(absent, -1.0, low), np.where(absent, 1.0, high)
    arrays = _in_features(solved, views, release.deviation)
    left = [v.lift(part) / v.factor for v, part in zip(views, mean, strict=True)]
    arrays |= {"centre": centre + np.concatenate(left)}
    arrays |= {"correlations": correlations, "low": low, "high": high}
    kept = {
        f"{v.name}_directions": len(s.variances) for v, s in zip(views, solved.spectra, strict=True)
    }
    numbers: dict[str, float | int | str] = {
        "noise_floor": floor,
        "noise_deviation": release.deviation,
        "pairs_above_noise_floor": int((correlations > floor).sum()),
        **kept,
    }
    tables = {"pairs": pair_table(correlations, low, high, floor, len(views))}
    if len(views) > 2:
        tables["views"] = _view_table(solved, [view.name for view in views])
    said = words(correlations, floor, release.deviation)
    return Result(arrays, numbers, loadings="patterns", tables=tables, captions=said)


def _centred(release: Release, sizes: Sequence[int], constant: float) -> tuple[list[Array], Array]:
    """Split the moment into the mean of each view and the covariance of all.

    The mean is shrunk by what the noise alone would make of it (James and Stein): where nothing
    is left of the mean, subtracting its square would only add noise.
    """
    matrix = unpack_symmetric(release.values)
    stops = np.cumsum(sizes)
    if not constant:
        return np.split(np.zeros(stops[-1]), stops[:-1]), matrix
    parts = np.split(matrix[:-1, -1] / constant, stops[:-1])
    noise = release.deviation**2 / 2.0 / constant**2
    shrunk = []
    for part in parts:
        size = float(part @ part)
        shrunk.append(part * max(0.0, 1.0 - len(part) * noise / size) if size > 0 else part)
    mean = np.concatenate(shrunk)
    return shrunk, matrix[:-1, :-1] - np.outer(mean, mean)


def _solve(
    covariance: Array, views: Sequence[Scaled], deviation: float, parameters: CcaParameters
) -> _Solved:
    stops = np.cumsum([view.entries for view in views])[:-1]
    blocks = [np.split(rows, stops, axis=1) for rows in np.split(covariance, stops)]
    spectra = [clean_spectrum(blocks[v][v], deviation, parameters.keep) for v in range(len(views))]
    whitened: list[list[Array]] = [[np.eye(len(each.variances))] * len(views) for each in spectra]
    for u, v in pairs_of(len(views)):
        whitened[u][v] = spectra[u].whitening.T @ blocks[u][v] @ spectra[v].whitening
    return _Solved(blocks, spectra, _turned(canonical(whitened, parameters.pairs), spectra, views))


def _turned(solution: Canonical, spectra: Sequence[Spectrum], views: Sequence[Scaled]) -> Canonical:
    """Fix each pair's sign: the heavier tail of the first view's pattern is positive."""
    first = views[0].lift(spectra[0].patterns @ solution.coordinates[0])
    third = np.sum((first - first.mean(axis=0)) ** 3, axis=0)
    signs = np.where(third < 0, -1.0, 1.0)
    return Canonical(solution.correlations, tuple(part * signs for part in solution.coordinates))


def _deviation(solved: _Solved, deviation: float, persons: int) -> Array:
    """Of the mean correlation over the pairs of views, as if these were independent of each other.

    They are not; the mean over pairs is then an upper bound, and for two views it is exact.
    """
    squares = [np.square(weights).sum(axis=0) for weights in solved.weights]
    found = [
        correlation_deviation(
            solved.solution.correlations, squares[u], squares[v], deviation, persons
        )
        for u, v in pairs_of(len(squares))
    ]
    return np.asarray(np.mean(found, axis=0))


def _in_features(solved: _Solved, views: Sequence[Scaled], deviation: float) -> dict[str, Array]:
    patterns, weights, structure = [], [], []
    for index, view in enumerate(views):
        pattern = view.lift(solved.patterns[index])
        variances = view.variances(solved.blocks[index][index])
        # A feature whose variance is below its noise has no correlation to tell.
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


def _view_table(solved: _Solved, names: Sequence[str]) -> Table:
    """Correlations of every two views' variates, pair by pair."""
    rows = []
    weights = solved.weights
    for k in range(len(solved.solution.correlations)):
        for u, v in pairs_of(len(names)):
            r = float(weights[u][:, k] @ solved.blocks[u][v] @ weights[v][:, k])
            rows.append((k + 1, names[u], names[v], float(np.clip(r, -1.0, 1.0))))
    columns = ("pair", "view", "other view", "correlation")
    return Table("Correlations of every two views.", columns, tuple(rows))


def words(correlations: Array, floor: float, deviation: float) -> Captions:
    """Say how many pairs are there, and what their numbers are."""
    cause = "chance and privacy's noise" if deviation else "chance"
    found = tuple(bool(each) for each in correlations > floor)
    return Captions(
        "pair",
        f"{sum(found)} of {len(correlations)} canonical pairs are linked more closely than {cause} "
        f"would make them: the largest correlation is {correlations[0]:.2f}, and {floor:.2f} is "
        "the noise floor.",
        "Change of a feature, in its view's own unit, with one standard deviation of its view's "
        "variate.",
        sign=True,
        found=any(found),
        columns_found=found,
    )


def pair_table(correlations: Array, low: Array, high: Array, floor: float, views: int) -> Table:
    """Tabulate every pair's correlation with its interval."""
    rows = [
        (k + 1, float(r), float(a), float(b), floor, "yes" if r > floor else "no")
        for k, (r, a, b) in enumerate(zip(correlations, low, high, strict=True))
    ]
    what = "Canonical correlations" if views == 2 else "Mean correlations over the pairs of views"
    return Table(
        f"{what}, with 95 % intervals (few persons, and the noise of privacy) and the noise floor: "
        "what the largest of them exceeds in 5 % of studies without any link.",
        ("pair", "correlation", "95 % low", "95 % high", "noise floor", "above floor"),
        tuple(rows),
    )
