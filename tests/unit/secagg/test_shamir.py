import hashlib
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.secagg import shamir

elements = st.integers(0, shamir.PRIME - 1)
secrets = st.binary(min_size=31, max_size=31)


def test_the_modulus_is_prime() -> None:
    for base in (2, 3, 5, 7, 11, 13):
        assert pow(base, shamir.PRIME - 1, shamir.PRIME) == 1


@given(st.lists(elements, min_size=1, max_size=8), elements)
def test_horner_is_the_sum_of_powers(coefficients: list[int], point: int) -> None:
    direct = sum(c * pow(point, i, shamir.PRIME) for i, c in enumerate(coefficients))
    assert shamir.evaluate(coefficients, point) == direct % shamir.PRIME


@given(st.lists(elements, min_size=1, max_size=8), st.data())
def test_interpolation_undoes_evaluation(coefficients: list[int], data: st.DataObject) -> None:
    size = len(coefficients)
    points = data.draw(st.lists(st.integers(1, 40), min_size=size, max_size=size, unique=True))
    values = [shamir.evaluate(coefficients, point) for point in points]
    assert shamir.inner(shamir.weights_at_zero(points), values) == coefficients[0]


def test_draw_reduces_whole_blocks() -> None:
    stream = (shamir.PRIME + 5).to_bytes(48, "little") + bytes([7] + 47 * [0])
    assert shamir.draw_elements(stream) == [5, 7]


def noise(threshold: int, seed: bytes = b"") -> bytes:
    return hashlib.shake_256(b"noise" + seed).digest(shamir.noise_bytes(threshold))


def by_point(shares: list[bytes]) -> dict[int, bytes]:
    return dict(enumerate(shares, start=1))


@given(secrets, st.integers(1, 7), st.integers(0, 5), st.randoms())
def test_any_threshold_of_shares_gives_the_secret(secret, threshold, more, random) -> None:  # type: ignore[no-untyped-def]
    shares = by_point(
        shamir.split(secret, threshold, range(1, threshold + more + 1), noise(threshold))
    )
    kept = random.sample(sorted(shares), threshold)
    assert shamir.join({point: shares[point] for point in kept}) == secret


def test_one_share_less_fits_every_secret() -> None:
    """Perfect secrecy: for any guessed secret there is a polynomial through the shares seen."""
    shares = by_point(shamir.split(b"s" * 31, 3, range(1, 6), noise(3)))
    seen = {point: int.from_bytes(shares[point], "little") for point in (2, 5)}
    for guess in (0, 1, 2**247):
        missing = _through({0: guess} | seen, at=4).to_bytes(32, "little")
        joined = shamir.join({point: shares[point] for point in seen} | {4: missing})
        assert joined == guess.to_bytes(31, "little")


def _through(values: dict[int, int], at: int) -> int:
    shifted = [point - at for point in values]
    return shamir.inner(shamir.weights_at_zero(shifted), values.values())


def test_a_value_too_large_is_no_secret() -> None:
    assert shamir.join({1: (1 << 248).to_bytes(32, "little")}) is None


@settings(max_examples=30)
@given(st.sets(st.integers(1, 8), max_size=3))
def test_wrong_shares_are_named_and_left_out(wrong: set[int]) -> None:
    secret = b"x" * 31
    shares = by_point(shamir.split(secret, 5, range(1, 9), noise(5)))
    for point in wrong:
        shares[point] = hashlib.sha256(bytes([point])).digest()
    found = shamir.recover(shares, 5, secret.__eq__)
    assert found is not None
    assert found.secret == secret
    assert set(found.wrong) <= wrong
    used = [point for point in shares if point not in found.wrong][:5]
    assert not wrong.intersection(used)


def test_recovery_gives_up_exactly_when_too_few_are_right() -> None:
    secret = b"x" * 31
    for size in range(6):
        for wrong in combinations(range(1, 6), size):
            shares = by_point(shamir.split(secret, 3, range(1, 6), noise(3)))
            shares |= {point: bytes(32) for point in wrong}
            assert (shamir.recover(shares, 3, secret.__eq__) is None) == (size > 2)


def test_errors_that_cancel_spoil_no_secret() -> None:
    """Weights of the points 1 ... 3 are 3, -3 and 1: equal errors at 1 and 2 cancel."""
    secret = b"x" * 31
    shares = by_point(shamir.split(secret, 3, range(1, 5), noise(3)))
    for point in (1, 2):
        value = (int.from_bytes(shares[point], "little") + 1) % shamir.PRIME
        shares[point] = value.to_bytes(32, "little")
    assert shamir.recover(shares, 3, secret.__eq__) == shamir.Recovered(secret, ())


def test_malformed_arguments_are_refused() -> None:
    with pytest.raises(ValueError):
        shamir.split(b"short", 2, range(1, 4), noise(2))
    with pytest.raises(ValueError):
        shamir.split(b"s" * 31, 2, range(1, 4), b"")
