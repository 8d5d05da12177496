"""What a canonical correlation analysis says to people."""

from __future__ import annotations

from consortium.algorithms.base import Array, Captions, Table


def words(correlations: Array, floor: float, deviation: float) -> Captions:
    """Say how many pairs are there, and what their numbers are."""
    cause = "chance and privacy's noise" if deviation else "chance"
    above = int((correlations > floor).sum())
    return Captions(
        "pair",
        f"{above} of {len(correlations)} canonical pairs are linked more closely than {cause} "
        f"would make them: the largest correlation is {correlations[0]:.2f}, and {floor:.2f} is "
        "the noise floor.",
        "Change of a feature, in its view's own unit, with one standard deviation of its view's "
        "variate.",
        sign=True,
    )


def pair_table(correlations: Array, low: Array, high: Array, floor: float, views: int) -> Table:
    """Tabulate every pair's correlation with its interval."""
    rows = [
        (k + 1, float(r), float(a), float(b), floor, "yes" if r > floor else "no")
        for k, (r, a, b) in enumerate(zip(correlations, low, high, strict=True))
    ]
    what = "Canonical correlations" if views == 2 else "Mean correlations over the pairs of views"
    return Table(
        f"{what}, with 95 % intervals (few persons, and the noise of privacy) and the noise floor: "
        "what the largest of them exceeds in 5 % of studies without any link.",
        ("pair", "correlation", "95 % low", "95 % high", "noise floor", "above floor"),
        tuple(rows),
    )
