from hypothesis import given
from hypothesis import strategies as st

from consortium.secagg import field

elements = st.integers(0, field.PRIME - 1)


def test_the_modulus_is_prime() -> None:
    for base in (2, 3, 5, 7, 11, 13):
        assert pow(base, field.PRIME - 1, field.PRIME) == 1


@given(st.lists(elements, min_size=1, max_size=8), elements)
def test_horner_is_the_sum_of_powers(coefficients: list[int], point: int) -> None:
    direct = sum(c * pow(point, i, field.PRIME) for i, c in enumerate(coefficients))
    assert field.evaluate(coefficients, point) == direct % field.PRIME


@given(st.lists(elements, min_size=1, max_size=8), st.data())
def test_interpolation_undoes_evaluation(coefficients: list[int], data: st.DataObject) -> None:
    size = len(coefficients)
    points = data.draw(st.lists(st.integers(1, 40), min_size=size, max_size=size, unique=True))
    values = [field.evaluate(coefficients, point) for point in points]
    assert field.inner(field.weights_at_zero(points), values) == coefficients[0]


def test_draw_reduces_whole_blocks() -> None:
    stream = (field.PRIME + 5).to_bytes(48, "little") + bytes([7] + 47 * [0])
    assert field.draw_elements(stream) == [5, 7]
