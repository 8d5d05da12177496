"""Figures 6.2 to 6.4 on real fMRI: joint ICA of ABIDE's regional series in place of the chapter's.

``python -m benchmarks.replication.abide FOLDER`` prints a table and writes docs/images/abide.png.
FOLDER contains ``rois_cc200/*.1D``, a file for each participant of the Preprocessed Connectomes
Project (a header of region numbers, and a line for each volume of 200 regions). Nothing of it is
stored here. As in the chapter the PCA is of pooled data without noise, 50 components remain, and
the pooled, non-private result is taken for the truth. ε is that of only the ICA. Differences:
regions instead of voxels, and four sites to which participants are assigned at random.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.replication.audit import Panel, verdict
from benchmarks.replication.common import (
    SCHEMES,
    Promise,
    noisy_run,
    paper_study,
    site_count,
)
from benchmarks.replication.djica import ROUNDS, published, whitened
from benchmarks.replication.drawing import panels
from benchmarks.replication.printed import published_ratio
from benchmarks.timing import command, show
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Extent
from consortium.privacy.bounds import Unit
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.simulation.array_data import ArrayData
from tests.support.gain_index import gain_index

SITES, DELTA, COMPONENTS = 4, 1e-5, 50
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RUNS = 2
KEYS = (*SCHEMES, "subject", "published", "whitened")


@dataclass(frozen=True, eq=False)
class Series:
    """Leading principal coordinates of all participants' volumes."""

    table: Array
    """Shape (R, N); the mean squared norm of a volume is 1."""
    lengths: list[int]
    """Number of volumes of each participant."""

    def parts(self) -> list[Array]:
        """Return every participant's volumes."""
        return np.split(self.table, np.cumsum(self.lengths)[:-1], axis=1)

    def site(self) -> "Series":
        """Return the participants of one site."""
        return Series(np.hstack(self.parts()[::SITES]), self.lengths[::SITES])

    def data(self, key: str) -> ArrayData:
        """Return all participants, or those of one site."""
        unit: Unit = "subject" if key == "subject" else "timepoint"
        return ArrayData((self.site() if key == "local" else self).parts(), unit=unit)


def read_series(folder: Path, components: int = COMPONENTS) -> Series:
    """Read all participants in a random order, standardize their regions, and project on a PCA."""
    paths = sorted((folder / "rois_cc200").glob("*.1D"))
    if not paths:
        raise FileNotFoundError(
            f"{folder} must contain rois_cc200/*.1D, but there is no such file."
        )
    parts = []
    for path in np.random.default_rng(0).permutation(np.array(paths)):
        series = np.loadtxt(path).T
        spread = series.std(axis=1, keepdims=True)
        centred = series - series.mean(axis=1, keepdims=True)
        parts.append((centred / np.where(spread > 0, spread, 1.0)).astype(np.float32))
    pooled = np.hstack(parts)
    moment = pooled.astype(np.float64) @ pooled.T / pooled.shape[1]
    basis = np.linalg.eigh(moment)[1][:, -components:]
    table = (basis.T @ pooled).astype(np.float32)
    table /= np.sqrt(np.square(table).sum() / table.shape[1])
    return Series(table, [part.shape[1] for part in parts])


def unmixing(series: Series, key: str, epsilon: float, g: np.random.Generator) -> Array:
    """Return the unmixing of one run of this project's ICA."""
    data = series.data(key)
    # half of μ² is planned for the PCA, which is exact here
    whole = epsilon_of(mu_of(epsilon, DELTA) * 2**0.5, DELTA)
    scheme = "cape" if key == "subject" else key
    promise, size = Promise(SITES, whole, DELTA), len(series.table)
    study = paper_study("ica", {"components": size}, scheme, promise, unit=data.unit)
    sites = np.array_split(np.array(data.lengths), site_count(key, SITES))
    subjects, samples = [len(own) for own in sites], [int(own.sum()) for own in sites]
    shape = Extent(size, size).shape(subjects, samples, data.unit)
    plan = REGISTRY["ica"](study.analysis, shape)
    result = noisy_run(
        study,
        shape,
        lambda q, b: plan.statistics[q.statistic](plan, data, q, b),
        g,
        exact=("pca",),
    )
    return result.arrays["unmixing"]


def scores(series: Series, truth: Array, epsilon: float) -> dict[str, Array]:
    """Return the gain index of every method, one number for each run."""
    mixing = np.linalg.inv(truth)
    ratio = published_ratio(epsilon, DELTA, SITES, 2 * ROUNDS)
    found: dict[str, list[float]] = {key: [] for key in KEYS if key != "none"}
    for seed in range(RUNS):
        for key, values in found.items():
            g = np.random.default_rng(seed)
            if key in ("published", "whitened"):
                each = (whitened if key == "whitened" else published)(series.table, ratio, g)
            else:
                each = unmixing(series, key, epsilon, g)
            values.append(gain_index(each @ mixing))
    return {key: np.array(values) for key, values in found.items()}


def non_private(series: Series) -> Array:
    """Return the unmixing that is taken for the truth."""
    return unmixing(series, "none", 1.0, np.random.default_rng(0))


def main(folder: Path) -> None:
    series = read_series(folder)
    truth = non_private(series)
    count, volumes = len(series.lengths), series.table.shape[1]
    title = f"ABIDE, {count:,} participants, {volumes:,} volumes"
    without = gain_index(non_private(series.site()) @ np.linalg.inv(truth))
    print(f"One site without noise: {without:.4f}", flush=True)
    panel = Panel(title, "ε", [(e, scores(series, truth, e)) for e in EPSILONS])
    keys = [key for key in KEYS if key != "none"]
    show(
        f"{title}: gain index against the non-private result, mean of {RUNS} runs, S = 4",
        ["ε", *keys],
        [[f"{e:g}", *(f"{f[key].mean():.4f}" for key in keys)] for e, f in panel.points],
    )
    print(panels("abide", [panel.curves()], "gain index"))
    for rival in ("published", "whitened"):
        print(f"{rival}: {verdict(panel.compared(rival))}")


if __name__ == "__main__":
    command(main)
