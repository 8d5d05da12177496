"""The exact loss: closed forms, the adversary's whole view, every coalition by brute force."""

import itertools
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.errors import PrivacyError
from consortium.privacy.audit import exact_from_covariance
from consortium.privacy.loss import (
    SiteNoise,
    calibrate,
    coalition_losses,
    outsider_losses,
    printed_loss,
)

KINDS = st.sampled_from(
    [("cape", "exact"), ("cape", 0.1), ("cape", 1.0), ("cape", 1e4), ("local", "exact")]
)
"""Schemes, each with a boost."""


def masked(local):
    """Noise whose correlated part is uniform on the ring."""
    return SiteNoise("cape", (0.0,) * len(local), tuple(local), exact=True)


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
@given(KINDS, demands())
def test_no_site_exceeds_its_target_and_the_worst_meets_it(kind, case):
    scheme, boost = kind
    sensitivities, targets, colluding, dropouts = case
    options = {"colluding": colluding, "dropouts": dropouts}
    noise = calibrate(scheme, sensitivities, targets, boost=boost, **options)
    ratios = coalition_losses(noise, sensitivities, colluding, dropouts=dropouts) / targets
    assert ratios.max() == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=150)
@given(demands(), st.sampled_from(["exact", 0.1, 1.0, 1e4]))
def test_no_more_noise_than_the_same_everywhere(case, boost):
    sensitivities, targets, colluding, dropouts = case
    count = len(targets)
    noise = calibrate(
        "cape", sensitivities, targets, colluding=colluding, dropouts=dropouts, boost=boost
    )
    same = masked((1.0,) * count)
    if boost != "exact":
        same = SiteNoise("cape", (math.sqrt(boost * count),) * count, same.local)
    losses = coalition_losses(same, sensitivities, colluding, dropouts=dropouts)
    assert noise.aggregate() <= same.aggregate() * np.max(losses / targets) * (1 + 1e-9)


def test_demands_too_unlike_for_the_linear_program_are_met_all_the_same():
    # 1 to 10^7: the program leaves the small sites without any noise, within its tolerance.
    sensitivities, targets = [1.0, 0.125, 8.0, 0.125], [1.0, 7.0, 0.125, 7.0]
    for boost in ("exact", 1e4):
        noise = calibrate("cape", sensitivities, targets, colluding=0, dropouts=2, boost=boost)
        losses = coalition_losses(noise, sensitivities, 0, dropouts=2)
        assert np.max(losses / targets) == pytest.approx(1.0)


@settings(max_examples=40)
@given(demands(), st.integers(0, 2**32 - 1))
def test_no_random_allotment_beats_the_linear_program(case, seed):
    sensitivities, targets, colluding, dropouts = case
    options = {"colluding": colluding, "dropouts": dropouts}
    best = calibrate("cape", sensitivities, targets, **options).aggregate()
    generator = np.random.default_rng(seed)
    for _ in range(20):
        other = tuple(generator.lognormal(0, 1.5, len(targets)).tolist())
        noise = masked(other)
        losses = coalition_losses(noise, sensitivities, colluding, dropouts=dropouts)
        assert best <= noise.aggregate() * np.max(losses / targets) * (1 + 1e-7)


@given(st.integers(1, 30), st.floats(0.01, 5), st.floats(0.01, 5), st.data())
def test_equal_sites_have_a_closed_form(count, sensitivity, target, data):
    colluding = data.draw(st.integers(0, count - 1))
    noise = calibrate("cape", [sensitivity] * count, [target] * count, colluding=colluding)
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
@given(KINDS, demands())
def test_half_the_loss_takes_twice_the_noise(kind, case):
    scheme, boost = kind
    sensitivities, targets, colluding, dropouts = case
    options = {"colluding": colluding, "dropouts": dropouts, "boost": boost}
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
@pytest.mark.parametrize("scheme", ["cape", "local", "none"])
def test_a_target_whose_noise_is_no_number_is_refused(scheme, target):
    with pytest.raises(PrivacyError, match="share of the budget"):
        calibrate(scheme, [1.0, 1.0], [1.0, target], colluding=0)


def test_no_honest_site_and_mismatched_lists_are_refused():
    for boost in ("exact", 1e4):
        with pytest.raises(PrivacyError, match="Lower colluding_sites or dropouts"):
            calibrate("cape", [1.0] * 3, [1.0] * 3, colluding=2, dropouts=1, boost=boost)
    assert calibrate("local", [1.0] * 3, [1.0] * 3, colluding=3).local == (1.0,) * 3
    for sensitivities, targets in (([1.0], [1.0, 1.0]), ([], [])):
        with pytest.raises(PrivacyError, match="one sensitivity and one target"):
            calibrate("cape", sensitivities, targets, colluding=0)


