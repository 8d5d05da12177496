"""The worth of a release in words, equal in the plan, the design, the report and at hospitals."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from consortium.algorithms.shape import Shape
from consortium.kernels.release_worth import RATIO, Worth

POOLED = f"participants for {RATIO:g} times the pooled error"
"""Name of an expectation: how many a study needs whose noise costs it no more."""


def worth_sentence(worth: Worth, by: str) -> str:
    """Return the worth of a release to a hospital, and the sufficient participants, in one line.

    ``by`` names the networks from whose strengths it follows, which differ between plan and result.
    """
    if not (math.isfinite(worth.enough) and math.isfinite(worth.persons)):
        return ""
    return (
        f"By {by}, this release gives a hospital that adds it to its own data as much information "
        f"as {_rounded(worth.persons)} more participants of its own would; with "
        f"{_rounded(worth.enough)} participants in all its error would be {RATIO:g} times that of "
        "pooled data."
    )


def _rounded(value: float) -> str:
    """Write two significant digits, with commas: 0.45, 8.2, 33,000."""
    rough = float(f"{value:.2g}")
    return f"{rough:,.0f}" if rough >= 10 else f"{rough:g}"


_STEP = 1.1
_MOST_STEPS = 73
"""A factor of 1,000: less noise than that is not worth naming."""


def would_be_enough(shape: Shape, sees: Callable[[Shape], bool], purpose: str = "") -> str:
    """Return the number of participants, or the ε, with which a study would find something.

    Parameters
    ----------
    shape : Shape
        As planned, with too much noise.
    sees : callable
        Returns whether a study of a shape is expected to find anything.
    purpose : str
        Purpose for which they are enough, such as ``to expect two networks``.
    """

    def is_enough(steps: int) -> bool:
        return sees(replace(shape, noise=shape.noise / _STEP**steps))

    steps = bisect_left(range(_MOST_STEPS), True, lo=1, key=is_enough)
    if steps == _MOST_STEPS:
        return "Bring many more participants or a larger epsilon"
    factor = _STEP**steps
    return (
        f"About {math.ceil(sum(shape.units) * factor):,} participants would be enough"
        f"{f' {purpose}' if purpose else ''}, or an epsilon about {factor:.1f} times as large"
    )
