"""``python -m benchmarks.network_cortex [SEED [KIND ...]]``: participants without networks.

Each participant's series on the cortex is smoothed Gaussian noise: *along* fsaverage5 (heat),
*through* the volume (a Gaussian kernel across sulci and from one hemisphere to the other), along it
and twice as strong in front as in the middle and behind (*uneven*), or along it with ten spots of
the participant's own (*own*). `group_ica` and `template_networks` get the mean over participants
with a study's noise, over every fourth vertex, which is not less than the waves require.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.glm_surface import some_places
from benchmarks.network_pool import answer
from benchmarks.network_smooth import is_found
from benchmarks.network_templates import Cell, result
from benchmarks.studies import study_of
from benchmarks.timing import command, heading, line
from consortium.algorithms.base import Array, Extent, Templates
from consortium.algorithms.glm.kernels.outcome_correlation import FWHM_PER_SIGMA
from consortium.algorithms.subspace import smooth_basis
from consortium.algorithms.template_networks.centre import in_basis
from consortium.algorithms.template_networks.result import MORE, SAME, UNLIKE
from consortium.kernels.dual_regression import person_maps
from consortium.kernels.projectors import leading_directions
from consortium.study.plan import Plan, make_plan

SIZES = {6: 240, 12: 480, 33: 990}
STUDIES, RUNS, REPLAYS = ((6, 8.0), (12, 8.0), (33, 8.0), (12, 100.0)), 3, 10
KINDS = (
    *(("along", fwhm) for fwhm in (10.0, 20.0, 30.0, 45.0)),
    *(("through", fwhm) for fwhm in (10.0, 20.0, 45.0)),
    ("uneven", 20.0),
    ("own", 20.0),
)
STATES = MORE, SAME, UNLIKE
_VOLUMES, _ROWS, _OWN, _NETWORKS, _WIDTH = 80, 500, 10, 10, 15.0


@dataclass(frozen=True, eq=False)
class Noise:
    """Projection of participants without networks on a basis."""

    root: Array
    """d x d. Of their covariance."""
    spots: int
    """Maps of the basis that are each participant's own."""

    def persons(self, count: int, seed: int) -> Iterator[Array]:
        """Return the series in the basis, d x T each."""
        generator, size = np.random.default_rng(seed), len(self.root)
        strong = np.sqrt(np.square(self.root).sum() / size)
        for _ in range(count):
            steps = generator.standard_normal((size, _VOLUMES), dtype=np.float32)
            series = self.root @ steps
            where = generator.choice(size, self.spots, replace=False)
            series[where] += 3 * strong * generator.standard_normal((self.spots, _VOLUMES))
            yield series


def main(first: int = 0, *names: str) -> None:
    """Print in how many runs a network is found where there is none, and maps beyond templates."""
    heading(f"noise | sites | participants | ε | runs that find a network | {' | '.join(STATES)}")
    seeds = range(first, first + RUNS)
    for kind, fwhm in KINDS:
        for sites, epsilon in STUDIES if not names or kind in names else ():
            cells = f"{kind} {fwhm:g} mm", str(sites), str(SIZES[sites]), f"{epsilon:g}"
            told = f"{_networks(kind, fwhm, sites, epsilon, seeds)} of {RUNS}"
            rest = _templates(kind, fwhm, sites, epsilon, seeds)
            line(*cells, told, *rest)


@lru_cache(maxsize=6)
def _noise(kind: str, fwhm: float, cutoff: float) -> Noise:
    where, basis = some_places(4), smooth_basis(some_places(4), cutoff).matrix
    if kind == "through":
        seen = _through(fwhm / FWHM_PER_SIGMA, basis)
    else:
        strength = np.ones(len(basis))
        if kind == "uneven":
            strength = 2 ** np.clip(where.coordinates[:, 1] / 50.0, 0.0, 1.0)
        seen, start = np.zeros((basis.shape[1],) * 2), 0
        for side in where.modes:
            part = slice(start, start := start + len(side.vectors))
            along = (basis[part] * strength[part, None]).T @ side.vectors
            seen += (along * side.heat((fwhm / FWHM_PER_SIGMA) ** 2)[0]) @ along.T
    values, vectors = np.linalg.eigh(seen)
    root = vectors * np.sqrt(np.maximum(values, 0.0) / values.max())
    return Noise(root.astype(np.float32), _OWN if kind == "own" else 0)


