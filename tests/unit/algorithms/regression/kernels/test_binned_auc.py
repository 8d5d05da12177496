"""AUC and shares from noisy bins: equal to scikit-learn, without bias, and with full coverage."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from consortium.algorithms.regression.kernels.binned_auc import estimate_auc, estimate_share

BINS = 8


def drawn(rng, many, shift, prevalence=0.5):
    labels = rng.random(many) < prevalence
    places = np.clip(np.floor(rng.normal(3.5 + shift * labels, 2.0, many)), 0, BINS - 1)
    places = places.astype(int)
    counts = [np.bincount(places[labels == each], minlength=BINS) for each in (True, False)]
    return labels, places, *(each.astype(float) for each in counts)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 2.0])
def test_without_noise_it_is_that_of_scikit_learn(shift):
    labels, places, positives, negatives = drawn(np.random.default_rng(0), 300, shift)
    found = estimate_auc(positives, negatives, 0.0, 1.96)
    assert found.value == pytest.approx(roc_auc_score(labels, places), abs=1e-12)
    assert found.low < found.value < found.high
    assert found.noise == 0


def test_noise_leaves_no_bias_and_its_size_is_known():
    rng = np.random.default_rng(1)
    _, _, positives, negatives = drawn(rng, 400, 1.5, 0.3)
    exact = estimate_auc(positives, negatives, 0.0, 1.96).value
    found = [
        estimate_auc(*(x + 4.0 * rng.standard_normal(BINS) for x in (positives, negatives)), 4.0, 1)
        for _ in range(2000)
    ]
    values = np.array([each.value for each in found])
    assert values.mean() == pytest.approx(exact, abs=4 * values.std() / 2000**0.5)
    assert np.mean([each.noise for each in found]) == pytest.approx(values.std(), rel=0.1)


@pytest.mark.parametrize(("shift", "truth"), [(0.0, 0.5), (30.0, 1.0)])
@pytest.mark.parametrize("deviation", [0.01, 4.0])
def test_intervals_hold_the_truth(shift, truth, deviation):
    rng = np.random.default_rng(2)
    held = []
    for _ in range(400):
        _, _, positives, negatives = drawn(rng, 200, shift)
        if truth == 1.0:
            negatives[-2:] = 0.0
        counts = positives, negatives
        noisy = (each + deviation * rng.standard_normal(BINS) for each in counts)
        found = estimate_auc(*noisy, deviation, 1.96)
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.92


def test_without_participants_of_a_class_every_auc_is_possible():
    none = estimate_auc(np.zeros(BINS), np.full(BINS, 10.0), 1.0, 1.96)
    assert np.isnan(none.value)
    assert (none.low, none.high) == (0.0, 1.0)
    few = estimate_auc(np.full(BINS, 0.1), np.full(BINS, 10.0), 3.0, 1.96)
    assert few.high - few.low > 0.9


def test_a_share_without_noise_has_wilsons_interval():
    found = estimate_share(30.0, 70.0, (0.0, 0.0), 1.96)
    assert found.value == 0.3
    assert [found.low, found.high] == pytest.approx([0.219, 0.396], abs=1e-3)
