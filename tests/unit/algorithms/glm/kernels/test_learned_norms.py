"""Centre and scale of outcomes: right where they were far off, and left alone by noise."""

from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.learned_norms import (
    LookSums,
    learn_norms,
    squared_norm_ratio,
)
from consortium.algorithms.glm.kernels.outcome_correlation import EqualCorrelation
from consortium.kernels.noisy_shares import estimate_shares
from consortium.privacy.clipping import clip_factors, column_norms

LIKENESS = EqualCorrelation(20, 0.25)
PERSONS = 4000
QUIET = {"location": 0.0, "kept": 0.0, "size": 0.0}


def looked(values, reach, noise=QUIET, generator=None):
    """Sums of a look at V x n values, with noise."""
    turned = LIKENESS.encode(values)
    factors = clip_factors(reach, column_norms(turned))
    half = PERSONS // 2
    squares = np.square(turned[:, :half] - turned[:, half:]).sum(axis=0)
    logs = np.clip(np.log(squares / (2 * len(values) * LIKENESS.root)), -4, 4)
    sums = {"location": turned @ factors, "kept": factors.sum(), "size": logs.sum()}
    if generator is not None:
        sums = {n: s + noise[n] * generator.standard_normal(np.shape(s)) for n, s in sums.items()}
    kept, size = float(sums["kept"]), float(sums["size"])
    return LookSums(sums["location"], kept, size, estimate_shares(np.ones(len(values)), 0.0), noise)


def values_of(centre, scale, seed=0):
    """Within sites three quarters of a variance of one lie, and all of it shares a quarter."""
    generator = np.random.default_rng(seed)
    shared, own = generator.standard_normal(PERSONS), generator.standard_normal((20, PERSONS))
    unit = np.sqrt(0.75) * (np.sqrt(0.25) * shared + np.sqrt(0.75) * own)
    return np.asarray(centre)[:, None] + scale * unit


@pytest.mark.parametrize(("off", "scale"), [(0.0, 1.0), (2.0, 1.0), (-3.0, 0.3), (1.0, 4.0)])
def test_a_centre_and_a_scale_that_are_off_are_found(off, scale):
    centre = off + np.linspace(-0.3, 0.3, 20)
    found = learn_norms(looked(values_of(centre, scale), 5.0), LIKENESS, PERSONS, PERSONS / 2, 1.0)
    # Who is far from the start is shortened most, so that a few parts in a hundred are missing.
    assert found.shift == pytest.approx(centre, abs=0.07 * scale + 0.05 * abs(off))
    assert found.factor == pytest.approx(scale, rel=0.05)
    assert (found.missed(), found.log_square_error, found.lost) == (0.0, 0.0, False)


@pytest.mark.parametrize("sites", [0.0, 0.25, 4.0])
def test_what_clipping_left_tells_how_far_sites_differ(sites):
    generator = np.random.default_rng(4)
    levels = np.sqrt(sites) * generator.standard_normal((20, 40))
    values = values_of(np.zeros(20), 1.0, 3) + levels[:, np.arange(PERSONS) % 40]
    kept = clip_factors(3.0, column_norms(LIKENESS.encode(values))).mean()
    assert squared_norm_ratio(float(kept), 3.0, LIKENESS) == pytest.approx(0.75 + sites, rel=0.2)


def test_norms_that_are_right_are_left_alone_where_noise_rules():
    noise = {"location": 400.0, "kept": 50.0, "size": 4000.0}
    shifts, misses = [], []
    for seed in range(200):
        look = looked(values_of(np.zeros(20), 1.0, 1), 5.0, noise, np.random.default_rng(seed))
        found = learn_norms(look, LIKENESS, PERSONS, PERSONS / 2, 1.0)
        raw = LIKENESS.decode(look.location[:, None])[:, 0] / look.kept
        shifts.append((np.mean(found.shift**2), np.mean(raw**2)))
        misses.append(found.missed() * found.factor**2)
        assert 0.2 < found.factor < 5
    drawn, plain = np.mean(shifts, axis=0)
    assert drawn < 0.5 * plain
    assert np.mean(misses) < 0.7 * plain


def test_what_is_said_of_a_centres_error_is_true():
    noise = {"location": 120.0, "kept": 20.0, "size": 400.0}
    centre = np.linspace(-1, 1, 20) + 0.5
    wrong, said = [], []
    for seed in range(200):
        values = values_of(centre, 1.0, 2)
        look = looked(values, 50.0, noise, np.random.default_rng(seed))
        found = learn_norms(look, LIKENESS, PERSONS, PERSONS / 2, 1.0)
        wrong.append(np.mean((found.shift - values.mean(axis=1)) ** 2))
        said.append(found.missed() * found.factor**2)
    assert np.mean(said) == pytest.approx(np.mean(wrong), rel=0.4)


def test_norms_beyond_reach_are_called_lost():
    far = values_of(np.full(20, 500.0), 1.0)
    assert learn_norms(looked(far, 5.0), LIKENESS, PERSONS, PERSONS / 2, 1.0).lost
    wide = values_of(np.zeros(20), 60.0)
    assert learn_norms(looked(wide, 5.0), LIKENESS, PERSONS, PERSONS / 2, 1.0).lost


def test_outcomes_that_are_missing_are_taken_out_of_their_own_centres():
    values, generator = values_of(np.full(20, 2.0), 1.0), np.random.default_rng(3)
    lost = generator.random(values.shape) < np.linspace(0.0, 0.3, 20)[:, None]
    look = looked(np.where(lost, 0.0, values), 50.0)
    present = 1 - lost.mean(axis=1)
    counted = replace(look, shares=estimate_shares(present, 0.0))
    found = learn_norms(counted, LIKENESS, PERSONS, PERSONS / 2, 1.0)
    assert found.present == pytest.approx(1 - lost.mean(axis=1))
    assert found.shift == pytest.approx(2.0, abs=0.1)
    assert learn_norms(look, LIKENESS, PERSONS, PERSONS / 2, 1.0).shift[-1] < 1.6
    noisy = replace(counted, shares=estimate_shares(present, 1e3))
    drawn = learn_norms(noisy, LIKENESS, PERSONS, PERSONS / 2, 1.0)
    assert drawn.present == pytest.approx(1 - lost.mean())
    assert np.all(drawn.shares.relative_variance > 0)
