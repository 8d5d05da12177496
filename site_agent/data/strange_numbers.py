"""Numbers of a column with another probable meaning: codes for *missing*, and other units."""

import math
from collections.abc import Iterator, Mapping

_FAR = 1.0  # widths between a column's limits, beyond them
_NEAR = 0.1  # of that width, from a limit
_CODES = 3  # values; where more are beyond the limits they are measured in another unit
_USUAL = frozenset((-9999.0, -999.0, -99.0, -9.0, -8.0, -7.0, -1.0, 777.0, 888.0, 999.0, 9999.0))
# Participants beyond the limits, before anything is reported: fraction and number.
_PART = 0.05
_PERSONS = 3
_MONTHS = 12.0
_FIT = 0.9


def strange_numbers(
    cells: Mapping[str, int], low: float | None, high: float | None
) -> Iterator[str]:
    """Yield values that look like codes for a missing value.

    Such a value is far beyond the limits, or beyond them and occurs twice or is 0. Or it is exactly
    a limit, twice, and no participant is near it though others are between the limits. One
    participant is enough.

    Parameters
    ----------
    cells : mapping of str to int
        Number of participants with each value.
    low, high : float, optional
        The study's limits. Without both of them, no value is strange.
    """
    if low is None or high is None:
        return
    values = _numbers(cells)
    width = high - low
    beyond = {text: value for text, value in values.items() if not low <= value <= high}
    for text, value in beyond.items():
        far = max(low - value, value - high) > _FAR * width
        twice = cells[text] > 1 and value.is_integer()
        few = len(set(beyond.values())) <= _CODES or value in _USUAL
        if few and (far or twice or value == 0):
            yield text
    inside = [value for value in values.values() if low < value < high]
    for text, value in values.items():
        alone = all(abs(other - value) > _NEAR * width for other in inside)
        if inside and value in (low, high) and cells[text] > 1 and alone:
            yield text


def part_beyond(cells: Mapping[str, int], low: float | None, high: float | None) -> float:
    """Return the fraction of numbers, except codes, that are beyond the limits; 0 if few."""
    if low is None or high is None:
        return 0.0
    found = _measured(cells, low, high)
    many = sum(cells[text] for text, value in found.items() if not low <= value <= high)
    part = many / max(sum(cells[text] for text in found), 1)
    return part if many >= _PERSONS and part > _PART else 0.0


def months_fit(cells: Mapping[str, int], low: float | None, high: float | None) -> bool:
    """Return whether most values are beyond the limits, and a twelfth of them within."""
    if low is None or high is None:
        return False
    found = _measured(cells, low, high)
    fit = [t for t, v in found.items() if low <= v / _MONTHS <= high and not low <= v <= high]
    many = sum(cells[text] for text in fit)
    return many >= _PERSONS and many >= _FIT * sum(cells[text] for text in found)


def _measured(cells: Mapping[str, int], low: float, high: float) -> dict[str, float]:
    """Return the numbers that are not codes."""
    codes = {*strange_numbers(cells, low, high)}
    return {text: value for text, value in _numbers(cells).items() if text not in codes}


def _numbers(cells: Mapping[str, int]) -> dict[str, float]:
    """Return the cells that are finite numbers."""
    found: dict[str, float] = {}
    for text in cells:
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found[text] = value
    return found
