"""Parameters of a regression of every outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    FiniteFloat,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from consortium.algorithms.base import AnalysisParameters
from consortium.algorithms.glm.formula import CONTRASTED, TERM, factors, without_levels, written_out
from consortium.algorithms.units import Units
from consortium.base.frozen_model import FieldError, FrozenModel
from consortium.errors import StudyError
from consortium.views import View
from consortium.views.base import Label, ViewName

_MOST_TERMS = 50
_MOST_CORRELATION = 0.95
_FAR_OFF = 0.25
_FEW_OFF = 10
"""Largest difference between the sum of a site's groups and its nominal number: relative, or a
number of participants."""
# A coefficient, for one standard deviation of its column, is then as precise as the contrast.
_IMPORTANCE = 0.5
_EXPLAINED = 0.15

Deviation = Annotated[float, Field(ge=1e-12, le=1e12)]
Location = Annotated[float, Field(ge=-1e12, le=1e12)]
Term = Annotated[str, StringConstraints(pattern=TERM)]
Contrasted = Annotated[str, StringConstraints(pattern=CONTRASTED)]
Contrasts = Annotated[dict[Label, Contrasted], Field(min_length=1, max_length=1)]
OutcomeName = Annotated[str, StringConstraints(min_length=1, max_length=129)]
Count = Annotated[int, Field(ge=0, lt=1 << 31)]
Part = Annotated[float, Field(gt=0, lt=1)]
Number = Count | Annotated[FiniteFloat, Field(ge=0, lt=1 << 31)]


class Norms(FrozenModel):
    """Public knowledge of the outcomes. Missing or wrong values are learned."""

    location: Location | tuple[Location, ...] | None = None
    """Usual value of the outcomes, in the view's unit (that of the column, for a table): one
    number, or one for each. The first round learns the true locations, starting from these values.
    Without them it starts from the middle of each column's limits."""
    deviation: Deviation | tuple[Deviation, ...] | None = None
    """Standard deviation among participants of one group at one site, as papers report it: one
    number, or one for each outcome. Effects are reported in this unit. The first round learns one
    factor for all, and the report says if it contradicts the stated numbers. Without them the
    first round starts from an eighth of the distance between each column's limits, and effects are
    reported in the learned deviations."""
    correlation: float = Field(default=0.25, ge=0, le=_MOST_CORRELATION)
    """Usual correlation of two outcomes. A wrong one costs precision only. Of no meaning with
    `basis: smooth`."""

    @property
    def complete(self) -> bool:
        """Whether location and deviation are stated."""
        return self.location is not None and self.deviation is not None


class CovariateNorm(FrozenModel):
    """Public norm of a covariate of `glm`, in the column's unit."""

    mean: Location
    """Usual mean among participants."""
    deviation: Deviation
    """Usual standard deviation among all participants. Columns are clipped at 2.5 times this value,
    and slopes are reported for a change by one of it."""
    within: Deviation | None = None
    """Usual standard deviation among the participants of one site, which determines the precision
    of a slope (default: the part that declared site means leave, or 0.9 of ``deviation``)."""

    @model_validator(mode="after")
    def _smaller_within(self) -> CovariateNorm:
        if self.within is not None and self.within > self.deviation:
            raise FieldError("within", "must be at most deviation, which counts sites' differences")
        return self


