"""A site's own rules: its limits for every study, which the agent enforces.

The same rules are checked when a study is read, when it is approved and when a run begins, before
any data is read. The check of a study returns every reason to refuse it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Extent
from consortium.base.formatting import count, number
from consortium.base.frozen_model import FrozenModel
from consortium.base.model_file import read_model, write_model
from consortium.errors import BudgetError, PrivacyError, StudyError
from consortium.privacy.bounds import Unit
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.privacy.loss import boost_text
from consortium.study.plan import Plan, planned_releases, promised_mu
from consortium.study.spec import Study
from site_agent.layout import POLICY

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SOME_FEATURES = 1_000
_REMOVED = (
    "persons_over_limit",
    "fewest_subjects_here",
    "fewest_subjects_in_all",
    "fewest_subjects_chosen",
)
"""Fields of earlier versions."""
_ROUNDING = 1 + 1e-9  # as the ledger's own limit allows


def _clock(value: Any) -> time:
    """Read HH:MM; YAML makes an unquoted 22:30 the number 22 * 60 + 30."""
    if isinstance(value, time):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 24 * 60:
        value = f"{value // 60:02d}:{value % 60:02d}"
    try:
        return datetime.strptime("00:00" if value == "24:00" else value, "%H:%M").time()
    except (TypeError, ValueError) as error:
        raise ValueError("write a time of day as HH:MM, from 00:00 to 24:00") from error


ClockTime = Annotated[time, BeforeValidator(_clock), PlainSerializer(lambda t: f"{t:%H:%M}")]


class Window(FrozenModel):
    """Period in which a policy allows runs: days, from one time of day to the next of another."""

    model_config = ConfigDict(populate_by_name=True)

    days: tuple[Day, ...] = Field(default=DAYS, min_length=1)
    """Days of the week on which the window opens."""
    opens: ClockTime = Field(alias="from")
    """Time of day at which it opens, HH:MM."""
    closes: ClockTime = Field(alias="to")
    """Time of day at which it closes, HH:MM; not after the opening time: on the next day."""

    def spans(self, first: date, days: int) -> Iterator[tuple[datetime, datetime]]:
        """Yield the window's openings and closings on a number of days, in local time."""
        length = datetime.combine(first, self.closes) - datetime.combine(first, self.opens)
        if length <= timedelta():
            length += timedelta(days=1)
        for day in (first + timedelta(days=k) for k in range(days)):
            if DAYS[day.weekday()] in self.days:
                start = datetime.combine(day, self.opens)
                yield start, start + length


