"""A privacy level for every view: means, or least squares, with less information about some views.

Source: Aliakbarpour, Chaudhuri, Courtade, Fallah and Jordan (2024), Bayesian coordinate
differential privacy, for Gaussian noise on a mean over all sites. A view has such a small weight in
the release that changing only it costs no more than its level, while the whole participant has the
study's ε. See `privacy.view_bounds`. `privacy.bayesian` computes the level against an observer who
has the dependence between views, which the result reports.

The weights are in the plan's bound, which every site computes by itself. The queries have no
arguments. So no party can request other levels than the approved ones.

Forecasts: the standard error of a mean assumes the largest variance that the entries of a view can
have together. For coefficients it is assumed that nothing explains the target, whose standard
deviation is 0.3, and that entries have equal standard deviations of 0.4, or of one over the root of
their number in the view, within its radius.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from consortium.algorithms.assumed import robust_deviation
from consortium.algorithms.assumed_persons import usual_spread
from consortium.algorithms.base import (
    MOST_SOLVED_FEATURES,
    AnalysisPlan,
    Array,
    Case,
    Expectation,
    PlannedRelease,
    Query,
    Released,
    Run,
    Shape,
)
from consortium.algorithms.coordinate.parameters import CoordinateParameters
from consortium.algorithms.coordinate.result import (
    mean_result,
    pool_sites,
    squares_result,
)
from consortium.algorithms.coordinate.site import coordinate_mean, coordinate_moment
from consortium.algorithms.linear import (
    ASSUMED_DEVIATION,
    LeastSquaresQuestion,
    check_identified,
    drawn_fits,
    open_coefficients,
    report_uncertainty,
)
from consortium.algorithms.site_constants import SITE_MEANS
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.kernels.noisy_least_squares import Fit
from consortium.privacy.bounds import Bound
from consortium.privacy.gdp import mu_of
from consortium.privacy.mechanism import HEADROOM
from consortium.privacy.view_bounds import SQUARES_NORM, Part, PartsBound, choose_weights

MOST_ROUNDING = 1e-3
"""Fraction of the whole sensitivity that a lattice may add, also to that of a view."""
_SHARES = tuple(0.85**step for step in range(48))
"""Parts of the budget that are tried, the whole one first."""
MOST_OF_DELTA = 1e-3
"""Fraction of the study's δ, and of a level's, for the failure of a graph of masks."""

_VIEWS = (("x", 4), ("y", 1))  # the examples' views
_DRAWS = 48
_FEW = 8


class Coordinate(AnalysisPlan[CoordinateParameters]):
    """One release: of 2 D numbers, or of (D + S)(D + S + 1)/2 for least squares.

    Raises StudyError if the study has no such views, or nothing can explain the target.

    Attributes
    ----------
    squares : bool
        Whether products are released, for least squares.
    radii : list of float
        R, norm to which each view is clipped.
    """

    name = "coordinate"
    title = "levels of privacy by view"
    takes = "features"
    needs_means = True
    Parameters = CoordinateParameters
    statistics = {
        "coordinate_mean": coordinate_mean,
        "coordinate_moment": coordinate_moment,
    }
    cases = (
        Case({"levels": {"x": 0.5}, "dependence": 0.1}, views=_VIEWS),
        Case({"levels": {"x": 1}, "target": "y", "protects": "entry"}, views=_VIEWS),
        Case({"radii": {"x": 1.0}, "target": "y"}, views=_VIEWS),
        Case({"levels": {"y": 2.0}, "randomize": "record"}, views=_VIEWS),
    )

    def __init__(self, parameters: CoordinateParameters, shape: Shape) -> None:
        super().__init__(parameters, shape)
        for field in ("levels", "radii"):
            for view in getattr(parameters, field):
                shape.view_slice(view, f"analysis.{field}")
        self.squares = parameters.target is not None
        self.radii = [parameters.radii.get(view, math.sqrt(size)) for view, size in shape.views]
        if self.squares:
            self._check_squares()

    def _check_squares(self) -> None:
        target = self.target
        if not 2 <= self.shape.features <= MOST_SOLVED_FEATURES:
            raise StudyError(
                f"field 'features': least squares requires 1 to {MOST_SOLVED_FEATURES - 1} "
                f"entries in addition to the target, got {self.shape.features - 1}. Add a view, "
                "or use fewer or coarser views."
            )
        check_identified(self.shape, target, constant=True)

    @cached_property
    def target(self) -> int:
        """Place of the target within a participant's vector."""
        name = str(self.parameters.target)
        return self.shape.single_entry(name, "analysis.target", "name a view of one number")

    @cached_property
    def losses(self) -> list[float]:
        """Largest fraction of the participant's μ for each view, in the plan's real numbers.

        The maximum effects of rounding to the grid and of a graph of masks are subtracted. Raises
        StudyError if a level is too small for that.
        """
        return [self._loss(view) for view, _ in self.shape.views]

    def _loss(self, view: str) -> float:
        epsilon, delta = self.parameters.promise()
        level = self.parameters.levels.get(view)
        if level is None:
            return 1.0
        part = mu_of(level, (1 - MOST_OF_DELTA) * delta) / mu_of(epsilon, delta)
        part = min(part, 1.0) * (1 + MOST_ROUNDING) - MOST_ROUNDING
        if part <= 0:
            raise StudyError(
                f"field 'analysis.levels': the level of '{view}' must be larger compared with the "
                f"participant's ε = {epsilon:g}, got {level:g}. Raise it, or remove the view from "
                "the study."
            )
        return part

    @cached_property
    def budget_share(self) -> float:
        """Fraction of the participant's budget (of μ²) with the best precision of least squares.

        A larger fraction gives a view with a level a smaller weight, and an entry's product with
        another of its own view has the noise over that weight squared. With the whole budget it may
        hide the view, and with it the coefficients of all others. The fraction minimizes the sum of
        noise variances over the explanatory products, without data.
        """
        if not self.squares or not self.parameters.levels:
            return 1.0
        scores = [self._products_noise(self._weights(share)) / share for share in _SHARES]
        return _SHARES[int(np.argmin(np.round(np.array(scores) / min(scores), 9)))]

    def _products_noise(self, weights: Sequence[float]) -> float:
        """Return the noise variance over all products of two entries but the target's square."""
        views = self.shape.views
        target = str(self.parameters.target)
        own = math.fsum(
            size / weight**2
            for (view, size), weight in zip(views, weights, strict=False)
            if view != target
        )
        at = [view for view, _ in views].index(target)
        return own * (own / 2.0 + 1.0 / weights[at] ** 2 + 1.0 / weights[-1] ** 2)

    def _weights(self, share: float) -> Sequence[float]:
        """Return the weight of every view, and with a target that of the constant.

        With a fraction of the budget, a level is a larger fraction of the rest.
        """
        parameters = self.parameters
        explaining = self.shape.features - 1
        # Target and constant are in a product with each of the entries that explain.
        costs: list[float] = [
            explaining if view == parameters.target else size for view, size in self.shape.views
        ]
        limits: list[float] = []
        for loss, radius in zip(self.losses, self.radii, strict=True):
            reach = radius if parameters.protects == "view" else min(1.0, radius)
            limits.append(_largest_norm(loss / math.sqrt(share), self.squares) / reach)
        if not self.squares:
            return choose_weights(costs, self.radii, limits)
        return choose_weights([*costs, explaining], [*self.radii, 1.0], [*limits, math.inf])

    @cached_property
    def bound(self) -> PartsBound:
        """Weights of all views, with the least noise that their levels allow.

        Raises StudyError if a level can't be kept.
        """
        parameters = self.parameters
        squares = self.squares
        weights = self._weights(self.budget_share)
        sizes = [size for _, size in self.shape.views]
        parts = tuple(map(Part, sizes, weights, self.radii))  # without the constant's weight
        constant = weights[-1] if squares else 0.0
        square = math.fsum(part.norm**2 for part in parts) + constant**2
        reach = square if squares else math.sqrt(square)
        spread = Bound(reach, squares).spread
        if parameters.randomize == "record":
            # The sum of n noisy vectors has n times their variance.
            spread *= math.sqrt(HEADROOM * max(self.shape.units))
        places = len(self.shape.units) if squares and parameters.site_constants else 1
        norm = reach if squares else SQUARES_NORM * reach
        return PartsBound(
            norm=norm,
            cone=squares,
            influence=spread,
            parts=parts,
            constant=constant,
            places=places,
            squares=not squares,
        )

    @cached_property
    def weights(self) -> Array:
        """Weight of every entry of a participant's vector, length D."""
        parts = self.bound.parts
        return np.repeat([part.weight for part in parts], [part.entries for part in parts])

    @property
    def computed(self) -> Mapping[str, Array | float]:
        """Quantities that are solved for, or tried."""
        return {"weights": self.weights, "budget_share": self.budget_share}

    @cached_property
    def asked(self) -> LeastSquaresQuestion:
        """What least squares are asked: of entries first, constants next."""
        places = self.bound.places
        entries = np.arange(self.shape.features)
        weights = np.append(self.weights, np.full(places, self.bound.constant))
        order = [*np.delete(entries, self.target), *(len(entries) + np.arange(places)), self.target]
        return LeastSquaresQuestion(
            shape=self.shape,
            target=str(self.parameters.target),
            place=self.target,
            constants=places,
            weights=weights,
            order=np.array(order),
            confidence=self.parameters.confidence,
        )

    @cached_property
    def releases(self) -> tuple[PlannedRelease]:
        """The only release, with the part of the budget that the levels leave room for."""
        entries = self.shape.features
        bound = self.bound
        released: Released = "sum" if self.parameters.randomize == "mean" else "each"
        statistic = "coordinate_moment"
        share = self.budget_share
        if self.squares:
            entries = packed_size(entries + bound.places)
        else:  # noise of a vector of norm 1 for one that may be shorter
            statistic = "coordinate_mean"
            share = min(1.0, bound.reach**2)
            entries *= 2
        return (
            PlannedRelease(
                stage="coordinate",
                statistic=statistic,
                entries=entries,
                bound=bound,
                rounds=1,
                share=share,
                released=released,
            ),
        )

    def remarks(self) -> tuple[str, ...]:
        """State that sites' means become public, and whether nothing can be expected."""
        return ((SITE_MEANS,) if self.bound.places > 1 else ()) + _open(self)

    def expect(self) -> tuple[Expectation, ...]:
        """Forecast the standard error of a mean of each view, or of a coefficient of each."""
        return _coefficients(self) if self.squares else _means(self)

    def run(self) -> Run:
        """Ask once, and take the weights off again."""
        release = yield Query("coordinate", self.releases[0].statistic)
        return (squares_result if self.squares else mean_result)(self, pool_sites(self, release))


