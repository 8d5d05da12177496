"""Figures 6.2 to 6.4: joint ICA of the chapter's simulation.

``python -m benchmarks.replication.ica`` prints tables and writes docs/images/ica.png. As in the
chapter, ε is that of only the ICA, and the PCA before it is exact; one more panel charges both. The
unit is timepoint, as in the chapter, which does not state it; one curve has unit subject. The
chapter's abscissa ε_i, of one release, is replaced by the true ε of all of them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.common import (
    SCHEMES,
    Promise,
    even_sizes,
    noisy_run,
    paper_study,
    site_count,
)
from benchmarks.replication.courses import Courses, Lifted
from benchmarks.replication.djica import ROUNDS, published, whitened
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import (
    classical,
    printed_epsilon,
    published_factor,
    published_ratio,
    show_costs,
)
from benchmarks.timing import show
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Extent
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.simulation.array_data import ArrayData
from tests.support.chapter import chapter
from tests.support.gain_index import gain_index

SITES, DELTA = 4, 1e-5
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SUBJECTS = (64, 256, 1024)
DELTAS = (1e-8, 1e-6, 1e-4, 1e-2)
RUNS = {64: 10, 256: 5, 1024: 2}
"""Number of subjects."""
KEYS = (*SCHEMES, "subject", "published", "whitened")


def ours(
    courses: Courses,
    key: str,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
    *,
    sites: Mapping[str, ArrayData],
    whole: bool = False,
) -> float:
    """Return the gain index of one run of `estimate`."""
    unmixing = estimate(courses, key, epsilon, delta, generator, sites=sites, whole=whole)
    mixing = courses.basis @ courses.mixing if whole else courses.mixing
    return gain_index(unmixing @ mixing)


def estimate(
    courses: Courses,
    key: str,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
    *,
    sites: Mapping[str, ArrayData],
    whole: bool = False,
) -> Array:
    """Return the unmixing of one run; ``whole`` also charges the PCA and uses all pixels."""
    data = sites[key if key in sites else "all"]
    if not whole:  # half of μ² is planned for the PCA, which is exact here
        epsilon = epsilon_of(mu_of(epsilon, delta) * 2**0.5, delta)
    scheme = "cape" if key == "subject" else key
    promise = Promise(SITES, epsilon, delta)
    study = paper_study("ica", {"components": 20}, scheme, promise, unit=data.unit)
    subjects = even_sizes(len(data.lengths), site_count(key, SITES))
    samples = [courses.volumes * count for count in subjects]
    features = len(courses.basis) if whole else len(courses.table)
    shape = Extent(features, features).shape(subjects, samples, data.unit)
    plan = REGISTRY["ica"](study.analysis, shape)
    lifted = Lifted(plan, courses, data)
    result = noisy_run(
        study,
        shape,
        lifted.mean if whole else lambda q, b: plan.statistics[q.statistic](plan, data, q, b),
        generator,
        exact=() if whole else ("pca",),
    )
    return result.arrays["unmixing"]


def runs(subjects: int, seed: int) -> tuple[Courses, dict[str, ArrayData]]:
    """Return a data set as all sites, as one site, and as protected participants have it."""
    courses = Courses(chapter(seed, subjects=subjects))
    return courses, {
        "all": courses.site("timepoint", subjects),
        "local": courses.site("timepoint", subjects // SITES),
        "subject": courses.site("subject", subjects),
    }


Points = list[tuple[float, float]]
"""ε and δ."""


def scores(
    subjects: int, points: Points, keys: tuple[str, ...] = KEYS, *, whole: bool = False
) -> list[dict[str, Array]]:
    """Return the gain index of every method at each ε and δ, one number for each run."""
    found: list[dict[str, list[float]]] = [{key: [] for key in keys} for _ in points]
    for seed in range(RUNS[subjects]):
        courses, sites = runs(subjects, seed)
        g = np.random.default_rng([seed, subjects])
        plain = ours(courses, "none", 1.0, DELTA, g, sites=sites, whole=whole)
        for (epsilon, delta), at in zip(points, found, strict=True):
            ratio = published_ratio(epsilon, delta, SITES, 2 * ROUNDS)
            for key in keys:
                if key == "none":
                    at[key].append(plain)
                elif key in ("published", "whitened"):
                    rival = whitened if key == "whitened" else published
                    unmixing = rival(courses.table, ratio, g)
                    at[key].append(gain_index(unmixing @ courses.mixing))
                else:
                    gain = ours(courses, key, epsilon, delta, g, sites=sites, whole=whole)
                    at[key].append(gain)
    return [{key: np.array(values) for key, values in at.items()} for at in found]


def rows(panel: Panel) -> list[list[str]]:
    """Write the means over runs as rows of text."""
    return [
        [panel.title, f"{panel.axis} = {x:g}"]
        + [f"{f[key].mean():.4f}" if key in f else "" for key in KEYS]
        for x, f in panel.points
    ]


def figure() -> list[Panel]:
    """Draw all panels; the one of M combines results of the others."""
    alone = [(epsilon, DELTA) for epsilon in EPSILONS]
    few, some, many = SUBJECTS
    by_epsilon = {m: scores(m, alone) for m in (some, many)}
    middle = EPSILONS.index(1.0)
    by_subjects = [*scores(few, [(1.0, DELTA)]), by_epsilon[some][middle], by_epsilon[many][middle]]
    by_delta = scores(some, [(1.0, delta) for delta in DELTAS])
    paid = scores(many, alone, ("none", "cape", "subject"), whole=True)
    shown: list[tuple[str, str, Sequence[float], list[dict[str, Array]]]]
    shown = [(f"M = {m}", "ε", EPSILONS, found) for m, found in by_epsilon.items()]
    shown += [
        ("ε = 1", "M", SUBJECTS, by_subjects),
        (f"M = {some}, ε = 1", "δ", DELTAS, by_delta),
        (f"M = {many}, PCA charged", "ε", EPSILONS, paid),
    ]
    return [Panel(name, axis, list(zip(x, found, strict=True))) for name, axis, x, found in shown]


def main() -> None:
    drawn = figure()
    show(
        "Gain index, mean of ten runs (M = 64), five (256) or two (1024), S = 4, one colluding",
        ["panel", "at", *KEYS],
        [row for panel in drawn for row in rows(panel)],
    )
    show_costs(
        f"Algorithm 6.1 after {ROUNDS} rounds at nominal ε a release, S = 4, δ = 1e-5",
        ["Theorem 3.1 for one", "true, all"],
        (0.05, 0.1, 0.5, 1.0),
        lambda e: printed_epsilon(e, 0.01, SITES),
        all_rounds,
    )
    print(panels("ica", [panel.curves() for panel in drawn], "gain index"))
    for rival in ("published", "whitened"):
        print(f"{rival}: {verdict(point for panel in drawn for point in panel.compared(rival))}")


def all_rounds(nominal: float) -> float:
    """Return ε at 1e-5 of all releases, each calibrated at δ = 0.01 (section 6.5)."""
    each = classical(nominal, 0.01) * published_factor(SITES)
    return epsilon_of(each * (2 * ROUNDS) ** 0.5, DELTA)


if __name__ == "__main__":
    main()
