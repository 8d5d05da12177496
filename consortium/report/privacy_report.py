"""`privacy_report.json`: the guarantee of a run, its privacy loss, and its releases.

Every number is public. A loss without bound (scheme ``none``, or a mask that is uniform on the
ring) is the string ``"infinite"``, since JSON has no infinity. A reader gets ``math.inf``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from consortium.base.atomic import write_json
from consortium.base.frozen_model import FrozenModel, first_problem
from consortium.errors import OutputError
from consortium.privacy.loss import Scheme

INFINITE = "infinite"
SEEDED = "seeded"
"""How the name of a sampler begins whose noise can be drawn again: a simulation's."""
SLACK = 1e-6
"""Relative rounding that two ways of adding up the same loss may differ by."""


def _from_json(value: Any) -> Any:
    return math.inf if value == INFINITE else value


def _to_json(value: float) -> float | str:
    return INFINITE if math.isinf(value) else value


Amount = Annotated[
    float,
    Field(ge=0),
    BeforeValidator(_from_json),
    PlainSerializer(_to_json, return_type=float | str, when_used="json"),
]
"""A number from 0 to infinity; NaN is refused."""
PerSite = Amount | tuple[Amount, ...]
"""One number for all sites, or one per site in the order of ``sites``."""


class ReportRecord(FrozenModel):
    """A part of `privacy_report.json`: frozen, without unknown keys; a loss may be infinite."""

    model_config = ConfigDict(allow_inf_nan=True)


class Guarantee(ReportRecord):
    """A guarantee of a run: its (ε, δ), and its μ."""

    epsilon: Amount = Field(description="ε at the report's delta.")
    mu: Amount = Field(description="μ of Gaussian differential privacy, which ε is computed from.")


class Guarantees(ReportRecord):
    """Maximum privacy loss of the whole run, against any observer."""

    coalition: Guarantee = Field(
        description="Against the centre and up to colluding_sites sites that pool their messages."
    )
    outsider: Guarantee = Field(
        description="Against outsiders, who see only the releases, and open_vectors if public."
    )


class Person(ReportRecord):
    """Guarantee, in the privacy report, for one participant with all their volumes."""

    epsilon_coalition: Amount = Field(description="ε for a participant, at the report's delta.")
    mu_coalition: Amount = Field(description="volumes times μ for unit timepoint, otherwise μ.")
    volumes: int = Field(ge=1, description="T, the most volumes that one participant contributed.")


class SiteRecord(ReportRecord):
    """One site's part in a run, in the privacy report."""

    name: str = Field(description="The site, as in the study file.")
    nominal: int = Field(
        default=0,
        ge=0,
        description="Participants or timepoints that the study states for it, which is public.",
    )
    units: int = Field(
        ge=0, description="Estimated participants or timepoints, from counts with noise."
    )
    units_deviation: Amount = Field(
        default=0.0, description="Standard deviation of the noise in that estimate."
    )
    answered: int = Field(ge=0, description="Rounds whose sum contains its contribution.")
    mu_coalition: Amount = Field(description="μ that its units lost to the coalition in all.")


class ReleaseRecord(ReportRecord):
    """One release in the privacy report: an opened noisy sum, or the sites' own noisy answers.

    Sums, bounds and noise are in the statistic's own unit.
    """

    stage: str = Field(description="Stage of the analysis.")
    round: int = Field(ge=1, description="Number of the round, from 1 over the whole run.")
    statistic: str = Field(description="Statistic that every site computed.")
    entries: int = Field(ge=1, description="Numbers released.")
    bound: Amount = Field(description="Euclidean norm that every unit was clipped to.")
    sensitivity: PerSite = Field(description="L2 sensitivity of a site's own statistic.")
    weights: tuple[float, ...] = Field(description="Weight of every site in the sum.")
    sigma_correlated: PerSite = Field(
        description="Standard deviation of the noise that cancels in the sum."
    )
    sigma_local: PerSite = Field(description="Standard deviation of the noise that stays.")
    sigma_aggregate: Amount = Field(
        description="Standard deviation of the noise in the released sum, or the noisiest "
        "answer where each site's own is released."
    )
    mu_coalition: Amount = Field(description="μ of this release against the coalition.")
    mu_outsider: Amount = Field(description="μ of this release against an outsider.")
    survivors: tuple[str, ...] = Field(description="Sites whose contribution is in the sum.")

    @property
    def each(self) -> bool:
        """Whether each site's own answer was released. The stated noise is then of one answer."""
        local = self.sigma_local if isinstance(self.sigma_local, tuple) else (self.sigma_local,)
        same_sigma = any(math.isclose(sigma, self.sigma_aggregate) for sigma in local)
        return same_sigma and self.sigma_aggregate > 0 and len(self.survivors) > 1