@pytest.mark.parametrize("boost", ["exact", 1e4])
@pytest.mark.parametrize(("sensitivity", "target"), [(1e-170, 1.0), (1e-310, 1.0), (1.0, 1e200)])
def test_noise_that_is_too_small_for_a_number_is_refused(boost, sensitivity, target):
    with pytest.raises(PrivacyError, match="floating-point number"):
        calibrate("cape", [sensitivity] * 3, [target] * 3, colluding=1, boost=boost)


def symmetric_noise(sites, boost=1.0):
    return SiteNoise("cape", (math.sqrt(boost),) * sites, (1 / math.sqrt(sites),) * sites)


@st.composite
def asymmetric(draw, kind="cape"):
    """Noise and sensitivities of 2 to 6 sites that differ by up to two orders of magnitude."""
    count = draw(st.integers(2, 6))
    size = st.floats(0.1, 10.0)
    lists = st.lists(size, min_size=count, max_size=count)
    if kind == "exact":
        noise = masked(draw(lists))
    else:
        correlated = draw(lists) if kind == "cape" else [0.0] * count
        noise = SiteNoise(kind, tuple(correlated), tuple(draw(lists)))
    return noise, draw(lists), draw(st.integers(0, count - 1))


def worst_by_enumeration(count, missing, site, loss):
    others = [s for s in range(count) if s != site]
    return max(loss(site, list(members)) for members in combinations(others, missing))


def whole_view(noise, sensitivity, site, members):
    """μ from everything that the coalition sees, with nothing simplified.

    Its view is linear in the independent ê and g: every message, Σ ê, and its members' own
    draws. The covariance is singular, hence the pseudo-inverse.
    """
    count = len(noise.local)
    one = np.eye(count)
    rows = [np.hstack([one, one]), np.hstack([np.ones((1, count)), np.zeros((1, count))])]
    rows += [np.hstack([one[[m]], 0 * one[[m]]]) for m in members]
    rows += [np.hstack([0 * one[[m]], one[[m]]]) for m in members]
    view = np.vstack(rows) * np.hstack([noise.correlated, noise.local])
    direction = np.zeros(len(view))
    direction[site] = sensitivity
    return float(np.linalg.norm(np.linalg.pinv(view, rcond=1e-11) @ direction))


@pytest.mark.parametrize(
    ("sites", "colluding", "exact", "printed"),
    [(4, 1, 1.867, 1.474), (10, 3, 2.208, 1.296), (30, 9, 2.350, 1.109)],
)
def test_symmetric_setting(sites, colluding, exact, printed):
    losses = coalition_losses(symmetric_noise(sites), [1.0] * sites, colluding)
    closed = math.sqrt(sites / (sites + 1) * (1 + sites / (sites - colluding)))
    assert losses == pytest.approx([closed] * sites)
    assert losses[0] ** 2 == pytest.approx(exact, abs=5e-4)
    assert printed_loss(sites, colluding) ** 2 == pytest.approx(printed, abs=6e-4)


@pytest.mark.parametrize(("boost", "exact"), [(1, 2.208), (100, 1.437)])
def test_more_correlated_noise_costs_no_accuracy_and_hides_more(boost, exact):
    noise = symmetric_noise(10, boost)
    losses = coalition_losses(noise, [1.0] * 10, 3)
    assert losses[0] ** 2 == pytest.approx(exact, abs=5e-4)
    assert losses[0] ** 2 == pytest.approx((1 + boost * 10 / 7) / (boost + 0.1))
    assert noise.aggregate() == pytest.approx(1.0)


@given(asymmetric())
def test_exact_noise_is_the_limit_of_a_large_boost(case):
    noise, sensitivities, colluding = case
    expected = coalition_losses(masked(noise.local), sensitivities, colluding)
    before = np.full(len(sensitivities), np.inf)
    for sigma in (1e3, 1e4, 1e5, 1e6):
        boosted = SiteNoise("cape", (sigma,) * len(noise.local), noise.local)
        found = coalition_losses(boosted, sensitivities, colluding)
        assert np.all(expected <= found * (1 + 1e-12))
        assert np.all(found <= before * (1 + 1e-12))
        before = found
    assert before == pytest.approx(expected, rel=1e-5)


@settings(max_examples=60)
@given(asymmetric(), st.integers(0, 2))
def test_cape_equals_the_worst_of_all_coalitions(case, dropouts):
    noise, sensitivities, colluding = case
    count = len(sensitivities)
    losses = coalition_losses(noise, sensitivities, colluding, dropouts=dropouts)
    missing = min(colluding + dropouts, count - 1)

    def view(site, members):
        return exact_from_covariance(noise, sensitivities[site], site, members)

    for site in range(count):
        assert losses[site] == pytest.approx(worst_by_enumeration(count, missing, site, view))


@settings(max_examples=60)
@given(asymmetric())
def test_conditional_covariance_equals_the_whole_view(case):
    noise, sensitivities, colluding = case
    members = list(range(1, colluding + 1))
    expected = whole_view(noise, sensitivities[0], 0, members)
    exact = exact_from_covariance(noise, sensitivities[0], 0, members)
    assert exact == pytest.approx(expected, rel=1e-6)


