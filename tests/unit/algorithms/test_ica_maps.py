"""Maps at full resolution: against plain NumPy, and the truth behind coarse data."""

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query, Shape
from consortium.algorithms.ica.site import _Spans, map_products
from consortium.errors import StudyError
from consortium.privacy.bounds import Bound
from consortium.simulation.array_data import ArrayData
from tests.support.cases import drive, shape_of

ICA = REGISTRY["ica"]
VOXELS, REGIONS, SOURCES, VOLUMES = 60, 12, 3, 400


def coarse_and_fine(unit="subject", subjects=6):
    """A site whose coarse features are means of five voxels each, and its true fine maps."""
    generator = np.random.default_rng(0)
    maps = generator.laplace(size=(VOXELS, SOURCES))
    fine = []
    for _ in range(subjects):
        courses = generator.laplace(size=(SOURCES, VOLUMES)) / np.sqrt(2)
        noise = 0.1 * generator.standard_normal((VOXELS, VOLUMES))
        fine.append((maps @ courses + noise).astype(np.float32) / np.float32(10))
    coarse = [block.reshape(REGIONS, -1, VOLUMES).mean(axis=1) for block in fine]
    return ArrayData(coarse, unit, fine), maps


def query(unmixing, whitening):
    return Query("maps", "maps", {"unmixing": unmixing, "whitening": whitening})


@pytest.mark.parametrize("unit", ["subject", "timepoint"])
@pytest.mark.parametrize("bound", [0.02, 1e6])
def test_maps_are_the_mean_of_clipped_products(unit, bound):
    site, _ = coarse_and_fine(unit, subjects=2)
    generator = np.random.default_rng(1)
    unmixing = generator.standard_normal((2, 2))
    whitening = generator.standard_normal((REGIONS, 2))
    products = []
    for coarse, fine in zip(site.blocks(), site.blocks("maps"), strict=True):
        courses = unmixing @ whitening.T @ coarse
        if unit == "subject":
            products.append(fine @ courses.T / VOLUMES)
        else:
            products += [np.outer(y, z) for y, z in zip(fine.T, courses.T, strict=True)]
    expected = np.mean([p * min(1, bound / np.linalg.norm(p)) for p in products], axis=0)
    found = map_products(None, site, query(unmixing, whitening), Bound(bound))
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_fine_maps_are_found_from_coarse_data():
    site, truth = coarse_and_fine()
    asked = ICA.Parameters(components=SOURCES, maps=True, score="tanh", rounds=30)
    shape = shape_of([site])
    shape = Shape(shape.features, shape.subjects, shape.samples, "subject", VOXELS)
    planned = ICA(asked, shape).planned()
    assert planned[-1].entries == VOXELS * SOURCES
    assert sum(release.share for release in planned) == pytest.approx(1.0)
    asked = asked.model_copy(update={"pca_bound": 1e6, "bound": 1e6, "maps_bound": 1e6})
    plan = ICA(asked, shape)
    run, answer = plan.run(), None
    from consortium.algorithms.base import Release

    stages = {release.stage: release for release in plan.planned()}
    try:
        while True:
            question = run.send(answer)
            local, bound = plan.statistics[question.statistic], stages[question.stage].bound
            values = local(plan, site, question, bound)
            answer = Release(np.asarray(values).ravel(), 0.25)
    except StopIteration as stop:
        result = stop.value
    assert (result.maps, result.fine, result.noise) == ("maps", True, 0.25)
    assert result.arrays["maps"].shape == (VOXELS, SOURCES)
    table = np.abs(np.corrcoef(truth.T, result.arrays["maps"].T)[:SOURCES, SOURCES:])
    assert table.max(axis=1).min() > 0.97


def test_without_maps_nothing_more_is_asked():
    site, _ = coarse_and_fine()
    queries, _, result = drive(ICA, ICA.Parameters(components=2, rounds=2), [site])
    assert {q.stage for q in queries} == {"pca", "ica"}
    assert (result.maps, result.fine, result.noise) == ("mixing", False, 0.0)


def test_the_default_bound_clips_few_and_is_no_larger_than_a_volume():
    shape = Shape(REGIONS, (6,), (6 * VOLUMES,), "subject", VOXELS)
    bound = ICA(ICA.Parameters(components=3, maps=True), shape).planned()[-1].bound
    assert not bound.cone
    assert bound.norm == pytest.approx(np.sqrt(0.3 + 3 / VOLUMES))
    short = Shape(REGIONS, (6,), (18,), "subject", VOXELS)
    assert ICA(ICA.Parameters(components=3, maps=True), short).planned()[-1].bound.norm == 1.0


def test_what_does_not_fit_is_refused():
    with pytest.raises(StudyError, match="maps_resolution"):
        ICA(
            ICA.Parameters(components=200, maps=True),
            Shape(300, (9,), (900,), "subject", 1_000_000),
        ).planned()


def test_persons_columns_are_copied_one_at_a_time_and_lie_in_one_layout():
    reduced = np.arange(36, dtype=np.float32).reshape(4, 9)
    spans = _Spans(reduced, (2, 3, 4))
    assert len(spans) == 3
    expected = [reduced[:, :2], reduced[:, 2:5], reduced[:, 5:]]
    for found in (list(spans), spans[:], [spans[0], spans[1], spans[-1]]):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.flags.c_contiguous
    assert [each.shape for each in spans[1:7]] == [(4, 3), (4, 4)]
    with pytest.raises(IndexError):
        spans[3]
