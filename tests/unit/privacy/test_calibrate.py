"""Calibration: the inverse of the loss, never more noise than the obvious choice."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.errors import PrivacyError
from consortium.privacy.calibrate import calibrate
from consortium.privacy.loss import SiteNoise, coalition_losses

SCHEMES = st.sampled_from(["cape", "secure-sum", "local"])


@st.composite
def demands(draw):
    """Sensitivities, targets, colluding sites and drop-outs of 1 to 7 sites, not all honest."""
    count = draw(st.integers(1, 7))
    size = st.floats(0.05, 20.0)
    lists = st.lists(size, min_size=count, max_size=count)
    missing = draw(st.integers(0, count - 1))
    colluding = draw(st.integers(0, missing))
    return draw(lists), draw(lists), colluding, missing - colluding


@settings(max_examples=150)
@given(SCHEMES, demands(), st.sampled_from([0.1, 1.0, 1e4]))
def test_no_site_exceeds_its_target_and_the_worst_meets_it(scheme, case, boost):
    sensitivities, targets, colluding, dropouts = case
    options = {"colluding": colluding, "dropouts": dropouts}
    noise = calibrate(scheme, sensitivities, targets, boost=boost, **options)
    ratios = coalition_losses(noise, sensitivities, colluding, dropouts=dropouts) / targets
    assert ratios.max() == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=150)
@given(st.sampled_from(["cape", "secure-sum"]), demands(), st.sampled_from([0.1, 1.0, 1e4]))
def test_no_more_noise_than_the_same_everywhere(scheme, case, boost):
    sensitivities, targets, colluding, dropouts = case
    count = len(targets)
    noise = calibrate(
        scheme, sensitivities, targets, colluding=colluding, dropouts=dropouts, boost=boost
    )
    sigma = math.sqrt(boost * count) if scheme == "cape" else 0.0
    same = SiteNoise(scheme, (sigma,) * count, (1.0,) * count)
    losses = coalition_losses(same, sensitivities, colluding, dropouts=dropouts)
    assert noise.aggregate() <= same.aggregate() * np.max(losses / targets) * (1 + 1e-9)


def test_demands_too_unlike_for_the_linear_program_are_met_all_the_same():
    # 1 to 10^7: the program leaves the small sites without any noise, within its tolerance.
    sensitivities, targets = [1.0, 0.125, 8.0, 0.125], [1.0, 7.0, 0.125, 7.0]
    for scheme in ("cape", "secure-sum"):
        noise = calibrate(scheme, sensitivities, targets, colluding=0, dropouts=2)
        losses = coalition_losses(noise, sensitivities, 0, dropouts=2)
        assert np.max(losses / targets) == pytest.approx(1.0)


@settings(max_examples=40)
@given(demands(), st.integers(0, 2**32 - 1))
def test_no_random_allotment_beats_the_linear_program(case, seed):
    sensitivities, targets, colluding, dropouts = case
    options = {"colluding": colluding, "dropouts": dropouts}
    best = calibrate("secure-sum", sensitivities, targets, **options).aggregate()
    generator = np.random.default_rng(seed)
    for _ in range(20):
        other = tuple(generator.lognormal(0, 1.5, len(targets)).tolist())
        noise = SiteNoise("secure-sum", (0.0,) * len(targets), other)
        losses = coalition_losses(noise, sensitivities, colluding, dropouts=dropouts)
        assert best <= noise.aggregate() * np.max(losses / targets) * (1 + 1e-7)


@given(st.integers(1, 30), st.floats(0.01, 5), st.floats(0.01, 5), st.data())
def test_equal_sites_have_a_closed_form(count, sensitivity, target, data):
    colluding = data.draw(st.integers(0, count - 1))
    noise = calibrate("secure-sum", [sensitivity] * count, [target] * count, colluding=colluding)
    factor = math.sqrt(count / (count - colluding))
    pooled = sensitivity / target  # the noise that all the data in one place would need
    assert noise.aggregate() == pytest.approx(pooled * factor)
    local = calibrate("local", [sensitivity] * count, [target] * count, colluding=colluding)
    assert local.aggregate() == pytest.approx(pooled * math.sqrt(count))


@given(demands())
def test_account_of_a_calibration_calibrates_to_itself(case):
    sensitivities, _, colluding, _ = case
    count = len(sensitivities)
    equal = [sensitivities[0]] * count
    noise = SiteNoise("cape", (math.sqrt(7.0 * count),) * count, (1.0,) * count)
    losses = coalition_losses(noise, equal, colluding)
    again = calibrate("cape", equal, losses.tolist(), colluding=colluding, boost=7.0)
    assert again.local == pytest.approx(noise.local)
    assert again.correlated == pytest.approx(noise.correlated)


@settings(max_examples=40)
@given(SCHEMES, demands())
def test_half_the_loss_takes_twice_the_noise(scheme, case):
    sensitivities, targets, colluding, dropouts = case
    options = {"colluding": colluding, "dropouts": dropouts}
    once = calibrate(scheme, sensitivities, targets, **options)
    twice = calibrate(scheme, sensitivities, [t / 2 for t in targets], **options)
    assert twice.aggregate() == pytest.approx(2 * once.aggregate(), rel=1e-6)


def test_correlated_variance_is_the_boost_times_the_whole_noise():
    noise = calibrate("cape", [1.0] * 5, [0.5] * 5, colluding=2, boost=9.0)
    assert np.square(noise.correlated) == pytest.approx([9 * noise.aggregate() ** 2] * 5)
    assert np.all(np.asarray(calibrate("none", [1.0], [1.0], colluding=0).local) == 0)


@pytest.mark.parametrize("target", [0.0, -1.0, math.inf, math.nan])
def test_a_target_that_promises_nothing_is_refused(target):
    with pytest.raises(PrivacyError, match="epsilon"):
        calibrate("cape", [1.0, 1.0], [1.0, target], colluding=0)


@pytest.mark.parametrize("target", [1e-150, 1e-300, 5e-324])
@pytest.mark.parametrize("scheme", ["cape", "secure-sum", "local", "none"])
def test_a_target_whose_noise_is_no_number_is_refused(scheme, target):
    with pytest.raises(PrivacyError, match="share of the budget"):
        calibrate(scheme, [1.0, 1.0], [1.0, target], colluding=0)


def test_no_honest_site_and_mismatched_lists_are_refused():
    for scheme in ("cape", "secure-sum"):
        with pytest.raises(PrivacyError, match="scheme: local"):
            calibrate(scheme, [1.0] * 3, [1.0] * 3, colluding=2, dropouts=1)
    assert calibrate("local", [1.0] * 3, [1.0] * 3, colluding=3).local == (1.0,) * 3
    for sensitivities, targets in (([1.0], [1.0, 1.0]), ([], [])):
        with pytest.raises(PrivacyError, match="one sensitivity and one target"):
            calibrate("cape", sensitivities, targets, colluding=0)


@pytest.mark.parametrize("scheme", ["cape", "secure-sum"])
@pytest.mark.parametrize(("sensitivity", "target"), [(1e-170, 1.0), (1e-310, 1.0), (1.0, 1e200)])
def test_noise_that_is_too_small_for_a_number_is_refused(scheme, sensitivity, target):
    with pytest.raises(PrivacyError, match="than a number can hold"):
        calibrate(scheme, [sensitivity] * 3, [target] * 3, colluding=1)
