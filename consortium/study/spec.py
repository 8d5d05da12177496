"""The study file: everything that a consortium agrees on before any data is read."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    SerializeAsAny,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import AnalysisParameters
from consortium.algorithms.replaced import read_replaced
from consortium.base.frozen_model import FieldError, Line
from consortium.errors import StudyError
from consortium.privacy.loss import Scheme, boost_text
from consortium.study.data_section import DataSection, Section
from consortium.views import BaseView, View, files_of
from consortium.views.meshes import side_file_names

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
"""Lower-case letters, digits and hyphens: safe as a file name, a BIDS label and a report key."""


class PrivacySection(Section):
    """Section `privacy` of a study file: the promised ε and δ, and the noise scheme."""

    unit: Literal["subject", "timepoint"] = "subject"
    """What one neighbouring data set may replace: a participant or one volume."""
    epsilon: float = Field(gt=0, le=100)
    """Largest total ε against the coalition, over all releases."""
    delta: float = Field(gt=0, lt=0.5)
    """δ that belongs to epsilon."""
    scheme: Scheme = "cape"
    """How sites share the noise. Studies between hospitals use 'cape'. 'local' (each site adds all
    of its noise) and 'none' (no noise) are references for simulations."""
    boost: Literal["exact"] | Annotated[float, Field(gt=0, le=1e12)] = "exact"
    """Correlated noise of 'cape'. 'exact': uniform on the ring of the sums. A number κ: Gaussian,
    with κ times the variance of a site's whole noise; it hides a vector that is sent openly."""
    colluding_sites: int = Field(ge=0)
    """S_C, sites that may join the centre against the others."""
    dropouts: int = Field(default=0, ge=0)
    """Sites that may be missing from a round without breaking the promise."""

    @model_validator(mode="before")
    @classmethod
    def _one_meaning(cls, values: Any) -> Any:
        """Refuse what earlier versions took for something else: no study is reinterpreted."""
        if not isinstance(values, dict):
            return values
        if values.get("scheme") == "secure-sum":
            raise ValueError(
                "scheme 'secure-sum' is now 'cape' with exact noise. Write the two lines "
                "'scheme: cape' and 'boost: exact'"
            )
        if values.get("scheme") == "cape" and "boost" not in values:
            raise ValueError(
                "scheme 'cape' requires a boost; below 'scheme: cape' write 'boost: exact', or "
                "'boost: 10000' for the noise of earlier versions"
            )
        return values

    @property
    def exact(self) -> bool:
        """Whether the correlated noise is uniform on the ring."""
        return self.scheme == "cape" and self.boost == "exact"


class TimingSection(Section):
    """Section `timing` of a study file: deadlines of all waits."""

    join: float = Field(default=600.0, gt=0)
    """Seconds that the centre waits for every site to join, in addition to one loading slot."""
    ready: float = Field(default=3600.0, gt=0)
    """Seconds that the centre waits in all, before the first round, for a site that has said that
    it is loading its data. It must exceed the loading slot. For a site that has said nothing the
    centre waits as long as `join` states."""
    answer: float = Field(default=600.0, gt=0)
    """Seconds that a site may take to answer one round. It must exceed the round's time slot."""
    late: float = Field(default=10.0, gt=0)
    """Seconds, in addition to the round's time slot, that a site which missed a round is waited for
    in the next ones, until it answers again."""


class VerificationSection(Section):
    """Verification that a published sum is the sum of the signed contributions."""

    checkers: int | None = Field(default=None, ge=0)
    """Number of sites that add each round again and sign the outcome; 0 for none. It must exceed
    colluding_sites. If sums can be added again (privacy.boost is exact, or open is true), the
    default is one more than the sites that may collude or be missing. Otherwise it is 0."""
    open: bool = False
    """For a privacy.boost that is a number: whether every site's open vector, which its correlated
    noise hides, is readable on the exchange. Sums can then be added again, and outsiders may learn
    as much as the centre."""