def _largest_norm(part: float, squares: bool) -> float:
    """Return the norm P of a weighted view with the loss ``part`` of a participant of norm 1.

    The inverse of `PartsBound.part_spread`: P for a mean, 2 P √(1 - P²) for products.
    """
    if part >= 1:
        return math.inf
    if not squares:
        return part
    return part / math.sqrt(2 * (1 + math.sqrt(1 - part**2)))  # no difference of near numbers


def _means(plan: Coordinate) -> tuple[Expectation, ...]:
    level = _pooled_level(plan)
    persons = sum(plan.shape.units)
    expected = []
    for (view, _), part in zip(plan.shape.views, plan.bound.parts, strict=True):
        noise = level / part.weight
        error = math.hypot(noise, math.sqrt(_widest_variance(part) / persons))
        name = f"standard error of a mean of '{view}'"
        expected.append(
            Expectation(
                name=name,
                value=error,
                low=noise,
                high=error,
                rises=False,
                ranged="from only noise to the largest sampling error",
            )
        )
    return tuple(expected)


def _widest_variance(part: Part) -> float:
    """Return the largest mean variance of a view's entries."""
    return min(1.0, part.radius**2 / part.entries)


def _coefficients(plan: Coordinate) -> tuple[Expectation, ...]:
    """Forecast coefficients by draws of noise and sampling error through the analysis's code."""
    asked = plan.asked
    errors = []
    open_ends = 0
    for fit in _fits(plan, _DRAWS):
        errors.append(fit.coefficients[: plan.shape.features - 1])
        open_ends += not report_uncertainty(asked, fit).coefficients[0].reported
    expected = []
    first = 0
    drawn = np.stack(errors)
    for view, size in plan.shape.views:
        if view == asked.target:
            continue
        own = drawn[:, first : first + size]
        first = first + size
        name = f"error of a coefficient of '{view}'"
        expected.append(Expectation(name, robust_deviation(own.ravel()), rises=False))
    share = 1.0 - open_ends / _DRAWS
    return *expected, Expectation("chance that coefficients have intervals", share)


