"""A planned release: promises kept by the very integers that are drawn, sums that are exact."""

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.errors import PrivacyError, RangeError
from consortium.privacy.bounds import Bound
from consortium.privacy.mechanism import Sharing, plan_mechanism, rounding_allowance
from consortium.privacy.noise import LARGEST_SIGMA, GaussianSampler

KINDS = (("cape", "exact"), ("cape", 1e4), ("local", "exact"))
"""Schemes, each with a boost."""


def sampler(*purpose):
    return GaussianSampler(hashlib.sha256(repr(purpose).encode()).digest())


def planned(scheme, units=(10, 20, 30), entries=12, each=False, **changes):
    sharing, bound = Sharing(scheme, **{"colluding": 1, **changes}), Bound(2.0)
    return plan_mechanism(sharing, entries=entries, bound=bound, units=units, target=0.5, each=each)


def seen_by_everybody(mechanism, site, present):
    """μ of a site from every open vector and the present ones' sum of ê, by their covariance."""
    noise, one = mechanism.noise, np.eye(len(mechanism.local))
    among = np.isin(np.arange(len(one)), present).astype(float)
    rows = [np.hstack([one, one]), np.hstack([among, 0 * among])[None]]
    view = np.vstack(rows) * np.hstack([noise.correlated, noise.local])
    direction = np.zeros(len(view))
    direction[site] = mechanism.sensitivities[site]
    return float(np.sqrt(direction @ np.linalg.solve(view @ view.T, direction)))


@pytest.mark.parametrize("boost", [1.0, 100.0])
@pytest.mark.parametrize("units", [(10, 20, 30), (5, 5, 5, 5), (1, 2, 300, 4, 50)])
def test_public_vectors_cost_an_outsider_what_their_covariance_says(units, boost):
    mechanism = planned("cape", units, dropouts=1, boost=boost, public=True)
    hidden, everybody = replace(mechanism, public=False), range(len(units))
    assert np.all(mechanism.outsider() <= mechanism.coalition() * (1 + 1e-12))
    worst = np.zeros(len(units))
    for missing in (None, *everybody):  # one may be lost, and its vector be read all the same
        present = [s for s in everybody if s != missing]
        found = [seen_by_everybody(mechanism, site, present) for site in everybody]
        worst = np.maximum(worst, found)
        told = mechanism.outsider(present)
        assert told == pytest.approx([found[site] for site in present], rel=1e-6)
        assert np.all(told > hidden.outsider(present))
    assert np.all(worst <= mechanism.outsider() * (1 + 1e-9))
    assert mechanism.outsider() == pytest.approx(worst, rel=1e-6)


def test_the_price_of_public_vectors():
    """√((1 + κ)/(κ + 1/S)), but for the rounding of noise to whole steps."""
    mechanism = planned("cape", (10,) * 4, colluding=0, boost=1e4, public=True)
    hidden = replace(mechanism, public=False)
    price = mechanism.outsider() / hidden.outsider()
    assert price == pytest.approx([((1 + 1e4) / (1e4 + 1 / 4)) ** 0.5] * 4, rel=1e-6)


def test_only_a_numeric_boost_has_public_vectors():
    assert planned("cape", public=True, boost=1e4).public
    assert not planned("cape", public=True).public
    assert not planned("local", public=True).public
    assert not planned("cape", public=True, boost=1e4, each=True).public


def add(parts, mechanism):
    total = np.zeros(mechanism.masked_entries, dtype=mechanism.lattice.dtype)
    for part in parts:
        total += part
    return total


