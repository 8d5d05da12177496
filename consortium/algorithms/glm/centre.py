"""`glm`: the effect of a group or a slope on every outcome, adjusted for covariates and for site.

The analysis takes two rounds. The first learns location and scale of the outcomes and regresses the
contrast on the covariates, with a small share of the budget. The second releases every outcome's
weighted sum for the contrast, and for other coefficients only if the study asks for all. Each
release is one vector of blocks that have bounds and shares of their own. If the contrast compares
groups, a round before these two releases the number of participants in the group at every site.
The study states these numbers, or the expected fraction if they are counted. So the plan needs
neither data nor messages from sites.

docs/explanation/glm-proof.md defines every sum, with its sensitivity and proof.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from consortium.algorithms import coverage
from consortium.algorithms.base import (
    MOST_ROWS,
    AnalysisPlan,
    AnyPlaces,
    Case,
    PlannedRelease,
    Query,
    Run,
    Shape,
    SiteData,
)
from consortium.algorithms.glm.agreement import (
    AGREEMENT,
    agreement_arguments,
    agreement_bound,
    found_agreement,
    glm_agreement,
)
from consortium.algorithms.glm.centring import counted_centring, expected_centring
from consortium.algorithms.glm.clipping import (
    BELOW,
    BLIND_LOOK_SHARE,
    KEPT_PART,
    LOCATION_PART,
    LOOK_SHARE,
    MOST_LEAN,
    SIZE_PART,
    SLOPE_MOST_LEAN,
    Clipping,
)
from consortium.algorithms.glm.compare import (
    compare_gaps,
    compare_norms,
    compare_presence,
    compare_tails,
    compare_values,
)
from consortium.algorithms.glm.declared import compare_declared, declared_means
from consortium.algorithms.glm.design import Design
from consortium.algorithms.glm.entries import MOST_MISSING, Columns, resolve
from consortium.algorithms.glm.estimation import ContrastRound, expected_of, known_effects
from consortium.algorithms.glm.groups import Groups
from consortium.algorithms.glm.kernels.contrast_regression import estimate_effects
from consortium.algorithms.glm.kernels.contrast_rows import with_found_slopes
from consortium.algorithms.glm.kernels.learned_norms import MOST_LOG
from consortium.algorithms.glm.kernels.outcome_correlation import (
    BasisCorrelation,
    EqualCorrelation,
    OutcomeCorrelation,
)
from consortium.algorithms.glm.learned import persons_in, read_first_round
from consortium.algorithms.glm.look import glm_counts, glm_norms, glm_slope_norms
from consortium.algorithms.glm.open_table import OpenNorms, with_open_table
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.power import check_worth, expect, tabulate_power, why_hopeless_now
from consortium.algorithms.glm.result import (
    FurtherFindings,
    effects_result,
    remarks_of,
    stopped_result,
)
from consortium.algorithms.glm.ring import log_block, squares_block
from consortium.algorithms.glm.site import glm_contrast, glm_slope
from consortium.algorithms.glm.smooth import cutoffs_of, smooth_places, smoothly_alike
from consortium.base.array import Array
from consortium.errors import StudyError
from consortium.kernels.moments import packed_size
from consortium.privacy.block_bounds import Block, BlocksBound

_MOST_SPREAD = 4.0  # limit of E
# With these values, the error is smallest at ρ of 0.3 and 0.6, and ε of 3 and 8.
_LIFT = 3.0
_SLOPE_LIFT = 2.0
_LOOK_REACH = 0.6  # norm of L, relative to the usual norm
_LOOK_MORE = 2.0  # added to it for one outcome
# For means of outcomes, relative to usual values.
_MOST_PRODUCT = 2.5
_MOST_SQUARE = 7.0
_LOST_REACH = 0.5  # clipping norm of the lost part, relative to B_u
_MOST_TAIL = 1.0  # for the mean outcome, in standard deviations
STAGES = {
    "counts": "counts",
    "norms": "norms",
    "slope_norms": "norms",
    "contrast": "contrast",
    "slope": "contrast",
    AGREEMENT: AGREEMENT,
}
"""Stages by statistic."""

_EXAMPLE: Mapping[str, Any] = {
    "outcomes": "x",
    "formula": "group1",
    "contrasts": {"patients": "group1"},
    "groups": {"north": [2, 1], "east": [1, 0], "south": [2, 2], "west": [1, 1]},
    "norms": {"deviation": 0.5},
    "anyway": True,
}
_OPEN = {name: value for name, value in _EXAMPLE.items() if name != "norms"} | {
    "open": "cohort.tsv"
}
_COUNTED = {**_EXAMPLE, "groups": {}, "shares": 0.5}
_SLOPE = {**_EXAMPLE, "contrasts": {"z": "z1"}, "groups": {}}
_UNITS = {"sessions": True, "most_rows": 2}
_DIFFER = {**_UNITS, "differ": 0.5}
_MEANS = {"z1": dict.fromkeys(("north", "east", "south", "west"), 0.1)}
_VIEWS = (("z", 2), ("x", 4), ("group", 1))
_SMOOTH = {"basis": "smooth", "smoothness": 30.0, "cutoff": 60.0}
_VERTICES = (("z", 2), ("x", 6), ("group", 1))


class Glm(AnalysisPlan[GlmParameters]):
    """Regression of every outcome: first location, scale and covariates, then the contrast.

    Parameters
    ----------
    outcomes : int, optional
        Number of outcomes to plan for (default: those of the study).
    """

    name = "glm"
    title = "mega-analysis"
    takes = "features"
    needs_means = False
    Parameters = GlmParameters
    statistics = {
        "glm_counts": glm_counts,
        "glm_norms": glm_norms,
        "glm_contrast": glm_contrast,
        "glm_slope_norms": glm_slope_norms,
        "glm_slope": glm_slope,
        "glm_agreement": glm_agreement,
    }
    cases = (
        Case(_EXAMPLE, views=(("x", 4), ("group", 1))),
        Case({**_EXAMPLE, "formula": "group1 + z1 + z2"}, views=_VIEWS),
        Case(
            {
                **_EXAMPLE,
                "formula": "group1 + z1 + z2",
                "contrasts": "all",
                "averages": {"half": ["x1", "x2"]},
            },
            views=_VIEWS,
        ),
        Case({**_EXAMPLE, "formula": "group1 * z1 + I(z1**2)", "contrasts": "all"}, views=_VIEWS),
        Case({**_EXAMPLE, "agreement": 0.1}, views=(("x", 4), ("group", 1))),
        Case(
            {**_EXAMPLE, "formula": "group1 + z1", "contrasts": "all", "agreement": 0.2},
            views=_VIEWS,
        ),
        Case({**_SLOPE, "formula": "z1", "agreement": 0.1}, views=_VIEWS),
        Case(_COUNTED, views=(("x", 4), ("group", 1))),
        Case({**_COUNTED, "formula": "group1 + z1 + z2"}, views=_VIEWS),
        Case({**_SLOPE, "formula": "z1 + group1 + z2"}, views=_VIEWS),
        Case({**_SLOPE, "formula": "z1"}, views=_VIEWS),
        Case(
            {**_EXAMPLE, "formula": "group1 + z1 + z2", "norms": {}, "site_means": _MEANS},
            views=_VIEWS,
        ),
        Case({**_SLOPE, "formula": "z1 + z2", "site_means": _MEANS}, views=_VIEWS),
        Case({**_EXAMPLE, "formula": "group1 * z1 + I(z1**2)"}, views=_VIEWS),
        Case(
            {**_SLOPE, "formula": "z2 + group1 * z1", "contrasts": {"both": "group1:z1"}},
            views=_VIEWS,
        ),
        Case({**_EXAMPLE, "units": _UNITS}, views=(("x", 4), ("group", 1))),
        Case({**_COUNTED, "formula": "group1 + z1 + z2", "units": _UNITS}, views=_VIEWS),
        Case({**_SLOPE, "formula": "z1 + group1 + z2", "units": _DIFFER}, views=_VIEWS),
        Case(
            {
                **_EXAMPLE,
                "formula": "group1 + z1 + z2",
                "averages": {"half": ["x1", "x2"]},
                "units": {**_DIFFER, "most_rows": 3},
            },
            views=_VIEWS,
        ),
        Case({**_EXAMPLE, "formula": "group1 * z1 + I(z1**2)", "units": _DIFFER}, views=_VIEWS),
        Case({**_EXAMPLE, "outcomes": "gaps"}, views=(("gaps", 4), ("group", 1))),
        Case(
            {**_EXAMPLE, **_SMOOTH, "formula": "group1 + z1 + z2", "units": _DIFFER},
            views=_VERTICES,
            mesh=True,
        ),
        Case(
            {**_SLOPE, **_SMOOTH, "formula": "z1 + z2", "units": _DIFFER},
            views=_VERTICES,
            mesh=True,
        ),
        Case({**_EXAMPLE, **_SMOOTH}, views=_VERTICES, mesh=True),
        Case({**_OPEN, "formula": "group1 + z1 + z2"}, views=_VIEWS),
        Case(
            {**_OPEN, "formula": "z1 + group1", "contrasts": {"z": "z1"}, "groups": {}},
            views=_VIEWS,
        ),
    )

    foretell = tabulate_power
    expect = expect

    remarks = remarks_of

    def __init__(
        self, parameters: GlmParameters, shape: Shape, outcomes: int | None = None
    ) -> None:
        self.open: OpenNorms | None = None
        if parameters.open is not None:
            parameters, self.open = with_open_table(parameters, shape)
        super().__init__(parameters, shape)
        self.columns: Columns = resolve(parameters, shape)
        self.outcomes = len(self.columns.outcomes) if outcomes is None else outcomes  # V
        self.covariates = len(self.columns.covariates_of)  # p
        _check_outcomes(parameters, self.outcomes)
        self.declared = declared_means(parameters, shape, self.columns)
        self.groups = _groups(parameters, shape, self.columns)
        norm = parameters.covariates.get(self.columns.group.label)
        if self.columns.slope and norm is not None and norm.within is not None:
            self.groups = replace(self.groups, within=(norm.within / norm.deviation) ** 2)
        elif self.columns.slope and not np.isnan(self.declared[:, 0]).any():
            self.groups = self.groups.knowing(self.declared[:, 0])
        if not self.groups.spread.any():
            raise StudyError(
                "field 'analysis.groups': at least one site must have participants of both "
                "groups. Otherwise group and site can't be distinguished. Correct the numbers, "
                "or add such a site."
            )
        if parameters.smooth:
            places = smooth_places(parameters, shape)
            self.cutoff, self.design = self._smooth_design(places, cutoffs_of(parameters, places))
        else:
            self.design = self._design(self._correlation)

    @property
    def _correlation(self) -> OutcomeCorrelation:
        """Correlation of an open cohort that is large enough, or the same for all outcomes."""
        known = None if self.open is None else self.open.matrix
        if known is not None and known.entries == self.outcomes:
            return known
        return EqualCorrelation(self.outcomes, self.parameters.norms.correlation)

    def _design(self, outcome_correlation: OutcomeCorrelation) -> Design:
        parameters = self.parameters
        return Design(
            outcomes=self.outcomes,
            covariates=self.covariates,
            groups=self.groups,
            noise=self.shape.noise / math.sqrt(self._rest),
            outcome_correlation=outcome_correlation,
            gap=parameters.gap,
            explained=parameters.explained,
            importance=parameters.importance,
            averages=len(self.columns.averages),
            released_means=int(self.released_means.sum()),
            grouped=parameters.units is not None,
            lift=self.lift,
        )

    def _smooth_design(self, places: AnyPlaces, cutoffs: tuple[float, ...]) -> tuple[float, Design]:
        """Return the cut-off with the smallest error, including loss of signal by smoothing."""
        tried = list[tuple[float, float, Design]]()
        for cutoff in cutoffs:
            outcome_correlation = smoothly_alike(places, self.parameters.smoothness or 0.0, cutoff)
            design = self._design(outcome_correlation)
            lost = self.parameters.detect * (1 - outcome_correlation.kept)
            tried.append((design.clipping.error**2 + lost**2, cutoff, design))
        _, cutoff, design = min(tried, key=lambda each: each[:2])
        return cutoff, design

    @property
    def released_means(self) -> Array:
        """Columns whose means by site are released instead of declared, boolean."""
        return np.asarray(np.isnan(self.declared).any(axis=0))

    @property
    def outcome_correlation(self) -> OutcomeCorrelation:
        """Stated correlation of the outcomes, with the numbers that are released for them."""
        return self.design.outcome_correlation

    @property
    def rows(self) -> int:
        """Number of released coefficients of an outcome: only the contrast, or all."""
        return 1 + self.covariates if self.parameters.importance else 1

    @property
    def clipping(self) -> Clipping:
        """Clipping bound with the values that follow from it."""
        return self.design.clipping

    @property
    def look_share(self) -> float:
        """r_N: share of the budget for location, scale and missing values of the outcomes."""
        known = LOOK_SHARE if self.parameters.norms.complete else BLIND_LOOK_SHARE
        return known + (coverage.SHARE if self.parameters.gaps else 0.0)

    @property
    def _rest(self) -> float:
        """Share of the budget without the first look and the hospitals' agreement."""
        return 1 - self.look_share - self.parameters.agreement

    @property
    def releases(self) -> tuple[PlannedRelease, ...]:
        """Counts (if there are groups), first look with the covariates' sums, T, and agreement."""
        shares = self.clipping.shares
        sites = len(self.groups.persons)
        rest = self._rest
        clipped = self.design.clipped_columns
        found = []
        heard = dict[str, tuple[int, ...]]()
        slope = self.columns.slope
        if not slope:
            part = rest * shares["counts"]
            found.append(self._release("counts", self._counts, {}, part))
            heard["proportions"] = (sites,)
        first = self._first
        part = math.fsum(block.share for block in first)
        name = "slope_norms" if slope else "norms"
        found.append(self._release(name, BlocksBound.of(first), heard, part))
        heard = heard | {"location": (self.outcomes,), "scales": (self.outcomes,)}
        if clipped:
            heard["centres"] = (sites, clipped)
        if self.covariates:
            heard["slopes"] = (self.covariates,)
        if slope:
            heard["spread"] = (1,)
        agreement = self.parameters.agreement
        left = 1 - agreement - sum(release.share for release in found)
        found.append(self._release("slope" if slope else "contrast", self._second, heard, left))
        if agreement:
            heard = {name: form for name, form in heard.items() if name != "slopes"}
            heard["coefficients"] = (self.rows, self.outcomes)
            found.append(self._release(AGREEMENT, agreement_bound(self), heard, agreement))
        return tuple(found)

    def _release(
        self, stage: str, bound: BlocksBound, forms: dict[str, tuple[int, ...]], part: float
    ) -> PlannedRelease:
        name = f"glm_{stage}"
        return PlannedRelease(
            stage=STAGES[stage],
            statistic=name,
            entries=bound.entries,
            bound=bound,
            rounds=1,
            share=part,
            arguments=forms,
        )

    @property
    def _counts(self) -> BlocksBound:
        return BlocksBound.of([Block("counts", len(self.groups.persons), 0.5, 1.0, 1.0)])

    @property
    def _first(self) -> list[Block]:
        """Blocks of the first look and of the covariates, with their shares of the whole budget."""
        p = self.covariates
        reach = self.design.covariate_reach
        shares = self.clipping.shares
        rest = self._rest
        blocks = self._look
        if p:
            limit = self.lift * self.design.product_reach
            square = self.lift * reach**2
            moment = math.sqrt(2) * square
            size = packed_size(p)
            blocks += [
                Block("contrast", p, limit, 2 * limit, rest * shares["contrast"]),
                Block("moment", size, square, moment, rest * shares["moment"]),
            ]
        if self.design.unknown:
            means = len(self.groups.persons) * self.design.unknown
            blocks.append(Block("means", means, reach, 2 * reach, rest * shares["means"]))
        if self.design.column_share:
            most = self.lift * (self.design.covariate_limit**2 if self.columns.slope else 1.0)
            blocks.append(Block("column", 1, most, most, rest * self.design.column_share))
        return blocks

    @property
    def lift(self) -> float:
        """Factor on bounds for differences between a unit's rows; 1 if there are none."""
        units = self.parameters.units
        if units is None or (self.shape.noise > 0 and not units.differ):
            return 1.0
        most = _SLOPE_LIFT if self.columns.slope else _LIFT
        return min(most, units.largest) if self.shape.noise > 0 else units.largest

    @property
    def narrowed(self) -> float:
        """Expected standard deviation of a unit's mean, relative to that of one row."""
        units = self.parameters.units
        return 1.0 if units is None else units.deviation

    @property
    def _look(self) -> list[Block]:
        """Blocks of the first look at the outcomes."""
        reach = _LOOK_REACH * math.sqrt(self.outcomes * self.outcome_correlation.root) + _LOOK_MORE
        most = self.most_log
        gaps = self.parameters.gaps
        part = self.look_share
        blocks = list[Block]()
        if gaps:
            part = part - coverage.SHARE
            blocks = [coverage.absent_block(self.outcomes, gaps)]
        return [
            Block(
                "location",
                self.outcome_correlation.released,
                reach,
                2 * reach,
                LOCATION_PART * part,
            ),
            Block("kept", 1, 1.0, 1.0, KEPT_PART * part),
            log_block("size", most, SIZE_PART * part),
            *blocks,
        ]

    @property
    def most_log(self) -> float:
        """Limit of logarithms of pairs' squared distances, doubled if the scale is unknown."""
        known = self.in_stated_units or bool(self.columns.limited.all())
        return MOST_LOG if known else 2 * MOST_LOG

    @property
    def in_stated_units(self) -> bool:
        """Whether effects are reported in stated standard deviations, instead of learned ones."""
        return self.parameters.norms.deviation is not None

    @property
    def _second(self) -> BlocksBound:
        clipping = self.clipping
        groups = len(self.columns.averages)
        effects = clipping.reach * clipping.norm
        divisor = clipping.divisor * self.lift
        room = self.design.room
        squares = room * math.sqrt(self.lift) * (1.2 * math.sqrt(self.outcomes + groups) + 2)
        shares = self.design.fixed_shares
        below = 1.0 if self.columns.slope else BELOW
        return BlocksBound.of(
            [
                Block(
                    "effects",
                    self.rows * self.outcome_correlation.released,
                    effects,
                    2 * effects,
                    clipping.shares["effects"],
                ),
                Block("divisor", 1, divisor, (1 + below) * divisor, shares["divisor"]),
                squares_block("squares", self.outcomes + groups, squares, shares["squares"]),
                Block("spread", 1, room * _MOST_SPREAD, room * _MOST_SPREAD, shares["spread"]),
                Block("balance", self.rows, clipping.reach, 2 * clipping.reach, shares["balance"]),
                *self._of_tails,
                *self._of_means,
            ]
        )

    @property
    def _of_tails(self) -> list[Block]:
        """Blocks for the loss by clipping, for every outcome, for their mean, and by group."""
        lost = _LOST_REACH * self.clipping.norm
        lean = (SLOPE_MOST_LEAN if self.columns.slope else MOST_LEAN) * self.clipping.reach
        found = {
            "lost": (self.outcome_correlation.released, lost),
            "tail": (1, _MOST_TAIL),
            "lean": (self.rows, lean),
        }
        return [
            Block(name, entries, norm, 2 * norm, self.design.tail_shares[name])
            for name, (entries, norm) in found.items()
            if name in self.design.tail_shares
        ]

    @property
    def _of_means(self) -> list[Block]:
        """Blocks for means of outcomes: their products with the covariates, and their squares."""
        shares = self.design.mean_shares
        averages = self.columns.averages
        correlation = self.parameters.norms.correlation
        p = self.covariates
        usual = correlation + (1 - correlation) * np.square(averages).sum(axis=1)
        product = self.design.room * _MOST_PRODUCT * math.sqrt(p * float(usual.sum()))
        square = self.design.room * _MOST_SQUARE * float(np.linalg.norm(usual))
        found = {
            "products": (p * len(averages), product, 2 * product),
            "spreads": (len(averages), square, math.sqrt(2) * square),
        }
        return [Block(name, *found[name], share) for name, share in shares.items()]

    @property
    def deviation(self) -> Array:
        """Initial standard deviations (of unit means if units have several rows)."""
        return self.narrowed * self.columns.deviation

    @property
    def most_missing(self) -> float:
        """Fraction of the outcomes that a participant may lack. Others are excluded."""
        return self.parameters.gaps or MOST_MISSING

    @property
    def computed(self) -> dict[str, Array | float]:
        """Chosen bound, norms of an open cohort, and a test image in the released numbers."""
        found: dict[str, Array | float] = {
            "height": self.clipping.height,
            "contrast-reach": self.clipping.contrast_reach,
        }
        if self.open is not None:
            known = self.outcome_correlation.encode(np.cos(np.arange(self.outcomes))[:, None])
            found |= {"open": known, "open-slopes": self.open.slopes}
            found |= {"open-location": self.columns.location, "open-deviation": self.deviation}
        if isinstance(self.outcome_correlation, BasisCorrelation):
            image = np.cos(np.arange(self.outcome_correlation.entries))[:, None]
            found |= {"cutoff": self.cutoff, "basis": self.outcome_correlation.encode(image)}
        return found

    @property
    def importance(self) -> float:
        """Factor of the covariates in the rows of their own coefficients: κ W_c."""
        return self.parameters.importance * min(self.clipping.contrast_reach, 1.0)

    def refuse_hopeless(self) -> None:
        """Raise StudyError if the study cannot find an effect of the size that it asks for."""
        check_worth(self)

    def compare(self, site: int, data: SiteData) -> tuple[str, ...]:
        """Return sentences on where a site's own data contradict the study, for its staff only.

        Compared are declared means, norms, columns, tails and, between groups, their presence.
        """
        names = self.shape.sites or tuple(str(n) for n in range(len(self.shape.subjects)))
        notes = compare_declared(self.parameters, names[site], self.columns, data)
        notes += compare_norms(self.parameters, self.columns, data)
        notes += compare_values(self.columns, data)
        notes += compare_tails(self.columns, data)
        if self.columns.slope:
            return notes
        expected = float(self.groups.proportions[site])
        notes += compare_gaps(self.parameters, self.columns, data)
        return (*compare_presence(self.columns, data, expected), *notes)

    def run(self) -> Run:
        """Run the rounds: counts, first look, a stop if the precision is too low, and estimates."""
        plan = self
        stages = {release.stage: release for release in plan.releases}
        counted = dict[str, Array]()
        centring = expected_centring(plan)
        if "counts" in stages:
            stage = stages["counts"]
            release = yield Query("counts", stage.statistic)
            centring = counted_centring(plan, stage, release, persons_in(plan, release))
            counted["proportions"] = centring.groups.proportions
        stage = stages["norms"]
        release = yield Query("norms", stage.statistic, counted)
        learned = read_first_round(plan, centring, stage, release)
        reason = why_hopeless_now(plan, learned, centring)
        if self.shape.noise > 0 and reason and not self.parameters.anyway:
            return stopped_result(plan, learned, reason, centring)
        stage = stages["contrast"]
        heard = counted | learned.heard(plan)
        release = yield Query("contrast", stage.statistic, heard)
        answered = centring.among(persons_in(plan, release))
        if not plan.covariates and not plan.design.column_share:
            own = replace(learned.adjustment, information=answered.information[0])
            learned = replace(learned, adjustment=own)
        expected = expected_of(plan, answered, learned)
        sums_of = ContrastRound(plan, answered, learned, stage, release)
        found = estimate_effects(sums_of.outcomes, expected, known_effects(plan, learned)[0])
        means = sums_of.means(expected, found, learned) if len(plan.columns.averages) else None
        every = sums_of.coefficients(expected, found, learned) if plan.rows > 1 else None
        if every is not None and plan.parameters.refits:
            found = with_found_slopes(found, every, expected)
        agreement = None
        if AGREEMENT in stages:
            asked = agreement_arguments(plan, learned, found, every, heard)
            release = yield Query(AGREEMENT, stages[AGREEMENT].statistic, asked)
            agreement = found_agreement(
                plan=plan,
                centring=centring.among(persons_in(plan, release)),
                learned=learned,
                found=found,
                every=every,
                release=release,
                change=float(sums_of.lost_tails.changes[0]),
            )
        more = FurtherFindings(every, means, agreement)
        return effects_result(plan, found, learned, answered, more)


