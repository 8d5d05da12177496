"""Figures 6.5 and 6.6: true and estimated spatial maps of the chapter's simulation.

``python -m benchmarks.replication.maps`` prints a table and writes docs/images/maps.png. ε is that
of the ICA after an exact PCA, as in `ica`, with unit timepoint; a map is a column of the inverse of
the unmixing, and its score the size of its correlation with the true map that it is matched to.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.replication.courses import Courses
from benchmarks.replication.drawing import IMAGES
from benchmarks.replication.ica import DELTA, estimate, runs
from benchmarks.timing import show
from consortium.algorithms.base import Array
from tests.support.chapter import SIDE

CASES = (
    (1024, "none", 1.0),
    (256, "cape", 0.1),
    (256, "cape", 1.0),
    (1024, "cape", 0.1),
    (1024, "cape", 1.0),
)
"""Subjects, scheme and ε."""
SHOWN = 5
"""Number of maps in the picture."""


def matched(courses: Courses, unmixing: Array) -> tuple[Array, Array]:
    """Return the estimated maps in the order and with the signs of the true, and their scores."""
    true = courses.basis @ courses.mixing
    found = courses.basis @ np.linalg.inv(unmixing)
    count = true.shape[1]
    table = np.corrcoef(true.T, found.T)[:count, count:]
    order = linear_sum_assignment(-np.abs(table))[1]
    chosen = table[np.arange(count), order]
    return found[:, order] * np.sign(chosen), np.abs(chosen)


def case(subjects: int, scheme: str, epsilon: float) -> tuple[Array, Array, Array]:
    """Return true maps, estimated maps and scores."""
    courses, sites = runs(subjects, 0)
    g = np.random.default_rng([0, subjects])
    unmixing = estimate(courses, scheme, epsilon, DELTA, g, sites=sites)
    return courses.basis @ courses.mixing, *matched(courses, unmixing)


def draw(columns: list[tuple[str, Array, Array]]) -> str:
    """Draw a column of maps for each case; a score is under each map."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    size = (1.9 * len(columns), 1.75 * SHOWN)
    figure, axes = plt.subplots(SHOWN, len(columns), figsize=size)
    for at, (title, maps, values) in enumerate(columns):
        for row in range(SHOWN):
            image, axis = maps[:, row].reshape(SIDE, SIDE), axes[row, at]
            limit = np.abs(image).max()
            axis.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
            axis.set(xticks=[], yticks=[], xlabel=f"|r| = {values[row]:.3f}")
        axes[0, at].set_title(title, fontsize=9)
    figure.tight_layout()
    path = IMAGES / "maps.png"
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return str(path)


def main() -> None:
    rows, columns = [], []
    for subjects, scheme, epsilon in CASES:
        true, maps, values = case(subjects, scheme, epsilon)
        private = "no privacy" if scheme == "none" else f"ε = {epsilon:g}"
        rows.append([f"{subjects:,}", private, f"{values.mean():.3f}", f"{values.min():.3f}"])
        columns.append((f"M = {subjects:,}, {private}", maps, values))
    columns.insert(0, ("true", true, np.ones(true.shape[1])))
    show("|r| of 20 maps with the true, one run", ["M", "ε", "mean", "least"], rows)
    print(draw(columns))


if __name__ == "__main__":
    main()