@given(asymmetric("exact"), st.integers(0, 2))
def test_exact_noise_equals_the_worst_of_all_coalitions(case, dropouts):
    noise, sensitivities, colluding = case
    count, variances = len(sensitivities), np.square(noise.local)
    losses = coalition_losses(noise, sensitivities, colluding, dropouts=dropouts)
    missing = min(colluding + dropouts, count - 1)

    def view(site, members):
        return sensitivities[site] / math.sqrt(np.delete(variances, members).sum())

    for site in range(count):
        assert losses[site] == pytest.approx(worst_by_enumeration(count, missing, site, view))


@given(asymmetric("local"))
def test_local_noise_hides_a_site_alone(case):
    noise, sensitivities, colluding = case
    expected = np.divide(sensitivities, noise.local)
    assert coalition_losses(noise, sensitivities, colluding) == pytest.approx(expected)


@given(asymmetric(), st.integers(0, 5), st.booleans(), st.floats(1.0, 5.0))
def test_more_noise_anywhere_never_hurts(case, site, correlated, factor):
    # Rounding a deviation up to whole grid steps rests on this.
    noise, sensitivities, colluding = case
    site %= len(sensitivities)
    parts = [list(noise.correlated), list(noise.local)]
    parts[0 if correlated else 1][site] *= factor
    louder = SiteNoise("cape", tuple(parts[0]), tuple(parts[1]))
    before = coalition_losses(noise, sensitivities, colluding)
    assert np.all(coalition_losses(louder, sensitivities, colluding) <= before * (1 + 1e-12))


@given(asymmetric(), st.randoms(use_true_random=False))
def test_those_present_are_a_consortium_of_their_own(case, random):
    noise, sensitivities, colluding = case
    present = random.sample(range(len(sensitivities)), random.randint(1, len(sensitivities)))
    correlated, local = (np.asarray(x)[present] for x in (noise.correlated, noise.local))
    alone = SiteNoise("cape", tuple(correlated), tuple(local))
    chosen = [sensitivities[s] for s in present]
    assert coalition_losses(noise, sensitivities, colluding, present=present) == pytest.approx(
        coalition_losses(alone, chosen, colluding)
    )
    assert noise.aggregate(present) == pytest.approx(alone.aggregate())


@given(asymmetric())
def test_an_outsider_learns_no_more_than_a_coalition(case):
    noise, sensitivities, colluding = case
    outside = outsider_losses(noise, sensitivities)
    assert outside == pytest.approx(np.divide(sensitivities, noise.aggregate()))
    assert np.all(outside <= coalition_losses(noise, sensitivities, colluding) * (1 + 1e-12))


@given(asymmetric(), st.integers(0, 2))
def test_an_outsider_is_counted_with_the_worst_sites_missing(case, dropouts):
    noise, sensitivities, _ = case
    sites = range(len(noise.local))
    for site, planned in enumerate(outsider_losses(noise, sensitivities, dropouts=dropouts)):
        others = [s for s in sites if s != site]
        losses = []
        for kept in itertools.combinations(others, max(len(others) - dropouts, 0)):
            present = sorted((site, *kept))
            found = outsider_losses(noise, sensitivities, present=present)
            losses.append(found[present.index(site)])
        assert planned == pytest.approx(max(losses))


def test_a_huge_colluder_does_not_swallow_the_others_noise():
    # 1e20 + 8192.1 rounds to a double 16384 above 1e20: a difference would double the noise.
    noise = masked((1e10, math.sqrt(8192.1), 1e-3))
    losses = coalition_losses(noise, [1.0] * 3, 1)
    assert losses[1:] == pytest.approx([1 / math.sqrt(8192.1)] * 2)
    assert losses[0] == pytest.approx(1e-10)


@pytest.mark.parametrize(
    ("scheme", "exact"), [("cape", True), ("cape", False), ("local", False), ("none", False)]
)
def test_no_noise_is_no_privacy_and_no_data_is_no_loss(scheme, exact):
    silent = SiteNoise(scheme, (0.0, 0.0), (0.0, 0.0), exact)
    assert coalition_losses(silent, [1.0, 0.0], 0).tolist() == [math.inf, 0.0]
    assert outsider_losses(silent, [1.0, 0.0]).tolist() == [math.inf, 0.0]


def test_correlated_noise_alone_is_no_privacy():
    cancels = SiteNoise("cape", (5.0, 5.0), (0.0, 0.0))
    assert coalition_losses(cancels, [1.0, 1.0], 0).tolist() == [math.inf, math.inf]


def test_a_negative_coalition_is_refused():
    with pytest.raises(PrivacyError, match="colluding"):
        coalition_losses(symmetric_noise(3), [1.0] * 3, -1)
