"""capeDJICA: known sources are found, in both units and by all three optimizers."""

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Release, Shape
from consortium.algorithms.ica.site import rotation
from consortium.errors import StudyError
from consortium.kernels.moments import pack_symmetric
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData
from consortium.simulation.signals import garch_courses
from tests.support.cases import drive, shape_of
from tests.support.gain_index import gain_index

ICA = REGISTRY["ica"]
FEATURES, SOURCES = 12, 4


def consortium(unit, courses, subjects=24, volumes=300):
    """Four sites that share one mixing; the mean squared norm of a volume is 1."""
    generator = np.random.default_rng(11)
    mixing = generator.standard_normal((FEATURES, SOURCES))
    mixing /= np.linalg.norm(mixing)
    people = [
        mixing @ courses(generator, volumes) + 0.01 * generator.standard_normal((FEATURES, volumes))
        for _ in range(subjects)
    ]
    return mixing, [ArrayData(part, unit) for part in np.array_split(np.array(people), 4)]


def laplace(generator, volumes):
    return generator.laplace(scale=np.sqrt(0.5), size=(SOURCES, volumes))


def garch(generator, volumes):
    return garch_courses(generator, SOURCES, volumes)


@pytest.mark.parametrize(
    ("unit", "courses", "analysis"),
    [
        ("subject", garch, {}),
        ("subject", garch, {"optimizer": "fixed-point"}),
        ("subject", laplace, {"score": "tanh"}),
        ("subject", laplace, {"optimizer": "fixed-point", "score": "tanh", "rounds": 12}),
        ("subject", laplace, {"optimizer": "gradient"}),
        ("timepoint", laplace, {"bound": 4.0}),
        ("timepoint", laplace, {"optimizer": "gradient"}),
    ],
)
def test_the_sources_are_found(unit, courses, analysis):
    mixing, sites = consortium(unit, courses)
    parameters = ICA.Parameters(components=SOURCES, pca_bound=10.0, **analysis)
    _, _, result = drive(ICA, parameters, sites)
    gain = result.arrays["unmixing"] @ mixing
    assert gain_index(gain) < 0.06
    assert result.numbers["last_change"] < 0.1
    # Whitening alone does not do it, so the rounds must have.
    assert gain_index(result.arrays["basis"].T @ mixing) > 0.2
    undone = result.arrays["unmixing"] @ result.arrays["mixing"]
    assert undone == pytest.approx(np.eye(SOURCES), abs=1e-6)


def test_as_good_as_scikit_learn_on_pooled_data():
    decomposition = pytest.importorskip("sklearn.decomposition")
    mixing, sites = consortium("subject", laplace)
    parameters = ICA.Parameters(
        components=SOURCES, pca_bound=10.0, bound=1e3, optimizer="fixed-point", score="tanh"
    )
    _, _, ours = drive(ICA, parameters.model_copy(update={"rounds": 20}), sites)
    pooled = np.hstack([block for site in sites for block in site.blocks()])
    theirs = decomposition.FastICA(SOURCES, random_state=0, tol=1e-8, max_iter=500).fit(pooled.T)
    expected = gain_index(theirs.components_ @ mixing)
    assert gain_index(ours.arrays["unmixing"] @ mixing) == pytest.approx(expected, abs=0.005)


def test_a_volume_unit_can_t_use_what_mixes_volumes():
    shape = Shape(FEATURES, (4, 4), (400, 400), "timepoint")
    with pytest.raises(StudyError, match=r"analysis\.score"):
        ICA(ICA.Parameters(components=3, score="volatility"), shape).planned()
    with pytest.raises(StudyError, match=r"analysis\.optimizer"):
        ICA(ICA.Parameters(components=3, optimizer="fixed-point"), shape).planned()
    _, second = ICA(ICA.Parameters(components=3), shape).planned()
    assert second.statistic == "rotation"


@pytest.mark.parametrize(
    ("optimizer", "entries", "rounds"),
    [("rotation", 10, 20), ("fixed-point", 25, 8), ("gradient", 30, 150)],
)
def test_planned_sizes(optimizer, entries, rounds):
    shape = Shape(FEATURES, (4, 4), (400, 400), "subject")
    first, second = ICA(ICA.Parameters(components=5, optimizer=optimizer), shape).planned()
    assert (first.entries, first.rounds, first.share) == (78, 1, 0.6)
    assert (second.entries, second.rounds, second.share) == (entries, rounds, 0.4)
    assert not second.bound.cone


def test_a_bound_by_default_clips_few():
    _, sites = consortium("subject", garch)
    parameters = ICA.Parameters(components=SOURCES, pca_bound=10.0)
    queries, _, _ = drive(ICA, parameters, sites)
    plan = ICA(parameters, shape_of(sites))
    _, planned = plan.planned()
    for query in queries[1:]:
        clipped = rotation(plan, sites[0], query, planned.bound)
        whole = rotation(plan, sites[0], query, Bound(1e6))
        assert np.linalg.norm(clipped - whole) < 0.35 * planned.bound.norm


def turned_by_noise(stated):
    """How far noise of standard deviation 3 in every release turns W away from PCA's axes."""
    steps = ICA(ICA.Parameters(components=4, rounds=10), Shape(6, (9,), (90,), "subject")).run()
    next(steps)
    steps.send(Release(pack_symmetric(np.diag([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])), 0.0))
    generator = np.random.default_rng(0)
    try:
        while True:
            steps.send(Release(3.0 * generator.standard_normal(6), stated))
    except StopIteration as stop:
        arrays = stop.value.arrays
    whitening = arrays["basis"] / np.sqrt(arrays["eigenvalues"])
    return np.linalg.norm(arrays["unmixing"] - whitening.T) / np.linalg.norm(whitening)


def test_noise_alone_leaves_the_axes_of_pca():
    assert turned_by_noise(3.0) < 0.2
    assert turned_by_noise(0.0) > 0.8  # the falsifier: steps that know of no noise