def one_round(mechanism, statistics, seed=0, present=None):
    """Protect, sum and release, without the secure sum's masks, which cancel."""
    sites = range(len(statistics)) if present is None else present
    shares = [mechanism.protect(s, statistics[s], sampler(seed, s)) for s in sites]
    hidden = add([share.masked for share in shares], mechanism)
    return mechanism.release(hidden, [share.opened for share in shares])


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["cape", "local"]),
    st.lists(st.integers(1, 500), min_size=2, max_size=8),
    st.integers(1, 100_000),
    st.floats(0.01, 20),
    st.floats(0.01, 5),
    st.booleans(),
    st.data(),
)
def test_planned_integers_keep_the_target(scheme, units, entries, norm, target, cone, data):
    missing = data.draw(st.integers(0, len(units) - 1))
    colluding = data.draw(st.integers(0, missing))
    boost = data.draw(st.sampled_from(["exact", 0.5, 1.0, 1e4, 1e8]))
    try:
        mechanism = plan_mechanism(
            Sharing(scheme, colluding=colluding, dropouts=missing - colluding, boost=boost),
            entries=entries,
            bound=Bound(norm, cone),
            units=units,
            target=target,
        )
    except RangeError:
        return
    losses = mechanism.coalition()
    assert losses.max() <= target * (1 + 1e-9)
    # Rounding to whole steps costs something only if a site's noise is a few steps.
    assert losses.max() >= target * (1 - 3 / min(mechanism.local))
    assert np.all(mechanism.outsider() <= losses * (1 + 1e-9))
    assert max((*mechanism.correlated, *mechanism.local)) <= LARGEST_SIGMA


@pytest.mark.parametrize(("scheme", "boost"), KINDS)
def test_every_site_is_charged_its_weighted_sensitivity_and_the_rounding(scheme, boost):
    mechanism = planned(scheme, boost=boost)
    step = mechanism.lattice.step
    expected = 4.0 / 60 + step * np.sqrt(12)
    assert mechanism.weights == pytest.approx((1 / 6, 1 / 3, 1 / 2))
    assert mechanism.sensitivities == pytest.approx((expected,) * 3)
    assert mechanism.sensitivities[0] > 4.0 / 60


@pytest.mark.parametrize("units", [1, 100, 10_000, 1_000_000])
def test_what_is_charged_for_arithmetic_covers_sums_one_by_one(units):
    # The worst order of a sum: contributions of one sign, each added to all those before.
    values = np.random.default_rng(units).uniform(0.5, 1.0, units)
    error = abs(float(np.cumsum(values)[-1]) - math.fsum(values))
    assert 2 * error <= np.sqrt(2.0) * rounding_allowance(units)
    assert rounding_allowance(units) <= 1e-5


@pytest.mark.parametrize(("scheme", "boost"), [*KINDS, ("none", "exact")])
def test_without_noise_the_release_is_the_weighted_mean(scheme, boost):
    mechanism = planned(scheme, boost=boost)
    silent = replace(mechanism, local=(0, 0, 0))  # correlated noise stays, and must cancel
    generator = np.random.default_rng(3)
    statistics = [generator.uniform(-0.5, 0.5, (3, 4)) for _ in range(3)]
    expected = sum(w * f.ravel() for w, f in zip(mechanism.weights, statistics, strict=True))
    error = np.abs(one_round(silent, statistics) - expected).max()
    rounding = 4 * np.finfo(np.float64).eps
    assert error <= 3 * (mechanism.lattice.grid + mechanism.lattice.step) / 2 + rounding


@pytest.mark.parametrize("boost", [1.0, 1e4])
def test_correlated_noise_contributes_exactly_nothing(boost):
    cape = planned("cape", boost=boost)
    plain = replace(cape, exact=True, correlated=(0, 0, 0))
    statistics = [np.full(12, value) for value in (0.1, -0.3, 0.5)]
    assert cape.correlated[0] > 0
    for seed in range(20):
        with_it = one_round(cape, statistics, seed)
        assert np.array_equal(with_it, one_round(plain, statistics, seed))
    assert not np.array_equal(one_round(cape, statistics, 0), one_round(cape, statistics, 1))


