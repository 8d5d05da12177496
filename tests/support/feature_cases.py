"""Studies of feature vectors and their sites in memory, for algorithms that take nothing else."""

from __future__ import annotations

import numpy as np

from consortium.algorithms import REGISTRY
from consortium.simulation.array_data import ArrayData
from consortium.study.spec import Study
from tests.support.series_cases import SITES

PLAIN = (("x", 4), ("y", 1))

LEVELS = {"epsilon": 8.0, "delta": 1e-5}
"""The promise of `make_feature_study`, for analyses that take it from there."""

FEATURE_CASES = (
    ("admm", PLAIN, {"target": "y", "rounds": 3, "bound": 1.2, "regularization": 0.1}),
    (
        "admm",
        (("y", 1), ("x", 3)),
        {"target": "y", "rounds": 4, "broadcasts": 3, "threshold": 0, "constant": 0},
    ),
    ("coordinate", PLAIN, {"levels": {"x": 0.5}, "dependence": 0.1, **LEVELS}),
    ("coordinate", PLAIN, {"levels": {"x": 1}, "target": "y", "protects": "entry", **LEVELS}),
    ("coordinate", PLAIN, {"radii": {"x": 1.0}, "target": "y", **LEVELS}),
    ("coordinate", PLAIN, {"levels": {"y": 2.0}, "randomize": "record", **LEVELS}),
    ("network", PLAIN, {"target": "y", "hidden": [3], "rounds": 3, "bound": 0.3}),
    ("network", (("kind", 3), ("x", 4)), {"target": "kind", "hidden": [3, 2], "rounds": 2}),
    ("regression", PLAIN, {"target": "y", "bound": 1.5}),
    ("regression", PLAIN, {"target": "y", "bound": 0.5, "intercept": False, "stabilize": "trim"}),
    ("regression", PLAIN, {"target": "y", "bound": 2.0, "model": "logistic"}),
    (
        "regression",
        PLAIN,
        {"target": "y", "bound": 1.0, "model": "polynomial", "cost": [[0, 0, 1], [0, -2], [1]]},
    ),
    ("summarize", PLAIN, {"frequencies": 6, "points": 2}),
    ("summarize", PLAIN, {"frequencies": 5, "points": 1, "target": "north", "width": 0.7}),
    ("tensor", PLAIN, {"components": 2, "bound": 1.0}),
    ("tensor", PLAIN, {"components": 5, "bound": 3.0, "share": 0.3}),
    (
        "tensor",
        (("one", 4), ("two", 4), ("three", 4)),
        {"components": 3, "model": "topics", "words": ["one", "two", "three"]},
    ),
    (
        "tensor",
        (("one", 9), ("two", 9), ("three", 9)),
        {"components": 2, "model": "topics", "words": ["one", "two", "three"]},
    ),
)
"""Algorithms of feature vectors of one length with every statistic; `memory_sites` has the rest."""

HEARING = ("admm",)
"""Algorithms whose sites hear their neighbours: attacked in tests of their own."""

FEATURE_STATISTICS = {
    name: local
    for algorithm in sorted({algorithm for algorithm, _, _ in FEATURE_CASES} - {*HEARING})
    for name, local in REGISTRY[algorithm].statistics.items()
}


def make_feature_study(algorithm, views, analysis, *, sites=SITES, **privacy):
    """A valid study whose views are numbered columns of the participants' table."""
    features = [
        {
            "name": name,
            "source": "table",
            "columns": {f"{name}[1-{size}]": {"low": -1, "high": 1}},
        }
        for name, size in views
    ]
    promise = {"epsilon": 8.0, "delta": 1e-5, "colluding_sites": 1, **privacy}
    return Study.model_validate(
        {
            "study": "vectors",
            "sites": list(sites),
            "features": features,
            "privacy": promise,
            "algorithm": algorithm,
            "analysis": analysis,
        }
    )


def sites_of(table, views, counts):
    """Sites that hold neighbouring columns of a D x M table."""
    ends = np.cumsum(counts)[:-1]
    return [
        ArrayData([person[:, None] for person in part.T], views=views)
        for part in np.split(table, ends, axis=1)
    ]


def make_feature_sites(views, *, persons=(3, 1, 4, 2), seed=0):
    """Sites of persons whose entries lie within -1 and 1."""
    size = sum(count for _, count in views)
    table = np.random.default_rng(seed).uniform(-1, 1, (size, sum(persons)))
    return sites_of(table.astype(np.float32), views, persons)