def _check_outcomes(parameters: GlmParameters, outcomes: int) -> None:
    """Raise StudyError if there are more coefficients than a table has rows."""
    if parameters.importance and outcomes > MOST_ROWS:
        raise StudyError(
            f"field 'analysis.contrasts': 'all' requires at most {MOST_ROWS} outcomes, got "
            f"{outcomes}. Name one contrast instead."
        )


def _groups(parameters: GlmParameters, shape: Shape, columns: Columns) -> Groups:
    if columns.slope:
        persons = np.array(shape.subjects, dtype=np.float64)
        return Groups(persons, np.full(len(persons), 0.5), slope=True)
    nominal = np.array(shape.subjects, dtype=np.float64)
    if not parameters.groups:
        return Groups(nominal, _expected(parameters, shape))
    names = shape.sites or tuple(parameters.groups)
    counts = np.array([parameters.groups[name] for name in names], dtype=np.float64)
    persons = counts.sum(axis=1)
    if not counts[:, columns.group.level].any():
        raise StudyError(
            "field 'analysis.groups': at least one site must have participants of the level of "
            f"'{parameters.contrasted}'. Contrast another level."
        )
    return Groups(nominal, counts[:, columns.group.level] / persons)


def _expected(parameters: GlmParameters, shape: Shape) -> Array:
    """Return the expected fractions of the group if counts are released."""
    shares = parameters.shares
    if not isinstance(shares, dict):
        return np.full(len(shape.subjects), shares, dtype=np.float64)
    return np.array([shares[name] for name in shape.sites or tuple(shares)])