def test_correlated_noise_of_survivors_cancels_too():
    cape = planned("cape", units=(10, 10, 10, 10), dropouts=1, boost=1e4)
    plain = replace(cape, exact=True)
    statistics = [np.full(12, 0.2)] * 4
    with_it = one_round(cape, statistics, present=[0, 2, 3])
    assert np.array_equal(with_it, one_round(plain, statistics, present=[0, 2, 3]))


def test_a_site_message_carries_the_correlated_noise_in_full():
    # A boost so small that nothing wraps around the ring.
    cape = planned("cape", entries=20_000, units=(10, 10, 10), boost=0.5)
    share = cape.protect(0, np.zeros(20_000), sampler("message"))
    (correlated, *_), (local, *_) = cape.noise.correlated, cape.noise.local
    hidden, opened = cape.lattice.decode(share.masked), cape.lattice.decode(share.opened)
    assert hidden.std() == pytest.approx(correlated, rel=0.03)
    assert opened.std() == pytest.approx(np.hypot(correlated, local), rel=0.03)
    assert (opened - hidden).std() == pytest.approx(local, rel=0.03)


@pytest.mark.parametrize(("scheme", "boost"), KINDS)
def test_error_of_the_aggregate_is_that_of_pooled_data(scheme, boost):
    # 20 rounds of 6400 numbers: the variance is known to 0.4 %.
    mechanism = planned(scheme, entries=6400, units=(25,) * 4, colluding=0, boost=boost)
    ratio = 4 if scheme == "local" else 1
    statistics = [np.linspace(-0.01, 0.01, 6400)] * 4
    errors = [one_round(mechanism, statistics, seed) - statistics[0] for seed in range(20)]
    pooled = (
        Bound(2.0).sensitivity(100) / 0.5
    )  # the noise that all the data in one place would need
    assert 0.98 <= np.var(errors) / (ratio * pooled**2) <= 1.02
    assert abs(np.mean(errors)) < 5 * pooled * np.sqrt(ratio / (20 * 6400))


@pytest.mark.parametrize(("scheme", "boost"), [*KINDS, ("none", "exact")])
def test_what_the_plan_says_of_a_contribution_is_what_is_sent(scheme, boost):
    mechanism = planned(scheme, boost=boost)
    share = mechanism.protect(1, np.zeros(12), sampler("shape"))
    assert len(share.masked) == mechanism.masked_entries
    assert len(share.opened) == mechanism.opened_entries
    assert share.masked.dtype == share.opened.dtype == mechanism.lattice.dtype


@pytest.mark.parametrize(("planned_entries", "sent"), [(1, 10), (10, 1), (10, 9), (1, 0)])
def test_another_number_of_entries_is_refused(planned_entries, sent):
    # One draw repeated for ten numbers would leave their differences bare.
    mechanism = planned("cape", entries=planned_entries)
    with pytest.raises(RangeError, match="planned"):
        mechanism.protect(0, np.zeros(sent), sampler("wrong"))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.1, -2.1])
def test_a_statistic_that_was_not_clipped_is_refused(wrong):
    statistic = np.zeros(12)
    statistic[5] = wrong
    with pytest.raises(RangeError, match="bound"):
        planned("cape").protect(0, statistic, sampler("wrong"))


def test_a_boost_that_no_sampler_can_draw_is_refused_by_the_plan():
    with pytest.raises(RangeError, match="64-bit"):
        planned("cape", boost=1e30)


def test_no_honest_site_is_refused_by_the_plan():
    with pytest.raises(PrivacyError, match="honest"):
        planned("cape", colluding=2, dropouts=1)


@pytest.mark.parametrize(
    ("boost", "digest"), [("exact", "6e19aee5a8a9625a"), (1e4, "2c517fe3905c1adf")]
)
def test_bits_are_those_of_earlier_versions(boost, digest):
    """``exact`` releases what the scheme ``secure-sum`` released, and a number what it did."""
    mechanism = planned("cape", boost=boost, dropouts=0)
    hashed = hashlib.sha256()
    for site in range(3):
        share = mechanism.protect(site, np.linspace(-0.4, 0.4, 12), sampler("bits", site))
        hashed.update(share.masked.tobytes() + share.opened.tobytes())
    assert hashed.hexdigest()[:16] == digest


