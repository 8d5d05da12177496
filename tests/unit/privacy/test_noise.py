"""The exact sampler: its law, its exact path, and words that lie on every boundary."""

import hashlib
from decimal import Decimal, localcontext

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from scipy.stats import chi2, chi2_contingency, kstest

from consortium.errors import RangeError
from consortium.privacy import noise
from consortium.privacy.noise import LARGEST_SIGMA, GaussianSampler, KeyStream

ONES = 2**64 - 1


def sampler(seed):
    return GaussianSampler(hashlib.sha256(f"key {seed}".encode()).digest())


class Script:
    """A key stream that says what it is told."""

    def __init__(self, words):
        self._words = list(words)

    def words(self, count):
        said, self._words = self._words[:count], self._words[count:]
        assert len(said) == count
        return np.array(said, dtype=np.uint64)


def scripted(words):
    chosen = sampler("unused")
    chosen._stream = Script(words)
    return chosen


def fit(draws, sigma):
    """p-value of the chi-square test against the exact law, rare values pooled."""
    reach = 8 * sigma
    weights = np.exp(-np.square(np.arange(-reach, reach + 1)) / (2 * sigma**2))
    chances = weights / weights.sum()
    assert np.abs(draws).max() <= reach
    seen = np.bincount(draws + reach, minlength=2 * reach + 1)
    expected = chances * len(draws)
    common = expected >= 10
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    return chi2.sf(np.sum((seen - expected) ** 2 / expected), len(seen) - 1)


def cumulative(k):
    """P(K <= k) for weights exp(-k²/2), to 90 digits."""
    with localcontext() as context:
        context.prec = 110
        weights = [(Decimal(-i * i) / 2).exp() for i in range(26)]
        return sum(weights[: k + 1]) / sum(weights)


def extension(k):
    """First 64 bits of P(K <= k) after the 63 that the table holds."""
    with localcontext() as context:
        context.prec = 110
        return int(cumulative(k) * (1 << 127)) & ONES


@pytest.mark.parametrize("sigma", [1, 2, 3, 7, 20])
def test_small_deviations_follow_the_exact_law(sigma):
    assert fit(sampler(sigma).draw(sigma, 400_000), sigma) > 1e-3


def test_the_chi_square_test_can_fail():
    rounded = np.rint(np.random.default_rng(0).normal(0, 1, 400_000)).astype(int)
    assert fit(rounded, 1) < 1e-9


@pytest.mark.parametrize("sigma", [1000, 3 * 2**20 + 1, 2**40, LARGEST_SIGMA])
def test_large_deviations_are_gaussian(sigma):
    draws = sampler(sigma).draw(sigma, 200_000) / sigma
    assert abs(draws.mean()) < 4 / np.sqrt(200_000)
    assert draws.var() == pytest.approx(1.0, abs=4 * np.sqrt(2 / 200_000))
    assert np.mean(draws**4) == pytest.approx(3.0, abs=4 * np.sqrt(96 / 200_000))
    assert kstest(draws, "norm").pvalue > 1e-3


def test_all_low_bits_are_used():
    draws = sampler("bits").draw(LARGEST_SIGMA - 1, 20_000)
    ones = [np.mean(draws >> bit & 1) for bit in range(40)]
    assert np.abs(np.array(ones) - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)


def test_draws_are_independent():
    draws = sampler("lag").draw(5, 200_000) / 5
    for lag in (1, 2, 7):
        assert abs(np.mean(draws[lag:] * draws[:-lag])) < 4 / np.sqrt(200_000)


def test_opendp_draws_the_same_law():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=3.0)([0] * 20_000))
    ours = sampler("opendp").draw(3, 20_000)
    table = [np.bincount(np.clip(draws, -9, 9) + 9, minlength=19) for draws in (theirs, ours)]
    assert chi2_contingency(np.array(table)).pvalue > 1e-4


@pytest.mark.parametrize("sigma", [1, 3, 1001])
def test_the_decimal_path_gives_the_very_same_draws(monkeypatch, sigma):
    fast = sampler("path").draw(sigma, 1500)
    monkeypatch.setattr(noise, "_MARGIN", 2.0)
    assert np.array_equal(sampler("path").draw(sigma, 1500), fast)


def test_the_decimal_path_alone_follows_the_law(monkeypatch):
    monkeypatch.setattr(noise, "_MARGIN", 2.0)
    assert fit(sampler("decimal").draw(2, 5000), 2) > 1e-3


def test_the_key_stream_is_aes_in_counter_mode():
    key = bytes(range(32))
    blocks = Cipher(AES(key), ECB()).encryptor().update(bytes(31) + b"\x01")
    assert KeyStream(key).words(4).tobytes() == blocks
    stream = KeyStream(key)
    assert stream.words(1).tobytes() + stream.words(3).tobytes() == blocks


