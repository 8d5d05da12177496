"""Solver subspace: the directions of smooth maps, found where a whole moment drowns in noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places, Shape
from consortium.errors import StudyError
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from tests.support.cases import SITES, drive, make_study, shape_of

PCA, ICA = REGISTRY["pca"], REGISTRY["ica"]
EDGE, RADIUS, SPOT = 8.0, 40.0, 12.0
CENTRES = 20.0 * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0]])
STEPS = np.arange(-RADIUS, RADIUS + EDGE / 2, EDGE)
GRID = np.stack(np.meshgrid(STEPS, STEPS, STEPS, indexing="ij"), axis=-1).reshape(-1, 3)
VOXELS = GRID[np.linalg.norm(GRID, axis=1) <= RADIUS]
PLACES = Places(VOXELS, EDGE**3)
MAPS = np.exp(-0.5 * np.sum((VOXELS[:, None] - CENTRES) ** 2, axis=2) / SPOT**2)
THREE = {"components": 3, "solver": "subspace"}


def make_brains(persons=30, *, networks=1.0, common=0.0, volumes=40, seed=0):
    """Persons of trace 1 with bursts of three networks of unequal strength, and a global signal."""
    generator = np.random.default_rng(seed)
    scale = np.array([1.4, 1.0, 0.8])[:, None]

    def person():
        courses = scale * generator.laplace(size=(3, volumes))
        series = networks * MAPS @ courses + 0.5 * generator.standard_normal((len(MAPS), volumes))
        series += common * generator.laplace(size=volumes)
        return (series / np.sqrt(np.square(series).sum() / volumes)).astype(np.float32)

    return [ArrayData([person() for _ in range(persons)], places=PLACES) for _ in SITES]


def test_without_noise_basis_and_variances_are_those_of_the_persons():
    sites = make_brains()
    plan = PCA(PCA.Parameters(**THREE, bound=10.0), shape_of(sites))
    queries, _, result = drive(PCA, plan.parameters, sites)
    assert [query.statistic for query in queries] == ["projectors", "variances"]
    smooth = plan.projectors.waves.matrix
    assert plan.computed["cutoff"] == plan.projectors.cutoff
    mean = np.zeros((smooth.shape[1],) * 2)
    moment, persons = np.zeros((len(MAPS),) * 2), 0
    for site in sites:
        for block in site.blocks():
            wide = block.astype(np.float64)
            directions = np.linalg.svd(smooth.T @ wide)[0][:, :3]
            mean += directions @ directions.T
            moment += wide @ wide.T / wide.shape[1]
            persons += 1
    leading = smooth @ np.linalg.eigh(mean)[1][:, -3:]
    assert subspace_angles(result.arrays["basis"], leading).max() < 1e-4
    basis = result.arrays["basis"]
    assert basis.T @ basis == pytest.approx(np.eye(3), abs=1e-9)
    within = basis.T @ (moment / persons) @ basis
    assert within == pytest.approx(np.diag(result.arrays["eigenvalues"]), abs=1e-6)


def test_it_finds_under_noise_what_the_whole_moment_does_not():
    sites = make_brains()
    angles = {}
    for solver in ("moment", "subspace"):
        study = make_study("pca", {"components": 3, "solver": solver}, epsilon=4.0)
        result = Simulation(study, sites, 0).run()
        angles[solver] = subspace_angles(result.arrays["basis"], MAPS).max()
    assert angles["subspace"] < 0.5 < angles["moment"]


@pytest.mark.parametrize("seed", range(5))
def test_persons_without_anything_in_common_have_no_component(seed):
    sites = make_brains(networks=0.0, seed=seed)
    result = Simulation(make_study("pca", THREE, epsilon=4.0), sites, seed).run()
    assert result.numbers["found"] == 0
    assert "Nothing was found" in result.captions.headline
    assert np.all(result.arrays["eigenvalues"] > 0)


def test_an_ica_of_voxels_takes_it_by_default_and_its_maps_are_better():
    sites = make_brains()
    least = {}
    for solver in (None, "moment"):
        analysis = {"components": 3} | ({"pca_solver": solver} if solver else {})
        simulation = Simulation(make_study("ica", analysis, epsilon=8.0), sites, 0)
        assert len(simulation.plan.stages) == (2 if solver else 3)
        assert sum(stage.release.share for stage in simulation.plan.stages) == pytest.approx(1)
        assert simulation.plan.analysis.computed.keys() == (
            set() if solver else {"cutoff", "basis"}
        )
        maps = simulation.run().arrays["mixing"]
        least[solver] = np.abs(np.corrcoef(MAPS.T, maps.T)[:3, 3:]).max(axis=1).min()
    assert least[None] > 0.8 > least["moment"]


@pytest.mark.parametrize("networks", [0, 3])
def test_what_all_voxels_share_is_no_component_of_an_ica(networks):
    sites = make_brains(networks=float(networks > 0), common=1.0)
    study = make_study("ica", {"components": max(networks + 1, 2), "rounds": 2}, epsilon=30.0)
    result = Simulation(study, sites, 1).run()
    assert sum(result.captions.columns_found) == result.numbers["found"] == networks
    even = np.abs(result.arrays["mixing"].mean(axis=0)) / result.arrays["mixing"].std(axis=0)
    assert even.max() > 3  # the direction itself stands out, and is in the files


def test_what_it_is_not_for_is_said():
    shape = shape_of(make_brains(persons=2))
    for unit, size, words in (("timepoint", 3, "privacy.unit"), ("subject", 101, "at most 100")):
        with pytest.raises(StudyError, match=words):
            PCA(
                PCA.Parameters(components=size, solver="subspace"), replace(shape, unit=unit)
            ).planned()
    of_atlas = Shape(90, (40,) * 4, (4000,) * 4, "subject")
    plan = ICA(ICA.Parameters(components=5), of_atlas)
    assert [release.statistic for release in plan.planned()] == ["second_moment", "rotation"]
    assert plan.computed == {}