CLIPPED = st.lists(
    st.lists(st.floats(-3, 3), min_size=4, max_size=4).map(np.array), min_size=0, max_size=30
)


def contributions(units, cone):
    """Contributions of norm 2 at most, with non-negative entries for a cone."""
    rows = [np.abs(row) if cone else row for row in units]
    return [row * min(1.0, 2.0 / max(np.linalg.norm(row), 1e-300)) for row in rows]


def total_of(mechanism, site, units, nominal):
    mean = np.mean(units, axis=0) if units else np.zeros(4)
    return mechanism.total(site, mean, len(units) / nominal)


@settings(deadline=None)
@given(
    units=CLIPPED,
    other=st.lists(st.floats(-3, 3), min_size=4, max_size=4).map(np.array),
    cone=st.booleans(),
    each=st.booleans(),
    place=st.integers(0, 29),
)
def test_adding_removing_and_replacing_move_a_sum_and_its_count_no_further_than_planned(
    units, other, cone, each, place
):
    """At a nominal number of 5, so that up to six times as many are tried."""
    sharing, bound = Sharing("cape", 1), Bound(2.0, cone)
    mechanism = plan_mechanism(
        sharing, entries=4, bound=bound, units=(5, 7, 9), target=0.5, each=each, sums=True
    )
    assert mechanism.places == (1 if each else 3)
    *rows, new = contributions([*units, other], cone)
    before, most = total_of(mechanism, 0, rows, 5), bound.spread / 5 * (1 + 1e-9)
    neighbours = [[*rows, new]]
    if rows:
        at = place % len(rows)
        neighbours += [rows[:at] + rows[at + 1 :], [*rows[:at], new, *rows[at + 1 :]]]
    for each_world in neighbours:
        moved = np.linalg.norm(total_of(mechanism, 0, each_world, 5) - before)
        assert moved <= most
        assert moved * mechanism.weights[0] <= mechanism.sensitivities[0]
    assert np.linalg.norm(before) <= mechanism.reach * (1 + 1e-9)


def test_a_unit_that_is_added_may_move_a_sum_and_its_count_as_far_as_planned():
    mechanism = plan_mechanism(
        Sharing("cape", 1), entries=4, bound=Bound(2.0), units=(5, 5), target=0.5, sums=True
    )
    one = total_of(mechanism, 0, [np.array([2.0, 0, 0, 0])], 5)
    assert np.linalg.norm(one) == pytest.approx(Bound(2.0).spread / 5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2.1])
def test_a_sum_of_what_was_not_clipped_is_refused_and_not_projected(wrong):
    mechanism = plan_mechanism(
        Sharing("cape", 1), entries=4, bound=Bound(2.0), units=(5, 5), target=0.5, sums=True
    )
    with pytest.raises(RangeError, match="bound"):
        mechanism.protect(0, np.array([wrong, 0, 0, 0]), sampler("wrong"), 0.2)


def test_counts_are_released_beside_the_sum():
    mechanism = plan_mechanism(
        Sharing("none", 0), entries=2, bound=Bound(2.0), units=(10, 30), target=1.0, sums=True
    )
    sites = (np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    shares = [
        mechanism.protect(s, mean, sampler("counts", s), part)
        for s, (mean, part) in enumerate(zip(sites, (0.5, 1.1), strict=True))
    ]
    values = mechanism.release(shares[0].masked, [share.opened for share in shares])
    c = Bound(2.0).count_weight
    assert values == pytest.approx([5 / 40, 66 / 40, 5 * c / 40, 33 * c / 40])
