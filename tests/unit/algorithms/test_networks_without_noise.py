"""With scheme none networks and sources are what other libraries make of all persons."""

from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

from consortium.algorithms import REGISTRY
from consortium.algorithms.network.site import who_trains
from consortium.algorithms.subspace import smooth_basis
from consortium.simulation.simulation import Simulation
from tests.support.cases import make_study, sites_of
from tests.support.gain_index import gain_index
from tests.unit.algorithms import test_group_ica, test_ica, test_template_networks

decomposition = pytest.importorskip("sklearn.decomposition")


def run(name, analysis, sites, **more):
    return Simulation(make_study(name, analysis, scheme="none", **more), sites, 0).run()


def alike(ours, theirs):
    """Each of their maps' best correlation with one of ours."""
    size = ours.shape[1]
    return np.abs(np.corrcoef(ours.T, theirs.T)[:size, size:]).max(axis=0)


def test_sources_are_those_of_scikit_learn():
    mixing, sites = test_ica.consortium("subject", test_ica.laplace)
    size = mixing.shape[1]
    analysis = {"pca_bound": 10.0, "bound": 1e3, "optimizer": "fixed-point", "score": "tanh"}
    result = run("ica", {"components": size, "rounds": 20, **analysis}, sites)
    pooled = np.hstack([block for site in sites for block in site.blocks()])
    other = decomposition.FastICA(size, random_state=0, tol=1e-8, max_iter=500).fit(pooled.T)
    assert gain_index(result.arrays["unmixing"] @ other.mixing_) < 0.01
    assert gain_index(other.components_ @ mixing) < 0.06


def test_a_network_without_hidden_layers_is_scikit_learns_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator, counts = np.random.default_rng(2), (800, 700, 600, 900)
    x = generator.uniform(-1, 1, (3, sum(counts)))
    chance = 1 / (1 + np.exp(-(0.3 + np.array([2.0, -1.0, 0.5]) @ x)))
    y = np.where(generator.random(sum(counts)) < chance, 1.0, -1.0)
    views = (("x", 3), ("group", 1))
    steps = {"rounds": 120, "bound": 100.0, "learning_rate": 4.0, "averaged": 0.01}
    plain = {"target": "group", "hidden": [], "site_constants": False, "held_out": 0.2, **steps}
    sites = sites_of(np.vstack([x, y]), views, counts)
    result = run("network", plain, sites, views=views)
    trains = np.concatenate([who_trains(site.table(), 0.2) for site in sites])
    other = linear_model.LogisticRegression(C=1e9).fit(x[:, trains].T, y[trains])
    both = [other.intercept_[0], *other.coef_[0]]
    assert result.arrays["parameters"] == pytest.approx(both, abs=1e-3)
    told = result.tables["accuracy"].rows
    right = other.score(x[:, ~trains].T, y[~trains])
    assert told[0][1].value == pytest.approx(right, abs=2 / np.count_nonzero(~trains))
    assert told[1][1].state == "found"


def test_group_networks_are_those_of_scikit_learn_on_a_plain_mean_of_projectors():
    brains = test_group_ica.make_brains()
    size = test_group_ica.NETWORKS
    result = run("group_ica", {"components": size}, brains)
    basis = smooth_basis(test_group_ica.PLACES, result.numbers["cutoff"])
    people = [block for site in brains for block in site.blocks()]
    mean = np.zeros((basis.matrix.shape[1],) * 2)
    for block in people:
        left = linalg.svd(basis.matrix.T @ block.astype(float), full_matrices=False)[0][:, :size]
        mean += left @ left.T / len(people)
    leading = linalg.eigh(mean)[1][:, -size:]
    shown = basis.evaluate(leading, test_group_ica.FINE)
    other = decomposition.FastICA(size, random_state=0, tol=1e-8, max_iter=1000)
    theirs = other.fit_transform(shown)
    assert result.numbers["found"] == size
    assert alike(result.arrays["maps"], theirs).min() > 0.98


def test_networks_by_templates_are_those_of_two_least_squares():
    given = test_template_networks.templates(14.0)
    brains = test_template_networks.make_brains(given, persons=20)
    analysis = {"templates": "maps.nii.gz", "connectivity_bound": 1.0}
    result = run("template_networks", analysis, brains)
    cutoff, count = result.numbers["cutoff"], test_template_networks.NETWORKS
    basis = smooth_basis(test_template_networks.PLACES, cutoff).matrix
    templates = basis.T @ given.values.astype(float)
    templates /= np.linalg.norm(templates, axis=0)
    maps, between = [], []
    for block in (block for site in brains for block in site.blocks()):
        series = basis.T @ block.astype(float)
        courses = linalg.lstsq(templates, series)[0]
        courses -= courses.mean(axis=1, keepdims=True)
        courses /= np.linalg.norm(courses, axis=1, keepdims=True)
        own = linalg.lstsq(courses.T, (series - series.mean(axis=1, keepdims=True)).T)[0].T
        maps.append(own / np.linalg.norm(own, axis=0))
        between.append(np.arctanh((courses @ courses.T)[np.triu_indices(count, 1)]))
    mean = np.mean(maps, axis=0)
    ours = result.arrays["weights"]
    assert np.diag(np.corrcoef(ours.T, mean.T)[:count, count:]).min() > 0.9999
    connected = np.arctanh(result.arrays["connectivity"][np.triu_indices(count, 1)])
    assert connected == pytest.approx(np.mean(between, axis=0), abs=1e-6)
    assert result.numbers["found"] == count
    assert result.numbers["connections"] == 1


def test_every_analysis_is_compared_with_another_computation():
    here = Path(__file__)
    source = here.read_text() + here.with_name("test_without_noise.py").read_text()
    assert [name for name in REGISTRY if f'"{name}"' not in source] == []
