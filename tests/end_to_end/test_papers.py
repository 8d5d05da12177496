"""What the papers' experiments rest on: exact losses, and statistics worked out the short way."""

import math

import numpy as np
import pytest

from benchmarks.replication.audit import Point, verdict
from benchmarks.replication.common import colluders
from benchmarks.replication.courses import Courses, Lifted
from benchmarks.replication.djica import BOUNDS, gradients
from benchmarks.replication.printed import moment_epsilon, published_factor, true_epsilon
from consortium.algorithms.base import Query
from consortium.privacy.bounds import Bound
from tests.support.cases import plan_of
from tests.support.chapter import chapter


def seen_loss(sites, copies):
    """μ of a difference of 1 in every copy of one site's entry, from the whole view.

    Each copy has its own ê and all share one g, as entries (i, j) and (j, i) of Algorithm 4.1;
    the coalition knows its members' noise, every message, and the sum of the ê of each copy.
    """
    honest = sites - colluders(sites)
    correlated, local = np.eye(honest * copies), np.eye(honest)
    messages = np.hstack([correlated, np.kron(np.ones((copies, 1)), local) / math.sqrt(sites)])
    sums = np.kron(np.eye(copies), np.ones((1, honest)))
    view = np.vstack([messages, np.hstack([sums, np.zeros((copies, honest))])])
    moved = np.zeros(len(view))
    moved[: honest * copies : honest] = 1.0
    # The copies' differences add up to those of the sums: the view is singular, without any data.
    return math.sqrt(moved @ np.linalg.pinv(view @ view.T, rcond=1e-10, hermitian=True) @ moved)


@pytest.mark.parametrize("sites", [4, 5, 10, 30])
def test_a_published_moment_is_known_best_on_the_diagonal(sites):
    diagonal = seen_loss(sites, 1)
    assert diagonal == pytest.approx(published_factor(sites))
    # Off the diagonal the same Frobenius norm is a difference of 1/√2 in each of two copies.
    assert seen_loss(sites, 2) / math.sqrt(2) < diagonal


def test_a_moments_sensitivity_is_charged_in_full():
    assert moment_epsilon(1.0, 0.01, 10) > true_epsilon(1.0, 0.01, 10, 1) > 0
    two = true_epsilon(1.0, 0.01, 10, 2)  # √2 in the sensitivity costs what a second release does
    assert moment_epsilon(1.0, 0.01, 10) == pytest.approx(two)


def test_lifted_statistics_are_those_of_all_pixels():
    data = chapter(1, subjects=3, sources=3, side=5, volumes=40, sites=1)
    courses = Courses(data)
    bound, site = Bound(1.0, cone=True), data.site(0, "timepoint")  # which clips a third of all
    plan = plan_of("ica", {"components": 3}, [site])
    lifted = Lifted(plan, courses, courses.site("timepoint", 3))
    moment = Query("pca", "second_moment")
    expected = plan.statistics["second_moment"](plan, site, moment, bound)
    assert lifted.mean(moment, bound) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    generator = np.random.default_rng(0)
    whitening = courses.basis @ generator.standard_normal((3, 3)) + 0.1
    turn = Query("ica", "rotation", {"unmixing": np.eye(3), "whitening": whitening})
    expected = plan.statistics["rotation"](plan, site, turn, Bound(0.5))
    assert lifted.mean(turn, Bound(0.5)) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_printed_gradients_are_clipped_volume_by_volume():
    generator = np.random.default_rng(0)
    unmixing, bias = generator.standard_normal((3, 3)), generator.standard_normal(3)
    data = 10 * generator.standard_normal((3, 200))
    slope, shift = np.zeros((3, 3)), np.zeros(3)
    clipped = 0
    for x in data.T:
        z = unmixing @ x + bias
        y = 1 - 2 / (1 + np.exp(-z))
        each = (np.eye(3) + np.outer(y, z)) @ unmixing
        clipped += np.linalg.norm(each) > BOUNDS[0]
        slope += each / max(1, np.linalg.norm(each) / BOUNDS[0]) / 200
        shift += y / max(1, np.linalg.norm(y) / BOUNDS[1]) / 200
    assert 20 < clipped < 200
    found = gradients(unmixing, bias, data.astype(np.float32))
    assert found[0] == pytest.approx(slope, abs=1e-4)
    assert found[1] == pytest.approx(shift, abs=1e-4)


@pytest.mark.parametrize(
    ("ours", "answer"),
    [
        ([1.0, 1.2, 0.9], "published: yes (worst ratio 0.517, there; 1 points)"),
        ([2.1, 2.3, 1.7], "published: yes, but for chance (worst ratio 1.017"),
        ([3.0, 3.1, 2.9], "published: no (worst ratio 1.500"),
    ],
)
def test_the_verdict_tells_chance_from_more(ours, answer):
    assert answer in verdict([Point("there", ours, [2.0, 2.1, 1.9])])