class ReportSection(Section):
    """Names of places and networks on the page of the result; sites don't use them."""

    atlas: Line | None = None
    """Path of a NIfTI atlas of labels next to the study file, with a table of the same name ending
    in .tsv (columns index and name): peaks are then also reported by region."""
    networks: Line | None = None
    """Path of a NIfTI of public network maps next to the study file, with a table of names
    likewise: the page then names the most similar one for each map."""


def open_vectors(study: Study) -> str:
    """Return the information before an agreement to ``verification.open``; empty without it."""
    if not study.verification.open:
        return ""
    return (
        "Every reader of the exchange, and not only the centre, sees this site's vectors one by "
        "one. A participant in them is hidden by noise that cancels in the sum, of "
        f"{boost_text(study.privacy.boost)} times the variance of the site's own. The ε against "
        "outsiders counts that."
    )


def how_checked(*, shown: bool) -> str:
    """State whether any party can check a result, and how to enable it, before and after a run.

    Parameters
    ----------
    shown : bool
        Whether the release can be added again, or consists of the sites' own answers.
    """
    if shown:
        return (
            "Any party can check the result: 'consortium verify' shows that the releases agree "
            "with the sites' signatures, and that everything else follows from them."
        )
    return (
        "Only the coordinator can check that the released sums agree with the sites' "
        "contributions. 'consortium verify' checks everything else, and reports that this is not "
        "shown. To have it shown, set privacy.boost: exact, or verification.open: true."
    )