def test_same_key_same_noise():
    assert np.array_equal(sampler(1).draw(9, 40_000), sampler(1).draw(9, 40_000))
    assert not np.array_equal(sampler(1).draw(9, 100), sampler(2).draw(9, 100))
    one = sampler(3)
    assert not np.array_equal(one.draw(9, 100), one.draw(9, 100))


def test_nothing_and_out_of_range():
    assert not sampler(0).draw(0, 5).any()
    assert len(sampler(0).draw(3, 0)) == 0
    for sigma in (-1, LARGEST_SIGMA + 1):
        with pytest.raises(RangeError, match="grid"):
            sampler(0).draw(sigma, 1)


def test_the_table_is_the_exact_distribution_rounded_down():
    with localcontext() as context:
        context.prec = 110
        for k, cell in enumerate(noise._CELLS.tolist()):
            assert cell <= cumulative(k) * (1 << 63) < cell + 1
    assert noise._CELLS[-1] == 2**63 - 1


@pytest.mark.parametrize("k", range(9))
def test_words_beside_a_boundary_need_no_second_look(k):
    cell = int(noise._CELLS[k])
    beside = np.array([cell - 1, cell + 1], dtype=np.uint64)
    assert scripted([])._table(beside).tolist() == [k, k + 1]


@pytest.mark.parametrize("k", range(9))
def test_words_on_a_boundary_are_decided_by_further_bits(k):
    cell = np.array([int(noise._CELLS[k])], dtype=np.uint64)
    edge = extension(k)
    assert scripted([edge - 1])._table(cell).tolist() == [k]
    assert scripted([edge + 1])._table(cell).tolist() == [k + 1]
    # The same 64 bits as the boundary itself: not before another word is there.
    assert scripted([edge, 0])._table(cell).tolist() == [k]
    assert scripted([edge, ONES])._table(cell).tolist() == [k + 1]


def test_the_last_cell_holds_all_rare_values():
    last = np.array([2**63 - 1], dtype=np.uint64)
    assert int(noise._CELLS[9]) == 2**63 - 1
    assert scripted([0])._table(last).tolist() == [9]
    assert scripted([extension(9) + 1])._table(last).tolist() == [10]
    # 1 - 2^-255 lies between P(K <= 17) and P(K <= 18).
    assert scripted([ONES] * 3 + [0] * 3)._table(last).tolist() == [18]


def test_every_k_table_word_lands_where_its_number_lies():
    words = np.random.default_rng(1).integers(0, 2**63, 100_000, dtype=np.uint64)
    drawn = sampler("table")._table(words)
    edges = [float(cumulative(k)) for k in range(12)]
    assert np.array_equal(drawn, np.searchsorted(edges, words / 2.0**63))


@pytest.mark.parametrize("sigma", [3, 2**43 + 1, LARGEST_SIGMA - 1])
def test_uniform_numbers_are_redrawn_where_they_would_be_biased(sigma):
    whole = 2**64 // sigma * sigma
    chosen = scripted([whole, sigma - 1, whole - 1, ONES, whole, 2 * sigma + 1])
    assert chosen._below(sigma, 3).tolist() == [1, sigma - 1, sigma - 1]


def test_a_power_of_two_needs_no_redraw():
    assert scripted([ONES, 0])._below(2**44, 2).tolist() == [2**44 - 1, 0]


def test_acceptance_on_the_edge_is_decided_by_further_bits():
    # j = σ, were it drawn, is kept with exp(-1/2): its first 64 bits leave it open.
    with localcontext() as context:
        context.prec = 110
        edge = int(Decimal("-0.5").exp() * (1 << 128))
    first, second = edge >> 64, edge & ONES
    zero, one = np.zeros(1, dtype=np.int64), np.full(1, 10, dtype=np.int64)
    word = np.array([first], dtype=np.uint64)
    assert scripted([second - 1])._keep(10, zero, one, word).tolist() == [True]
    assert scripted([second + 1])._keep(10, zero, one, word).tolist() == [False]
    assert scripted([])._keep(10, zero, one, word - np.uint64(1)).tolist() == [True]
    assert scripted([])._keep(10, zero, one, word + np.uint64(1)).tolist() == [False]


def test_zero_has_one_sign():
    # A negative zero is rejected: k = 0 from word 1 (sign bit set), j = 0, kept for sure.
    assert scripted([1, 0, 0])._attempt(5, 1).tolist() == []
    assert scripted([0, 0, 0])._attempt(5, 1).tolist() == [0]
    assert scripted([1, 3, 0])._attempt(5, 1).tolist() == [-3]
