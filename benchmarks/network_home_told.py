"""Reports to hospitals on their networks at home, compared with the truth.

``python -m benchmarks.networks home_told FOLDER`` uses the participants of
`benchmarks.network_halves`. Hospitals are in two groups: the range, and the least difference
between hospitals, were chosen on `FITTED`, and the others are held out; samples of one university
are in one group. In each group half of every hospital is the consortium, the pool of the other
halves is the truth, and each hospital in turn combines its own half with the release. For the maps
that count as found, the table gives the expected correlation, the truth, and how often the range
contains it.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.network_halves import _centres, _halved, _mean, _people, all_maps
from benchmarks.network_pool import cosines
from benchmarks.network_smooth import is_found, region_plan
from benchmarks.timing import show
from consortium.algorithms.base import Array, Release, Result
from consortium.algorithms.group_ica.at_home import results_at_home
from consortium.kernels.home_posterior import ReleaseShare, combine_projectors
from consortium.kernels.moments import pack_symmetric
from consortium.kernels.noise_law import SymmetricNoise

FITTED = ("USM", "MaxMun", "Caltech", "UCLA_1", "UCLA_2", "UM_1", "UM_2", "Pitt", "SBL", "OHSU")
EPSILONS, SPLITS = (4.0, 8.0, 16.0), 1
Told = tuple[float, float, float]
"""Expected and true correlation, and whether the range contains the truth."""


def home_told(folder: Path) -> None:
    """Print the table."""
    (directions, hospitals), centres, rows = _people(folder), _centres(folder), []
    fitted = np.isin(hospitals, FITTED)
    for name, group in (("fitted", fitted), ("held out", ~fitted)):
        for epsilon in EPSILONS:
            told: dict[str, list[Told]] = defaultdict(list)
            for split in range(SPLITS):
                people = directions[group], hospitals[group]
                for whose, result, truth in _at_home(*people, centres, epsilon, split):
                    told[whose] += _told(result, truth)
            rows += [_row(name, epsilon, whose, np.array(each)) for whose, each in told.items()]
    show(
        f"Networks at home of real hospitals, {SPLITS} splits: expected and true correlation",
        ["hospitals", "ε", "networks", "found", "expected", "true", "in its range"],
        rows,
    )


def _at_home(
    directions: Array, hospitals: Array, centres: Array, epsilon: float, split: int
) -> Iterator[tuple[str, Result, Array]]:
    """Return each hospital's own networks, the release's and both together, with the true maps."""
    first = _halved(hospitals, split)
    members = [np.flatnonzero(first & (hospitals == name)) for name in np.unique(hospitals)]
    sizes = tuple(map(len, members))
    made, truth = region_plan(sizes, epsilon, centres), all_maps(_mean(directions[~first]))
    deviation, matrix = float(made.stages[0].mechanism.noise.aggregate()), _mean(directions[first])
    noise = SymmetricNoise(len(matrix), deviation).draw(np.random.default_rng(split))
    release = Release(pack_symmetric(matrix + noise), deviation)
    for own in members:
        taken = ReleaseShare(len(own), sum(sizes), len(sizes), deviation)
        both = combine_projectors(list(directions[own]), matrix + noise, taken)
        results = results_at_home(both, release, made.analysis)  # type: ignore[arg-type]
        yield from ((whose, result, truth) for whose, result in results.items())


def _told(result: Result, truth: Array) -> list[Told]:
    found = is_found(result)
    if not found.any():
        return []
    true = cosines(result.arrays["maps"], truth).max(axis=0)
    pairs = zip(result.images["components"].accuracy, true, found, strict=True)
    return [(t.value, r, t.low <= r <= t.high) for t, r, sure in pairs if sure]


def _row(group: str, epsilon: float, whose: str, told: Array) -> list[str]:
    if not len(told):
        return [group, f"{epsilon:g}", whose, "0", "", "", ""]
    means = [f"{each:.2f}" for each in told.mean(axis=0)]
    return [group, f"{epsilon:g}", whose, str(len(told)), *means]