class Study(Section):
    """A study file as a value.

    ``analysis`` is kept as its algorithm's own parameter model.
    """

    study: Name
    """Short name; part of the output's file names."""
    title: str = Field(default="", max_length=200)
    """A line for people."""
    license: str = Field(default="", max_length=200)
    """Licence under which the result is shared, as CC-BY-4.0; written to its description."""
    authors: tuple[str, ...] = Field(default=(), max_length=1024)
    """People or groups that the result's description names, in their order."""
    sites: tuple[Name, ...] = Field(min_length=1, max_length=1024)
    """Names of the sites, as in the roster."""
    participants: dict[Name, Annotated[int, Field(ge=1, le=10_000_000)]] | None = None
    """Nominal number of participants of each site, as known before counting: a multiple of 10 below
    100, with two significant digits above. The noise and the forecast are planned for it, and the
    true numbers are released with noise. If families are the unit, it is their number."""
    volumes: int | None = Field(default=None, ge=1, le=1_000_000)
    """Nominal number of volumes of a participant, as the protocol of the scans has it; for studies
    of image series only."""
    quorum: int | None = Field(default=None, ge=1)
    """Minimum number of sites to start a run (default: all). Sites that have not joined when
    `timing.join` has passed are excluded from the run and informed."""
    data: DataSection = Field(default_factory=DataSection, description=DataSection.__doc__)
    features: tuple[View, ...] = Field(default=(), max_length=8)
    """Views: feature vectors of each participant, for analyses of participants instead of image
    series. Only participants with all views take part."""
    privacy: PrivacySection = Field(description=PrivacySection.__doc__)
    algorithm: str
    """Name of the analysis."""
    analysis: SerializeAsAny[AnalysisParameters]
    """The analysis's own parameters."""
    timing: TimingSection = Field(default_factory=TimingSection, description=TimingSection.__doc__)
    verification: VerificationSection = Field(
        default_factory=VerificationSection, description=VerificationSection.__doc__
    )
    report: ReportSection = Field(default_factory=ReportSection, description=ReportSection.__doc__)

    @field_validator("title", "license", "authors")
    @classmethod
    def _printable(cls, said: str | tuple[str, ...]) -> str | tuple[str, ...]:
        lines = (said,) if isinstance(said, str) else said
        if not all(line.isprintable() and len(line) <= 200 for line in lines):
            raise ValueError("must be one line of at most 200 printable characters. Correct it")
        return said

    @field_validator("sites")
    @classmethod
    def _distinct(cls, sites: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(sites)) != len(sites):
            raise ValueError("a site is named twice. Name each site once")
        return sites

    @model_validator(mode="before")
    @classmethod
    def _default_analysis(cls, values: Any) -> Any:
        return read_replaced({"analysis": {}, **values}) if isinstance(values, dict) else values

    @field_validator("algorithm")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in REGISTRY:
            known = ", ".join(sorted(REGISTRY))
            raise ValueError(f"{name[:40]!r} is not known. Choose one of {known}")
        return name

    @field_validator("analysis", mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict):
            return value
        name = info.data.get("algorithm")
        if name is None:  # it was refused, which is then reported
            return AnalysisParameters()
        known = {key: info.data.get(key) for key in ("privacy", "features")}
        return REGISTRY[name].Parameters.model_validate(value, context=known)

    @model_validator(mode="after")
    def _sound(self) -> Study:
        privacy = self.privacy
        data = self.data
        if self.fewest > len(self.sites):
            raise FieldError(
                "quorum", f"{self.quorum} sites can't be there of {len(self.sites)}. Lower it"
            )
        missing = privacy.colluding_sites + privacy.dropouts
        if privacy.scheme != "none" and missing >= self.fewest:
            raise FieldError(
                "privacy",
                f"{privacy.colluding_sites} colluding and {privacy.dropouts} missing "
                f"sites leave none of {self.fewest}. Lower colluding_sites or dropouts, or raise "
                "quorum",
            )
        self._check_sizes()
        self._check_checkers()
        self._check_views()
        self._check_columns()
        self.analysis.check_sites(self.sites)
        if REGISTRY[self.algorithm].needs_means and not self.features and data.detrend != "none":
            raise FieldError(
                "data.detrend",
                f"must be none, because {self.algorithm} estimates the mean that "
                f"{data.detrend!r} removes",
            )
        if privacy.unit == "timepoint" and data.volumes is not None:
            raise FieldError(
                "data.volumes",
                "it leaves participants out by their numbers of volumes, so one "
                "volume would decide about all others of a participant; for unit timepoint leave "
                "it out, and state 'volumes'",
            )
        if privacy.unit == "timepoint" and data.mixes_volumes:
            raise FieldError(
                "data",
                f"{' and '.join(data.mixes_volumes)} mix a participant's volumes, so "
                "replacing one volume changes all; for unit timepoint set detrend: none, "
                "standardize: none, and leave out confounds, high_pass and low_pass, or protect "
                "unit subject",
            )
        return self

    def _check_sizes(self) -> None:
        if self.participants is None:
            return
        lacking = [site for site in self.sites if site not in self.participants]
        if lacking:
            raise FieldError(
                "participants",
                f"a nominal number is required for each site, and {lacking[0]} has none. Add it",
            )
        self.analysis.check_sizes(self.participants)
        if self.features and self.volumes is not None:
            raise FieldError("volumes", "feature vectors have no volumes. Leave it out")

    def _check_columns(self) -> None:
        read: dict[tuple[str, str], str] = {}
        for view in self.features:
            for file, column in view.columns_read:
                other = read.setdefault((file, column), view.name)
                if other != view.name:
                    raise FieldError(
                        "features",
                        f"views {other} and {view.name} both name {column} of {file}. "
                        "Leave it out of one of them",
                    )

    def _check_checkers(self) -> None:
        wanted = self.verification.checkers
        privacy = self.privacy
        if self.verification.open and (privacy.exact or privacy.scheme != "cape"):
            raise FieldError(
                "verification.open",
                "open vectors require correlated noise of a stated variance. "
                "Leave open out, or set scheme: cape and boost: 10000",
            )
        if not wanted:
            return
        if not self.adds_again:
            raise FieldError(
                "verification.checkers",
                "no site can show a sum without seeing single sites' "
                "vectors. Set checkers: 0, or scheme: cape with boost: exact, or open: true",
            )
        if not privacy.colluding_sites < wanted <= self.fewest:
            raise FieldError(
                "verification.checkers",
                f"{wanted} sites show nothing where "
                f"{privacy.colluding_sites} may collude, or are more than the {self.fewest} that "
                "take part. Set a number between",
            )

    def _check_views(self) -> None:
        takes = REGISTRY[self.algorithm].takes
        if takes == "series" and self.features:
            raise FieldError(
                "features",
                f"{self.algorithm} works on image series, not on feature vectors. Leave "
                "features out",
            )
        if takes == "features" and not self.features:
            raise FieldError(
                "features",
                f"{self.algorithm} works on feature vectors of participants. Name at "
                "least one view",
            )
        if self.features and self.privacy.unit != "subject":
            raise FieldError(
                "privacy.unit", "feature vectors belong to participants. Set unit: subject"
            )
        data = self.data
        report = self.report
        if data.mesh and self.features:
            raise FieldError(
                "data.mesh",
                "it is for series, and the study is of feature vectors. Leave it out, "
                "and name a view of source: surface",
            )
        if data.mesh and (report.atlas or report.networks):
            raise FieldError(
                "report",
                "its atlas and networks have voxels, and the maps are on a mesh. Leave them out",
            )
        for view in self.features:
            if why := view.unfit(data.standardize, bool(data.atlas)):
                raise why
        may = self.analysis.may_lack
        gaps = [v.name for v in self.features if v.stated_gaps and v.name not in may]
        if gaps:
            raise FieldError(
                "features",
                f"view '{gaps[0]}' has gaps, and only outcomes of glm may have them, or "
                "views of average. Set gaps: 0.",
            )
        names = [view.name for view in self.features]
        if len(set(names)) < len(names):
            raise FieldError("features", "two views have one name. Name each differently")

    @property
    def heading(self) -> str:
        """The study's title, or its name if it has no title."""
        return self.title or self.study

    def gaps_of(self, view: BaseView) -> float:
        """Return the fraction of a view's entries that a participant may lack in this study."""
        return view.most_missing if view.name in self.analysis.may_lack else 0.0

    @property
    def templates(self) -> str | None:
        """File of public maps that the analysis names."""
        return self.analysis.template_file

    @property
    def map_files(self) -> tuple[str, ...]:
        """Files of meshes, public maps and an open cohort that data, views and analysis name."""
        mesh = self.data.mesh_files
        templates = side_file_names(self.templates) if self.templates else ()
        cohort = (self.analysis.open_file,) if self.analysis.open_file else ()
        return (*(mesh.named if mesh else ()), *files_of(self.features), *templates, *cohort)

    @property
    def fewest(self) -> int:
        """Fewest sites that a run may start with."""
        return len(self.sites) if self.quorum is None else self.quorum

    @property
    def adds_again(self) -> bool:
        """Whether sums can be added again from the messages on the exchange."""
        return self.verification.open or self.privacy.exact

    @property
    def checkers(self) -> int:
        """Sites that add each round again."""
        wanted = self.verification.checkers
        privacy = self.privacy
        if wanted is not None:
            return wanted
        if not self.adds_again:
            return 0
        return min(len(self.sites), privacy.colluding_sites + 1 + privacy.dropouts)

    def started_with(self, sites: tuple[str, ...]) -> Study:
        """Return the study of a run that starts with some of the sites.

        Raises StudyError if they are too few, or not the study's in the study's order.
        """
        if len(sites) < self.fewest or sites != tuple(s for s in self.sites if s in sites):
            raise StudyError(
                f"A run of '{self.study}' requires at least {self.fewest} of "
                f"{', '.join(self.sites)}, in this order, got {', '.join(sites) or 'no site'}. "
                "Wait for more sites."
            )
        return self.model_copy(update={"sites": sites})

    def check_scheme(self, where: str) -> None:
        """Raise StudyError if the scheme is a reference, which only simulations can use."""
        if self.privacy.scheme != "cape":
            raise StudyError(
                f"{where}: field 'privacy.scheme': '{self.privacy.scheme}' is a reference for "
                "'consortium simulate'. A study between hospitals requires 'scheme: cape' and "
                "'boost: exact'."
            )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal: two studies are one if this is equal.

        The names of places on a page are excluded, because no release depends on them.
        """
        return hashlib.sha256(self.model_dump_json(exclude={"report"}).encode()).hexdigest()