class GlmParameters(AnalysisParameters):
    """Parameters of `glm`."""

    outcomes: ViewName | Annotated[tuple[ViewName, ...], Field(min_length=1)]
    """View, or views, with the outcomes. Every entry of them is regressed."""
    formula: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    """Predictors, with + between them, as in `diagnosis + age + sex`. `diagnosis * age` means both
    columns and their product, `diagnosis:age` only the product, and `I(age**2)` a square. A column
    of several levels is replaced by dummy columns of every level except the first. Every site has a
    constant of its own."""
    contrasts: Contrasts | Literal["all"]
    """Name and column of the effect to estimate: a column of two levels (the second minus the
    first), `column=level` for a column with more, or a column with limits or a product, for its
    slope. Or 'all' for every coefficient, from which `consortium contrast` computes others without
    further privacy loss; the formula's first column then has the smallest errors."""
    groups: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    """Nominal number of participants of each level of the contrast's column, in the levels' order,
    by site. The plan and its forecast use these numbers; the true ones are released with noise in a
    first round. Not for a slope. With `units`, numbers of units; a unit with rows of several levels
    counts in proportion to its rows."""
    units: Units | None = None
    """Families, or participants with several sessions, as units of privacy with a random intercept:
    see below. By default a participant is one row."""
    averages: dict[Label, tuple[OutcomeName, ...]] = Field(default_factory=dict, max_length=200)
    """Groups of outcomes, such as lobes, whose mean effect is reported with its own standard error:
    names of outcomes, with `*` for any letters."""
    norms: Norms = Field(default_factory=Norms)
    """Public knowledge of the outcomes' location and scale, as starting values: see below."""
    covariates: dict[Term, CovariateNorm] = Field(default_factory=dict)
    """Usual mean and standard deviation of columns with limits. By default the middle of the limits
    and a quarter of the distance between them."""
    site_means: dict[Term, dict[Label, FiniteFloat]] = Field(default_factory=dict)
    """Sites' means of predictors, in the column's unit, by site (for a column of two levels, the
    fraction of the participants with the second). They become public, as the numbers in `groups`
    do: the guarantee then applies with declared numbers held constant. Without them, noisy means
    are released."""
    gap: float = Field(default=0.3, ge=0, le=3)
    """Largest expected difference of the groups in a covariate, in its standard deviations. State
    it if groups differ much, as the sexes do in head size (about 1.2): the budget and the forecast
    depend on it."""
    explained: float = Field(default=_EXPLAINED, gt=0, lt=1)
    """Fraction of an outcome's variance that the covariates explain, from the literature: a value
    that is too small makes p-values slightly too small if noise is large."""
    detect: float = Field(default=0.5, gt=0, le=10)
    """Smallest effect that the study must be able to detect, in standard deviations within groups
    and sites."""
    anyway: bool = False
    """Run the study even if it cannot detect an effect of size `detect`, or the largest site could
    detect smaller ones by itself."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the intervals."""
    discoveries: float = Field(default=0.05, gt=0, lt=0.5)
    """Accepted false discovery rate."""
    shares: Part | dict[str, Part] | None = None
    """Instead of `groups`: expected fraction of the participants with the contrast's level, at all
    sites or by site. A wrong fraction costs precision only."""
    agreement: float = Field(default=0.0, ge=0, le=0.5)
    """Share of the budget to learn how much the contrast's effect differs between hospitals: 0.1 is
    usual, and 0 releases nothing about it. With covariates it requires `contrasts: all`."""
    basis: Literal["entries", "smooth"] = "entries"
    """Numbers that are released for the outcomes: 'entries' for every outcome; 'smooth', for one
    view of images that has a number for every voxel or vertex, for their coefficients in a public
    basis of smooth maps, from which maps of all voxels are computed. Fewer numbers have less noise;
    details finer than half the cutoff are smoothed away."""
    smoothness: float | None = Field(default=None, ge=1, le=100)
    """With `basis: smooth` only: smoothness of the participants' images, as the full width of a
    Gaussian kernel at half its maximum in mm (applied smoothing and the images' own combined)."""
    cutoff: float | None = Field(default=None, gt=0, le=1000)
    """With `basis: smooth` only: shortest wavelength in mm, about twice the finest detail. By
    default 1.25 to 2.5 times the smoothness, longer with more noise, among those that the voxels
    and a thousand maps allow."""
    open: str | None = None
    """Table of an open cohort next to the study file: one row for each participant, and a column
    for each outcome and for those columns of the formula that it has, in the study's units. It
    replaces `norms` and `explained`, and gives the default of `covariates`."""
    _views: tuple[View, ...] = PrivateAttr(default=())
    _open_norms: Any = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _always_counted(cls, values: Any) -> Any:
        if isinstance(values, dict) and "counts" in values:
            raise FieldError(
                "counts",
                "numbers of participants of a group are always released with noise. Remove "
                "'counts' and give 'groups' or 'shares'.",
            )
        return values

    @model_validator(mode="before")
    @classmethod
    def _one_contrast(cls, values: Any) -> Any:
        if isinstance(values, dict) and "contrasts" in values:
            asked = values["contrasts"]
            if asked != "all" and not (isinstance(asked, dict) and len(asked) == 1):
                raise FieldError(
                    "contrasts",
                    "must be one name with its column, such as 'patients: diagnosis', "
                    "or 'all', from which others are computed afterwards",
                )
        return values

    @model_validator(mode="after")
    def _complete(self, info: ValidationInfo) -> GlmParameters:
        self._views = tuple((info.context or {}).get("features") or ())
        terms = self.terms
        if len(terms) > _MOST_TERMS:
            raise FieldError("formula", f"must have at most {_MOST_TERMS} columns and products")
        if self.importance and len(factors(terms[0])) > 1:
            raise FieldError(
                "contrasts", "'all' requires a formula that begins with a column. Name it first."
            )
        if without_levels(self.contrasted) not in terms:
            raise FieldError(
                "contrasts", f"{self.contrasted} must be in the formula. Add the column to it."
            )
        known = {name for view in self._views for name, _ in view.single_columns}
        strange = sorted(set(self.covariates) - known - set(terms))
        if strange:
            raise FieldError("covariates", f"{strange[0]} is not a column. Correct its name.")
        if self.shares is not None and self.groups:
            raise FieldError(
                "shares", "'groups' already states the expected fractions. Remove one."
            )
        self._check_agreement()
        self._check_basis()
        self._check_open()
        self._check_units()
        lengths = {len(counts) for counts in self.groups.values()}
        if lengths and (len(lengths) > 1 or min(lengths) < 2):
            raise FieldError(
                "groups", "each site must have a number of participants for each level"
            )
        if any(sum(counts) < 1 for counts in self.groups.values()):
            raise FieldError("groups", "each site must have at least one participant")
        return self

    def _check_units(self) -> None:
        counts = [count for of_site in self.groups.values() for count in of_site]
        if self.units is None and any(count != int(count) for count in counts):
            raise FieldError("groups", "numbers of participants must be integers")
        if self.units is not None and self.importance:
            raise FieldError(
                "units",
                "the errors of other coefficients would be valid for only one correlation "
                "within units. Name one contrast instead of 'all'.",
            )
        outcomes = [view for view in self._views if view.name in self.outcome_views]
        if self.units is not None and any(view.stated_gaps for view in outcomes):
            raise FieldError(
                "units",
                "a row without an outcome is excluded from its unit. Set 'gaps: 0' in the views.",
            )

    def _check_agreement(self) -> None:
        if not self.agreement:
            return
        if len(self.terms) > 1 and not self.importance:
            raise FieldError(
                "agreement",
                "requires 'contrasts: all' if the formula has covariates, because hospitals whose "
                "groups differ in a covariate would otherwise seem to differ in the effect.",
            )
        for name, given in (("units", self.units), ("open", self.open), ("basis", self.smooth)):
            if given:
                raise FieldError("agreement", f"is not possible with {name}. Remove one of them.")

    def _check_basis(self) -> None:
        if not self.smooth:
            if self.smoothness is not None or self.cutoff is not None:
                raise FieldError("smoothness", "requires 'basis: smooth', as does cutoff")
            return
        if self.smoothness is None:
            raise FieldError("smoothness", "is required by 'basis: smooth'")
        if self.importance or self.averages or len(self.outcome_views) > 1:
            raise FieldError("basis", "smooth requires one contrast of one view, without averages")

    def _check_open(self) -> None:
        if self.open is None:
            return
        for name, usual in (("norms", Norms()), ("explained", _EXPLAINED)):
            if getattr(self, name) != usual:  # an approval states defaults
                raise FieldError(name, f"is taken from the open cohort. Remove {name}.")
        if not self.open.endswith((".tsv", ".csv")):
            raise FieldError("open", "must be a table of participants (.tsv or .csv)")
        if self.smooth:
            raise FieldError(
                "open",
                "requires outcomes with a column each, so 'basis: smooth' is not possible. "
                "Remove one of them.",
            )

    @property
    def refits(self) -> bool:
        """Whether models of fewer columns can be computed from the result."""
        return self.contrasts == "all" and self.open is None

    @property
    def open_file(self) -> str | None:
        """File of an open cohort next to the study file."""
        return self.open

    @property
    def open_norms(self) -> Any:
        """`OpenNorms` that norms and covariates were taken from; None if a study states them."""
        return self._open_norms

    def take_open_norms(self, found: Any) -> None:
        """Keep the `OpenNorms` that norms and covariates were taken from."""
        self._open_norms = found

    @property
    def norms_source(self) -> str:
        """Name of what states the norms, for people."""
        return "analysis.norms" if self.open is None else "the open cohort"

    @property
    def declared(self) -> tuple[str, ...]:
        """Statements on numbers that the study file makes public."""
        statements = {
            "sites' means that the study file declares: the privacy guarantee applies with "
            "declared numbers held constant": bool(self.site_means),
        }
        return tuple(what for what, stated in statements.items() if stated)

    @property
    def grouped(self) -> Units | None:
        """Unit of privacy, if a unit may have several rows."""
        return self.units

    @property
    def smooth(self) -> bool:
        """Whether coefficients of smooth maps are released instead of the outcomes."""
        return self.basis == "smooth"

    @property
    def terms(self) -> tuple[str, ...]:
        """Columns of the formula, products and squares."""
        return written_out(self.formula)

    @property
    def contrast(self) -> str:
        """Name of the contrast."""
        return self.terms[0] if self.contrasts == "all" else next(iter(self.contrasts))

    @property
    def contrasted(self) -> str:
        """Column, or level of a column, of the contrast."""
        return self.terms[0] if self.contrasts == "all" else next(iter(self.contrasts.values()))

    @property
    def importance(self) -> float:
        """κ, weight of the other coefficients relative to the contrast; 0 if not released."""
        return _IMPORTANCE if self.contrasts == "all" else 0.0

    @property
    def counted(self) -> bool:
        """Whether numbers of participants of a group are released, as for all but slopes."""
        return bool(self.groups) or self.shares is not None

    @property
    def outcome_views(self) -> tuple[str, ...]:
        """Names of the outcomes' views."""
        return (self.outcomes,) if isinstance(self.outcomes, str) else self.outcomes

    @property
    def may_lack(self) -> tuple[str, ...]:
        """Views in which a participant may lack values."""
        return () if self.smooth or self.units is not None else self.outcome_views

    @property
    def gaps(self) -> float:
        """Fraction of a participant's outcomes that may be missing; 0 if none may."""
        return max([v.most_missing for v in self._views if v.name in self.may_lack] or [0.0])

    @property
    def views(self) -> tuple[Any, ...]:
        """Views of the study; empty if the parameters were created without a study."""
        return self._views

    def check_sites(self, sites: Sequence[str]) -> None:
        """Raise StudyError if the groups are not those of the study's sites."""
        named = self.shares if isinstance(self.shares, dict) else self.groups
        if (named or named is self.shares) and set(sites) != set(named):
            missing = sorted(set(sites) ^ set(named))
            field, what = ("groups", "numbers") if self.groups else ("shares", "fraction")
            raise StudyError(
                f"field 'analysis.{field}': {', '.join(missing)}: the {what} of participants must "
                "be given for every site of the study, and no other."
            )

        for column, means in self.site_means.items():
            if set(sites) != set(means):
                missing = sorted(set(sites) ^ set(means))
                raise StudyError(
                    f"field 'analysis.site_means': {', '.join(missing)}: the mean of '{column}' "
                    "must be given for every site of the study, and no other."
                )

    def check_sizes(self, participants: Mapping[str, int]) -> None:
        """Raise StudyError if `groups` contradicts the nominal numbers of participants."""
        for site, sizes in self.groups.items():
            stated = sum(sizes)
            nominal = participants.get(site)
            if nominal is not None and abs(stated - nominal) > max(_FAR_OFF * nominal, _FEW_OFF):
                raise StudyError(
                    f"field 'analysis.groups': {site} has {stated:g} participants in all groups, "
                    f"and 'participants' states {nominal}. Correct one of them."
                )

    def joined(self, sites: Sequence[str], more: Sequence[str]) -> GlmParameters:
        """Return the parameters with further sites, which have the mean shares and groups."""
        update: dict[str, Any] = {}
        if isinstance(self.shares, dict):
            usual = sum(self.shares.values()) / len(sites)
            update["shares"] = self.shares | dict.fromkeys(more, usual)
        if self.groups:
            columns = zip(*(self.groups[site] for site in sites), strict=True)
            mean = tuple(max(1, round(sum(column) / len(sites))) for column in columns)
            update["groups"] = self.groups | dict.fromkeys(more, mean)
        return self.model_copy(update=update)
