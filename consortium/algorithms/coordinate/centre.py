"""A level of privacy for every view: means, or least squares, of which some views tell less.

Source: Aliakbarpour, Chaudhuri, Courtade, Fallah and Jordan (2024), Bayesian coordinate
differential privacy, for Gaussian noise on a mean over all sites. A view's weight in the release
is so small that changing it alone costs no more than its level, while the whole person costs the
study's ε; see `privacy.coordinates`. What a level means for somebody who knows how views depend on
each other is worked out in `privacy.bayesian` and told in the result.

The weights are in the plan's bound, which every site works out for itself. The queries have no
arguments, so that nobody can ask for other levels than those that were approved.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Case, Local, Query, Run
from consortium.algorithms.coordinate.forecast import expect
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.coordinate.plan import CoordinatePlan
from consortium.algorithms.coordinate.result import mean_result, pool_sites, squares_result
from consortium.algorithms.coordinate.site import coordinate_mean, coordinate_moment
from consortium.algorithms.site_constants import SITE_MEANS

_VIEWS = (("x", 4), ("y", 1))  # of the examples


class Coordinate(CoordinatePlan):
    """One release: of D numbers, or of (D + S)(D + S + 1)/2 for least squares."""

    name = "coordinate"
    title = "levels of privacy by view"
    takes = "features"
    needs_means = True
    Parameters = CoordinateParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "coordinate_mean": coordinate_mean,
        "coordinate_moment": coordinate_moment,
    }
    cases: ClassVar[Sequence[Case]] = (
        Case({"levels": {"x": 0.5}, "dependence": 0.1}, views=_VIEWS),
        Case({"levels": {"x": 1}, "target": "y", "protects": "entry"}, views=_VIEWS),
        Case({"radii": {"x": 1.0}, "target": "y"}, views=_VIEWS),
        Case({"levels": {"y": 2.0}, "randomize": "record"}, views=_VIEWS),
    )

    def remarks(self) -> tuple[str, ...]:
        """Tell that sites' means become public."""
        return (SITE_MEANS,) if self.bound.places > 1 else ()

    expect = expect

    def run(self) -> Run:
        """Ask once, and take the weights off again."""
        release = yield Query("coordinate", self.releases[0].statistic)
        return (squares_result if self.squares else mean_result)(self, pool_sites(self, release))
