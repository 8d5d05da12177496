"""One run of an algorithm with the noise that a plan gives it, and figures of the outcome.

The releases carry the planned Gaussian noise of the aggregate, without the protocol: the tests
show that the protocol adds the same. So ten runs of hundreds of points take minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Release, Result
from consortium.algorithms.memory import ArrayData
from consortium.plan import make_plan
from consortium.privacy.gdp import compose, epsilon_of
from consortium.privacy.loss import SiteNoise, coalition_losses, printed_loss
from consortium.study import Study

IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
RUNS = 10
SCHEMES = ("none", "pooled", "cape", "conv", "local")
LABELS = {
    "none": "non-private, pooled",
    "pooled": "pooled, private",
    "cape": "this project",
    "conv": "conventional: noise at each site",
    "local": "one site alone",
    "bare": "ADMM without noise",
    "pp": "this project",
    "ipp": "this project, with tests (IPP)",
    "claimed": "as published, at the ε it claims",
    "published": "as published",
}
STYLES = {
    "none": "k--",
    "pooled": "C7:",
    "cape": "C0o-",
    "conv": "C1s-",
    "local": "C2^-",
    "published": "C3v-",
    "dp-fm": "C4x-",
    "objPert": "C5+-",
    "random": "C7-.",
    "bare": "k--",
    "pp": "C0o-",
    "ipp": "C4d-",
    "claimed": "C3v:",
    "DVP": "C5+-",
}
Views = Sequence[tuple[str, int]]


def colluders(sites: int) -> int:
    """Largest S_C of the dissertation: ⌈S/3⌉ - 1."""
    return math.ceil(sites / 3) - 1


def private_run(
    algorithm: str,
    analysis: Mapping[str, object],
    table: Array,
    views: Views,
    scheme: str,
    *,
    sites: int,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
) -> Result:
    """Run an analysis of a D x N table that lies evenly at some sites.

    ``epsilon`` is the whole study's, against the worst coalition; ``pooled`` is one site with all
    the data, ``local`` one site with its own part.
    """
    if scheme == "local":
        table = table[:, : table.shape[1] // sites]
    count = 1 if scheme in ("pooled", "local") else sites
    study = paper_study(algorithm, analysis, views, scheme, count, epsilon, delta)
    data = ArrayData([table[:, :1]], views=views)
    data.lengths = [1] * table.shape[1]
    data.table = lambda: table  # type: ignore[method-assign]
    sizes = [len(part) for part in np.array_split(np.empty(table.shape[1]), count)]
    shape = data.extent.shape(sizes, sizes, "subject")
    plan = make_plan(study, shape)
    run = REGISTRY[algorithm].run(study.analysis, shape)
    release = None
    try:
        while True:
            query = next(run) if release is None else run.send(release)
            mechanism = plan.stage(query.stage).mechanism
            local = REGISTRY[algorithm].statistics[query.statistic]
            mean = local(data, query, mechanism.bound).ravel()
            deviation = 0.0 if scheme == "none" else mechanism.noise.aggregate()
            release = Release(mean + deviation * generator.standard_normal(mean.size), deviation)
    except StopIteration as stop:
        result: Result = stop.value
        return result


def paper_study(
    algorithm: str,
    analysis: Mapping[str, object],
    views: Views,
    scheme: str,
    sites: int,
    epsilon: float,
    delta: float,
) -> Study:
    """A study of tables whose columns lie within -1 and 1."""
    named = {"cape": "cape", "none": "none"}.get(scheme, "local")
    return Study.model_validate(
        {
            "study": "paper",
            "sites": [f"site{number}" for number in range(sites)],
            "features": [
                {
                    "name": name,
                    "source": "table",
                    "columns": {f"{name}[1-{size}]": {"low": -1, "high": 1}},
                }
                for name, size in views
            ],
            "privacy": {
                "epsilon": epsilon,
                "delta": delta,
                "scheme": named,
                "colluding_sites": 0 if sites == 1 else colluders(sites),
            },
            "algorithm": algorithm,
            "analysis": dict(analysis),
        }
    )


def published_factor(sites: int) -> float:
    """True loss μ of CAPE as published (κ = 1) over Δ/τ, against the worst coalition."""
    noise = SiteNoise("cape", (1.0,) * sites, (sites**-0.5,) * sites)
    return float(coalition_losses(noise, [1.0] * sites, colluders(sites))[0])


def classical(epsilon: float, delta: float) -> float:
    """Δ/τ of the papers' calibration τ = Δ √(2 ln(1.25/δ)) / ε."""
    return epsilon / math.sqrt(2 * math.log(1.25 / delta))


def true_epsilon(nominal: float, delta: float, sites: int, releases: int) -> float:
    """ε that CAPE as published keeps, if each release is calibrated for ``nominal``."""
    each = classical(nominal, delta) * published_factor(sites)
    return epsilon_of(compose([each] * releases), delta)


def printed_epsilon(nominal: float, delta: float, sites: int) -> float:
    """ε that Theorem 3.1 as printed would claim for one release."""
    return epsilon_of(classical(nominal, delta) * printed_loss(sites, colluders(sites)), delta)


def panels(
    name: str,
    panels: Sequence[tuple[str, str, Mapping[str, tuple[Array, Array]]]],
    ylabel: str,
    yscale: str = "log",
) -> Path:
    """Draw panels (title, x label, curves by key) beside each other as docs/images/NAME.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.3 * rows), squeeze=False)
    for axis, (title, xlabel, curves) in zip(axes.ravel(), panels, strict=False):
        for key, (x, y) in curves.items():
            axis.plot(x, y, STYLES[key], label=LABELS.get(key, key), markersize=4, linewidth=1.2)
        axis.set(xscale="log", yscale=yscale, title=title, xlabel=xlabel, ylabel=ylabel)
        axis.title.set_fontsize(9)
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(visible=True, alpha=0.3)
    for axis in axes.ravel()[len(panels) :]:
        axis.remove()
    axes[0, 0].legend(fontsize=6)
    figure.tight_layout()
    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