class GraphRecord(ReportRecord):
    """The graph within which the sites of a large consortium masked their sums."""

    holders: int = Field(ge=1, description="Sites that each site drew as holders of its shares.")
    threshold: int = Field(ge=1, description="Holders whose shares open a seed.")
    hidden: int = Field(
        ge=0, description="Honest sites without whose noise the run was planned, besides drop-outs."
    )
    failure: float = Field(
        ge=0, lt=1, description="Probability that the graph fails, which is a part of delta."
    )


class CrossCheckRecord(ReportRecord):
    """The same composition by a library that is not ours."""

    library: str = Field(description="Name of the library.")
    version: str = Field(description="Its version.")
    epsilon_coalition: Amount = Field(description="ε against the coalition, by its accountant.")


class PrivacyReport(ReportRecord):
    """Content of `privacy_report.json`."""

    study: str = Field(description="Name of the study.")
    unit: Literal["subject", "timepoint"] = Field(
        description="What one neighbouring data set may replace."
    )
    adjacency: Literal["replace-add-remove", "replace-one"] = Field(
        default="replace-add-remove",
        description="Neighbours differ in one unit of one site, which is replaced, added or "
        "removed.",
    )
    scheme: Scheme = Field(description="How the sites shared the noise.")
    boost: Literal["exact"] | Amount = Field(
        description="Correlated noise of scheme cape: exact (uniform on the ring of the sums), or "
        "κ, its variance over that of a site's whole noise."
    )
    open_vectors: bool = Field(
        default=False,
        description="Whether all parties may read the sites' open vectors, which cancelling "
        "noise hides; an outsider is then assumed to read them.",
    )
    sampler: str = Field(
        description="Where the noise came from; begins with 'seeded' if it can be drawn again."
    )
    colluding_sites: int = Field(ge=0, description="S_C, sites that may join the centre.")
    delta: float = Field(gt=0, lt=1, description="δ that belongs to every ε here.")
    graph: GraphRecord | None = Field(
        default=None, description="Null if every two sites had a mask in common."
    )
    promised: Guarantee = Field(description="Limit of the study file against the coalition.")
    guarantees: Guarantees = Field(description="Maximum privacy loss of the run.")
    person: Person = Field(description="The same for one participant with all their volumes.")
    sites: tuple[SiteRecord, ...] = Field(min_length=1, description="Every site of the study.")
    releases: tuple[ReleaseRecord, ...] = Field(description="Every sum that was opened.")
    public: tuple[str, ...] = Field(
        default=(),
        description="Further public information of the study file, which is not protected.",
    )
    cross_check: CrossCheckRecord = Field(description="An independent second opinion.")
    versions: dict[str, str] = Field(description="Software that took part.")

    @property
    def exact(self) -> bool:
        """Whether the correlated noise is uniform on the ring of the sums."""
        return self.scheme == "cape" and self.boost == "exact"

    @model_validator(mode="after")
    def _sound(self) -> PrivacyReport:
        _check_sites(self)
        _check_losses(self)
        return self


def write_privacy_report(path: Path, report: PrivacyReport) -> Path:
    """Write the report as strict JSON, in place of an earlier one.

    Raises OutputError if the file can't be written.
    """
    return write_json(path, report.model_dump(mode="json"))


def read_privacy_report(path: Path) -> PrivacyReport:
    """Read what `write_privacy_report` wrote: its inverse.

    Raises OutputError if the file is missing, is not a privacy report or contradicts itself.
    """
    try:
        return PrivacyReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise OutputError(f"{path} can't be read. Check the output folder.") from error
    except ValidationError as error:
        problem = first_problem(error, PrivacyReport)
        raise OutputError(
            f"{path}: {problem} Write the report again from the transcript."
        ) from error


def _check_sites(report: PrivacyReport) -> None:
    names = [site.name for site in report.sites]
    if len(set(names)) != len(names):
        raise ValueError("a site is listed twice. List each once")
    for release in report.releases:
        columns = (
            release.weights,
            release.sensitivity,
            release.sigma_correlated,
            release.sigma_local,
        )
        if any(isinstance(column, tuple) and len(column) != len(names) for column in columns):
            raise ValueError(f"round {release.round} does not have one value for each site")
        if not set(release.survivors) <= set(names):
            raise ValueError(f"round {release.round} names a survivor that is not a site")


def _check_losses(report: PrivacyReport) -> None:
    # A report that understates is worse than none: no part may cost more than the whole.
    for seer in ("coalition", "outsider"):
        whole = getattr(report.guarantees, seer).mu * (1 + SLACK)
        parts = [getattr(release, f"mu_{seer}") for release in report.releases]
        if seer == "coalition":
            parts += [site.mu_coalition for site in report.sites]
        if any(part > whole for part in parts):
            raise ValueError(f"a site or a release costs more than the guarantee: {seer}")
    if report.person.mu_coalition * (1 + SLACK) < report.guarantees.coalition.mu:
        raise ValueError("a participant's loss is below the guarantee of one of their units")
