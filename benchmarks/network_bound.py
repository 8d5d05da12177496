"""Noise of `group_ica` and `glm` relative to the least noise of a private, unbiased mean.

``python -m benchmarks.networks bound [FOLDER]``: deviation of the releases over that of the bound
(docs/explanation/noise-bound.md), at the same ε and among the same sites, one of which may collude.
*At the most* uses participants' measured covariance, which makes the bound too small if there are
fewer participants than numbers; *at the least* uses the hardest covariance of the same trace.
FOLDER adds the real participants of `benchmarks.network_halves`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.glm_data import Unkind, make_people
from benchmarks.glm_runs import TableData, Trial, make_trial, noise_of
from benchmarks.network_halves import _people
from benchmarks.noise_bound import Spectrum, even, least_noise, spectrum_of_gram
from benchmarks.timing import show
from consortium.algorithms.base import Array, Release
from consortium.algorithms.glm.centre import Glm
from consortium.kernels.moments import packed_size
from consortium.privacy.block_bounds import BlocksBound
from consortium.privacy.gdp import mu_of

EPSILONS, DELTA = (1.0, 2.0, 4.0, 8.0), 1e-5
PERSONS, SITES, SIZE, KEPT, VOLUMES = 2000, 8, 24, 5, 60


def bound(folder: Path | None = None) -> None:
    """Print the table."""
    rows = [*_of_projectors("made up", _made_up()), *_of_contrasts()]
    if folder is not None:
        rows += _of_projectors("real", _people(folder)[0])
    show(
        "Deviation of the noise over the least that is possible",
        ["release", "participants", "numbers", "ε", "at the least", "at the most"],
        rows,
    )


def _made_up() -> Array:
    """Return leading directions of participants with networks in white noise: n x d x K."""
    generator = np.random.default_rng(0)
    series = generator.standard_normal((PERSONS, SIZE, VOLUMES))
    series[:, :KEPT] *= np.linspace(2.5, 1.5, KEPT)[:, None]
    return np.asarray(np.linalg.svd(series, full_matrices=False)[0][:, :, :KEPT])


def _of_projectors(name: str, directions: Array) -> Iterator[list[str]]:
    persons, size, kept = directions.shape
    spectrum = spectrum_of_gram(_products(directions))
    entries = packed_size(size)
    for epsilon in EPSILONS:
        deviation = math.sqrt(2.0 * kept) / persons * noise_of(epsilon, SITES)
        label = f"group_ica, {name}"
        yield _row(label, persons, entries, epsilon, entries * deviation**2, spectrum)


def _products(directions: Array) -> Array:
    """Return inner products of the participants' projectors, ‖UᵀU'‖²: n x n."""
    persons, size, kept = directions.shape
    flat = directions.transpose(1, 0, 2).reshape(size, -1)
    rows = [
        np.square(own.T @ flat).sum(axis=0).reshape(persons, kept).sum(axis=1) for own in directions
    ]
    return np.array(rows)


def _of_contrasts() -> Iterator[list[str]]:
    """Measure the effects of 68 outcomes in `glm`'s last round, with its plan's clip and noise.

    Other parts of a study's release have a part of the budget, which counts as noise here.
    """
    people = make_people(PERSONS, 68, SITES, np.random.default_rng(0), unkind=Unkind())
    trial = make_trial(people)
    for epsilon in EPSILONS:
        parts, deviation = _contributions(trial, noise_of(epsilon, SITES))
        persons, entries = parts.shape
        noise, spectrum = entries * deviation**2, spectrum_of_gram(parts @ parts.T)
        yield _row("glm, effects", persons, entries, epsilon, noise, spectrum)


def _contributions(trial: Trial, noise: float) -> tuple[Array, float]:
    """Return each participant's part of the effects (n x entries), and the noise of a number."""
    shape = replace(trial.shape, noise=noise)
    plan = Glm(trial.parameters, shape)
    planned = {stage.stage: stage for stage in plan.releases}
    run, generator = plan.run(), np.random.default_rng(1)
    query, persons = next(run), sum(shape.subjects)
    while True:
        stage = planned[query.stage]
        local = plan.statistics[query.statistic]
        deviation = stage.bound.spread / persons * noise / math.sqrt(stage.share)
        parts = [
            local(plan, one, replace(query, site=number), stage.bound)
            for number, site in enumerate(trial.sites)
            for one in _each(site.table(), trial.shape.views)
        ]
        if query.stage == "contrast":
            assert isinstance(stage.bound, BlocksBound)
            (first, *_), found = stage.bound.blocks, np.array(parts)
            return found[:, : first.entries], deviation
        mean = np.mean(parts, axis=0)
        mean = mean + deviation * generator.standard_normal(len(mean))
        query = run.send(Release(mean, deviation, tuple(range(len(trial.sites)))))


def _each(table: Array, views: Sequence[tuple[str, int]]) -> Iterator[TableData]:
    for column in table.T:
        yield TableData(column[:, None], tuple(views))


def _row(
    name: str, persons: int, entries: int, epsilon: float, noise: float, spectrum: Spectrum
) -> list[str]:
    mu = mu_of(epsilon, DELTA)
    least, most = (
        math.sqrt(noise / found) if found > 0 else math.inf
        for found in (
            least_noise(each, persons, mu) for each in (even(spectrum, entries), spectrum)
        )
    )
    numbers = f"{persons:,}", f"{entries:,}", f"{epsilon:g}"
    return [name, *numbers, f"{least:.2f}", f"{most:.2f}"]