def _open(plan: Coordinate) -> tuple[str, ...]:
    """State if coefficients will mostly be withheld, and whether one constant for all helps."""
    if not (plan.squares and plan.shape.noise):
        return ()
    return open_coefficients(plan, plan.bound.places > 1, partial(_fits, draws=_FEW))


def _fits(plan: Coordinate, draws: int) -> Iterator[Fit]:
    """Draw studies of assumed participants, each with its own noise and sampling error."""
    return drawn_fits(plan.asked, _pooled_level(plan), partial(_moment, plan), draws)


def _moment(plan: Coordinate, generator: np.random.Generator) -> Array:
    """Draw the assumed E[z zᵀ], with the sampling error of the products with the target."""
    sizes = [size for _, size in plan.shape.views]
    units = plan.shape.units
    target = plan.target
    own = [
        min(usual_spread(size), radius / math.sqrt(size))
        for size, radius in zip(sizes, plan.radii, strict=True)
    ]
    spread = np.repeat(own, sizes)
    spread[target] = min(ASSUMED_DEVIATION, spread[target])
    squares = np.append(np.square(spread), plan.asked.parts(range(len(units))))
    scale = plan.asked.weights * np.sqrt(squares)
    moment = np.diag(np.square(scale))
    chance = scale * scale[target] / math.sqrt(sum(units)) * generator.standard_normal(len(scale))
    chance[target] = scale[target] ** 2
    moment[target] = moment[:, target] = chance
    return moment


def _pooled_level(plan: Coordinate) -> float:
    """Return the noise of an entry if sites' answers are combined as in `pool_sites`."""
    (planned,) = plan.releases
    sizes = np.array(plan.shape.units, dtype=np.float64)
    level = planned.round_deviation(plan.shape)
    if planned.released == "sum":
        return level
    return level * float(sizes.min() / sizes.sum()) * math.sqrt(len(sizes))