def _through(width: float, basis: Array) -> Array:
    """Return ΦᵀCΦ of white noise smoothed in the volume."""
    where, narrow = some_places(4).coordinates.astype(np.float32), basis.astype(np.float32)
    squares, total = np.square(where).sum(axis=1), np.zeros((basis.shape[1],) * 2)
    for start in range(0, len(where), _ROWS):
        part = slice(start, start + _ROWS)
        away = squares[part, None] + squares - 2 * where[part] @ where.T
        total += narrow[part].T @ (np.exp(-np.maximum(away, 0) / (4 * width**2)) @ narrow)
    return total


@lru_cache(maxsize=4)
def _mean_projector(
    kind: str, fwhm: float, cutoff: float, kept: int, size: int, seed: int
) -> Array:
    noise = _noise(kind, fwhm, cutoff)
    total = np.zeros((len(noise.root),) * 2, dtype=np.float32)
    for series in noise.persons(size, seed):
        own = leading_directions(series, kept)
        total += own @ own.T
    return np.asarray(total / size, dtype=np.float64)


def _networks(kind: str, fwhm: float, sites: int, epsilon: float, seeds: range) -> int:
    made = _plan("group_ica", sites, epsilon, {"components": 20, "replays": REPLAYS})
    known: Any = made.analysis
    asked = kind, fwhm, known.cutoff, known.asked.kept, SIZES[sites]
    told = (answer(_mean_projector(*asked, seed), made, seed) for seed in seeds)
    return sum(bool(is_found(each).any()) for each in told)


def _templates(kind: str, fwhm: float, sites: int, epsilon: float, seeds: range) -> list[str]:
    """Count maps of all runs that differ from, agree with and are unlike their templates."""
    analysis = {"templates": "x.dscalar.nii", "connectivity": False}
    maps, states = hills(), list[str]()
    templates = Templates(maps.astype(np.float32))
    made = _plan("template_networks", sites, epsilon, analysis, templates)
    cell = Cell("hills", templates, made)
    noise, given = _noise(kind, fwhm, cell.cutoff), in_basis(templates, some_places(4), cell.cutoff)
    for seed in seeds:
        each = (person_maps(series, given) for series in noise.persons(SIZES[sites], seed))
        mean = sum(each, np.zeros(given.shape)) / SIZES[sites]
        states += [str(row[-1]) for row in result(mean, cell, seed).tables["templates"].rows]
    return [f"{states.count(word) / len(states):.2f}" for word in STATES]


@lru_cache(maxsize=1)
def hills() -> Array:
    """Return maps of networks of three hills each, anywhere on both hemispheres: V x 10."""
    generator, where = np.random.default_rng(3), some_places(4).coordinates
    tops = where[generator.choice(len(where), (_NETWORKS, 3), replace=False)]
    away = np.square(where[:, None, None] - tops).sum(axis=3)
    return np.asarray(np.exp(-away / (2 * _WIDTH**2)).sum(axis=2))


def _plan(
    algorithm: str,
    sites: int,
    epsilon: float,
    analysis: dict[str, Any],
    templates: Templates | None = None,
) -> Plan:
    asked, data = {"anyway": True, **analysis}, {"mesh": "fsaverage5"}
    study = study_of(algorithm, asked, sites, epsilon, data=data)
    sizes, where = (SIZES[sites] // sites,) * sites, some_places(4)
    extent = Extent(len(where.coordinates), 0, (), where)
    shape = extent.shape(sizes, tuple(_VOLUMES * size for size in sizes), "subject")
    return make_plan(study, replace(shape, templates=templates))


if __name__ == "__main__":
    command(main)
