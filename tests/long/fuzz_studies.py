"""Study files of every algorithm, and what they would cost: read by sites before they say yes."""

import random
from collections.abc import Iterator
from typing import Any

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Extent
from consortium.study.plan import make_plan
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from consortium.views.table import TableView
from tests.long.fuzz_mutations import Make, mutant
from tests.long.fuzz_queries import study_text
from tests.long.fuzz_records import YAML
from tests.long.fuzz_targets import Target

VOXELS, PERSONS, VOLUMES = 60, 20, 480
_NUMBERS = (
    *(0, 1, 2, 3, 7, 64, 1000, 10**6, 1 << 62, -1, 0.0, 1e-3, 0.5, 0.99, 1.5, 99.0, 1e4, 1e9),
    *(5e-324, 1e-200, 1e-100, 1e-20, 1e20, 1e100, 1e160, 1e308),
)


def texts() -> list[bytes]:
    """The study of every example of every analysis, with its defaults as numbers."""
    return [
        study_text(name, case).encode() for name, each in REGISTRY.items() for case in each.cases
    ]


def plan(data: bytes) -> None:
    """Read a study, and work out its plan for sites of some size."""
    study = parse_study(data.decode("utf-8", "replace"))
    count = len(study.sites)
    shape = _extent(study).shape((PERSONS,) * count, (VOLUMES,) * count, study.privacy.unit)
    make_plan(study, shape)


def _extent(study: Study) -> Extent:
    """What `study_space` finds, without its files."""
    views = tuple(
        (view.name, len(view.labels) if isinstance(view, TableView) else VOXELS)
        for view in study.features
    )
    return Extent(sum(size for _, size in views) or VOXELS, 0, views)


def misnumbered(bodies: list[bytes]) -> Make:
    """Make studies with other numbers, some of them out of form, too."""
    loose = mutant(bodies, YAML, 0.8)

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.3:
            return loose(rng)
        tree = YAML.read(rng.choice(bodies))
        for _ in range(rng.choice((1, 1, 2, 3))):
            holder, key = rng.choice(list(_numbers(tree)))
            holder[key] = rng.choice(_NUMBERS)
        return YAML.write(tree)

    return make


def _numbers(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Where the numbers of a tree stand."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from _numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield tree, key


def study_targets() -> list[Target]:
    """One, of all algorithms."""
    return [Target("study and its plan", 40_000, misnumbered(texts()), plan)]