def opens_at(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return the time when a policy lets the agent answer next; None if it answers now.

    Parameters
    ----------
    windows : sequence of Window
        Without any, the agent always answers.
    now : datetime
        The site's local time; a time zone is kept.

    Returns
    -------
    datetime or None
        Within seven days of ``now``. Openings and closings are in local clock time, also when
        summer time begins or ends.
    """
    wall = now.replace(tzinfo=None)
    yesterday = wall.date() - timedelta(days=1)  # its window may cross midnight
    spans = [span for window in windows for span in window.spans(yesterday, 9)]
    if not spans or any(start <= wall < end for start, end in spans):
        return None
    return min(start for start, _ in spans if start > wall).replace(tzinfo=now.tzinfo)


__all__ = ["POLICY", "Allowance", "Policy"]

_TITLE = (
    "Limits of this site for every study. The agent refuses everything beyond them, before any "
    "data is read. Changes apply to runs that begin after them."
)


def _known(name: str) -> str:
    known = sorted({name for algorithm in REGISTRY.values() for name in algorithm.statistics})
    if name not in known:
        raise ValueError(f"{name[:40]!r} is not a statistic. Choose from {', '.join(known)}")
    return name


def _distinct(items: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(items)) != len(items):
        raise ValueError("an entry is listed twice. List it once")
    return items


class Allowance(FrozenModel):
    """A policy's largest privacy loss of data in one unit of privacy."""

    study: float = Field(gt=0, le=100)
    """Largest ε that one study may cost, all its runs together."""
    total: float = Field(gt=0, le=100)
    """Largest ε that all studies together may cost one data set."""


class Policy(FrozenModel):
    """Limits of a site for every study. Without a file, the defaults below apply."""

    subject: Allowance = Allowance(study=10.0, total=20.0)
    """Limits for studies that protect a participant with all their scans."""
    timepoint: Allowance = Allowance(study=5.0, total=5.0)
    """Limits for studies that protect a single volume, which protects a participant far less. They
    apply only if 'units' lists timepoint. The total then also counts and limits studies that
    protect a participant, since they cost a volume as much."""
    delta: float = Field(default=1e-5, gt=0, lt=0.5)
    """δ that belongs to every ε here. A study with another δ is converted exactly."""
    units: Annotated[tuple[Unit, ...], AfterValidator(_distinct)] = Field(
        default=("subject",), min_length=1
    )
    """Units of privacy that a study may use: subject (a participant) or timepoint (a volume)."""
    boost: Literal["exact", "any"] = "any"
    """Correlated noise that a study may use. 'exact': only noise that is uniform on the ring of the
    sums. 'any': also Gaussian noise of a stated variance, which hides a vector that the site sends
    to the coordinator."""
    statistics: tuple[Annotated[str, AfterValidator(_known)], ...] | None = None
    """Statistics that a study may request, such as second_moment; null for all in this version."""
    fewest_sites: int = Field(default=3, ge=1)
    """Smallest number of sites that a study may have, including this one."""
    family_column: str = Field(default="family_id", min_length=1)
    """Column of participants.tsv, by its name in studies, that identifies families. A study
    that groups participants by any other is refused."""
    refits: bool = True
    """Whether a study may release so much that the coordinator can compute further models from it
    ('consortium refit'), without another approval. The privacy loss is that of the study."""
    most_dropouts: int = Field(default=2, ge=0)
    """Maximum number of sites that a study may continue without. Its sums then have fewer sites."""
    fewest_colluding_sites: int = Field(default=1, ge=0)
    """Smallest number of other sites that may collude with the centre without breaking the study's
    promise. With 0, a single curious site could break it."""
    hours: tuple[Window, ...] = ()
    """When the agent answers, in the site's local time, for example [{days: [mon, fri], from:
    '20:00', to: '06:00'}]; empty for always."""

    @model_validator(mode="before")
    @classmethod
    def _has_no_removed_field(cls, values: Any) -> Any:
        """Refuse fields of earlier versions."""
        removed = [name for name in _REMOVED if isinstance(values, dict) and name in values]
        if removed:
            raise ValueError(
                f"the fields {', '.join(removed)} were removed, since no exact number of "
                "participants leaves a site any more and participants without budget are left "
                "out. Delete these lines"
            )
        if isinstance(values, dict) and "schemes" in values:
            raise ValueError(
                "'schemes' is replaced by 'boost'; instead, write 'boost: any', or 'boost: "
                "exact' where only 'secure-sum' was allowed"
            )
        return values

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read ``policy.yaml`` of a site's folder; without one, the defaults apply.

        Raises ConfigurationError if it can't be read, or a field is unknown or out of range.
        """
        path = folder / POLICY
        # A broken link means that a policy was lost, not that none was written.
        return read_model(path, cls) if path.exists() or path.is_symlink() else cls()

    def save(self, folder: Path) -> None:
        """Write ``policy.yaml`` with every field and its explanation.

        Raises ConfigurationError if it can't be written.
        """
        write_model(folder / POLICY, self, _TITLE)

    def allowance(self, unit: Unit) -> Allowance:
        """Return the limits for a unit of privacy."""
        return self.subject if unit == "subject" else self.timepoint

    def totals(self) -> dict[str, float]:
        """Return the limit μ of all studies together for a data set, by allowed unit."""
        return {unit: mu_of(self.allowance(unit).total, self.delta) for unit in self.units}

    def study_limit(self, unit: Unit) -> float:
        """Return μ that one study may cost a data set, all its runs together."""
        return mu_of(self.allowance(unit).study, self.delta)

    def opens_at(self, now: datetime) -> datetime | None:
        """Return the time of the next answer, in the site's local time; None if it answers now."""
        return opens_at(self.hours, now)


@dataclass(frozen=True)
class SpentLoss:
    """Loss in the ledger for the site's data set and the study's unit, as μ."""

    study: float = 0.0
    """Loss in earlier runs of the same study."""
    total: float = 0.0
    """Loss in all studies, including this one."""
    volume: float = 0.0
    """Loss of a single volume over all studies, whatever their unit: the account of unit
    timepoint."""


@dataclass(frozen=True)
class StudyRequest:
    """Participants who would take part in a study, and the number of further runs."""

    site: str
    """This site's name in the study."""
    spent: SpentLoss = SpentLoss()
    """Losses in the ledger."""
    runs: int = 1
    """Number of runs that will be charged from now on. It is 0 for a run that continues after a
    crash, whose rounds are charged as they come."""


def refusals(
    policy: Policy, study: Study, plan: Plan | None, request: StudyRequest
) -> Iterator[PrivacyError]:
    """Yield an error for each violation of a policy by a study, one sentence each.

    Parameters
    ----------
    plan : Plan or None
        None before a run has begun: the loss is then the largest that the study promises.
    """
    site = request.site
    yield from _promise(policy, study)
    yield from _company(policy, study, site)
    for name in _statistics(study, plan):
        try:
            check_statistic(policy, name)
        except PrivacyError as error:
            yield error
    if site in study.sites:
        yield from _price(policy, study, plan, request)


def refuse_by_policy(
    policy: Policy, study: Study, plan: Plan | None, request: StudyRequest
) -> None:
    """Refuse a study for which `refusals` yields an error; the parameters are the same.

    Raises BudgetError if the first problem concerns ε. Raises PrivacyError if it is any other.
    """
    for error in refusals(policy, study, plan, request):
        raise error


def check_statistic(policy: Policy, name: str) -> None:
    """Refuse a statistic that the policy does not list; raises PrivacyError."""
    if policy.statistics is not None and name not in policy.statistics:
        raise PrivacyError(
            f"{POLICY}: field 'statistics': '{name[:40]}' is asked for and "
            f"{', '.join(policy.statistics) or 'nothing'} is allowed. Decline the study or add "
            "the statistic."
        )


def _promise(policy: Policy, study: Study) -> Iterator[PrivacyError]:
    """Yield violations by the study's unit, its protection and its number of colluding sites."""
    asked = study.privacy
    if asked.unit not in policy.units:
        yield refusal_sentence("units", f"unit {asked.unit}", ", ".join(policy.units))
    if policy.boost == "exact" and not asked.exact:
        yield refusal_sentence("boost", f"boost {boost_text(asked.boost)}", "exact")
    family = None if study.analysis.grouped is None else study.analysis.grouped.family
    if family not in (None, policy.family_column):
        yield refusal_sentence(
            "family_column", f"families by column {family}", policy.family_column
        )
    if study.analysis.refits and not policy.refits:
        yield refusal_sentence("refits", "a release for further models", "none")
    fewest = policy.fewest_colluding_sites
    most = policy.most_dropouts
    if asked.colluding_sites < fewest:
        said = f"protection against {asked.colluding_sites} colluding sites"
        yield refusal_sentence("fewest_colluding_sites", said, f"no fewer than {fewest}")
    if asked.dropouts > most:
        said = f"up to {asked.dropouts} missing sites"
        yield refusal_sentence("most_dropouts", said, f"no more than {most}")


def _company(policy: Policy, study: Study, site: str) -> Iterator[PrivacyError]:
    """Yield violations by the sites of the study."""
    if len(study.sites) < policy.fewest_sites:
        said = f"a study of {len(study.sites)} sites"
        yield refusal_sentence("fewest_sites", said, f"no fewer than {policy.fewest_sites}")
    if site not in study.sites:
        yield PrivacyError(
            f"The study does not name '{site}' among its sites. Decline it or correct its list."
        )


def _price(
    policy: Policy, study: Study, plan: Plan | None, request: StudyRequest
) -> Iterator[BudgetError]:
    """Yield violations by the loss: the study's promise, or the plan's loss for the account."""
    spent = request.spent
    runs = request.runs
    unit = study.privacy.unit
    allowed = policy.allowance(study.privacy.unit)
    promised = promised_mu(study)
    planned = promised if plan is None else plan.site_loss(study.sites.index(request.site))
    held = [
        (f"{unit}.study", allowed.study, spent.study, promised),
        (f"{unit}.total", allowed.total, spent.total, planned),
    ]
    if unit == "subject" and "timepoint" in policy.units:
        held.append(("timepoint.total", policy.timepoint.total, spent.volume, planned))
    for field, limit, before, each in held:
        asked = each * math.sqrt(runs) if runs else 0.0
        mu = math.hypot(before, asked)
        if not mu <= mu_of(limit, policy.delta) * _ROUNDING:
            said = _epsilon(asked, policy)
            used = _epsilon(before, policy)
            yield BudgetError(
                f"policy.yaml: field '{field}': the study asks for ε = {said} for "
                f"{count(runs, 'run')} where {used} is spent, which makes {_epsilon(mu, policy)} "
                f"over the limit of {limit:g} at δ = {policy.delta:g}. Ask the study's "
                "coordinator for less or raise the field."
            )


def _epsilon(mu: float, policy: Policy) -> str:
    return number(epsilon_of(mu, policy.delta))


def _statistics(study: Study, plan: Plan | None) -> list[str]:
    """Return the names of the statistics that the study would request, in its order."""
    if plan is not None:
        return list(dict.fromkeys(stage.release.statistic for stage in plan.stages))
    ones = (1,) * len(study.sites)
    # Names don't depend on the numbers of features.
    views = tuple((view.name, _SOME_FEATURES) for view in study.features)
    features = _SOME_FEATURES * max(len(views), 1)
    shape = Extent(features, views=views).shape(ones, ones, study.privacy.unit)
    shape = replace(shape, sites=study.sites)
    try:
        releases = planned_releases(study, shape)
    except StudyError:  # a size that matters, which is checked with the plan
        return []
    return list(dict.fromkeys(release.statistic for release in releases))


def refusal_sentence(field: str, asked: str, allowed: str) -> PrivacyError:
    """Return a sentence with the study's request and the policy's field that forbids it."""
    return PrivacyError(
        f"policy.yaml: field '{field}': the study asks for {asked} and this site allows "
        f"{allowed}. Ask the study's coordinator to change it, or change the field if you agree."
    )
