"""`glm`: the effect of a group or a slope on every outcome, adjusted for covariates and for site.

The analysis takes two rounds. The first learns location and scale of the outcomes and regresses the
contrast on the covariates, with a small share of the budget. The second releases every outcome's
weighted sum for the contrast, and for other coefficients only if the study asks for all. Each
release is one vector of blocks that have bounds and shares of their own. If the contrast compares
groups, a round before these two releases the number of participants in the group at every site.
docs/explanation/glm-proof.md defines every sum, with its sensitivity and proof.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from consortium.algorithms.base import (
    Array,
    Case,
    Local,
    Query,
    Run,
    SiteData,
)
from consortium.algorithms.glm.centring import counted_centring, expected_centring
from consortium.algorithms.glm.compare import (
    compare_gaps,
    compare_norms,
    compare_presence,
    compare_tails,
    compare_values,
)
from consortium.algorithms.glm.declared import compare_declared
from consortium.algorithms.glm.estimation import ContrastRound, expected_of, known_effects
from consortium.algorithms.glm.kernels.contrast_regression import estimate_effects
from consortium.algorithms.glm.learned import persons_in, read_first_round
from consortium.algorithms.glm.look import glm_counts, glm_norms, glm_slope_norms
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.algorithms.glm.plan import GlmPlan
from consortium.algorithms.glm.power import check_worth, expect, tabulate_power, why_hopeless_now
from consortium.algorithms.glm.result import (
    FurtherFindings,
    effects_result,
    remarks_of,
    stopped_result,
)
from consortium.algorithms.glm.site import glm_contrast, glm_slope

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


class Glm(GlmPlan):
    """Regression of every outcome: first location, scale and covariates, then the contrast."""

    name = "glm"
    title = "mega-analysis"
    takes = "features"
    needs_means = False
    Parameters = GlmParameters
    statistics: ClassVar[Mapping[str, Local]] = {
        "glm_counts": glm_counts,
        "glm_norms": glm_norms,
        "glm_contrast": glm_contrast,
        "glm_slope_norms": glm_slope_norms,
        "glm_slope": glm_slope,
    }
    cases: ClassVar[Sequence[Case]] = (
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

    def refuse_hopeless(self) -> None:
        """Raise StudyError if the study cannot find an effect of the size that it asks for."""
        check_worth(self)

    foretell = tabulate_power
    expect = expect

    def compare(self, site: int, data: SiteData) -> tuple[str, ...]:
        """Compare the stated groups, norms, limits and columns with a site's own data."""
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

    remarks = remarks_of

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
        there = centring.among(persons_in(plan, release))
        if not plan.covariates and not plan.design.column_share:
            own = replace(learned.adjustment, information=there.information[0])
            learned = replace(learned, adjustment=own)
        expected = expected_of(plan, there, learned)
        sums_of = ContrastRound(plan, there, learned, stage, release)
        found = estimate_effects(sums_of.outcomes, expected, known_effects(plan, learned)[0])
        more = FurtherFindings(
            sums_of.coefficients(expected, found, learned) if plan.rows > 1 else None,
            sums_of.means(expected, found, learned) if len(plan.columns.averages) else None,
        )
        return effects_result(plan, found, learned, there, more)
