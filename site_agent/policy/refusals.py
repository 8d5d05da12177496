"""A study held against a site's policy: every reason to refuse it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from consortium.algorithms.base import Extent
from consortium.base.formatting import count, number
from consortium.errors import BudgetError, PrivacyError, StudyError
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.study.plan import Plan, planned_releases, promised_mu
from consortium.study.spec import Study
from site_agent.layout import POLICY
from site_agent.policy.policy import Policy

_SOME_FEATURES = 1_000
_ROUNDING = 1 + 1e-9  # as the ledger's own limit allows


@dataclass(frozen=True)
class SpentLoss:
    """What the ledger holds already for the site's data set and the study's unit, as μ."""

    study: float = 0.0
    """Of this very study, in earlier runs."""
    total: float = 0.0
    """Of all studies, this one included."""
    volume: float = 0.0
    """Of all studies for a single volume, whatever their unit: what the account of unit timepoint
    holds."""


@dataclass(frozen=True)
class StudyRequest:
    """Who is asked to take part in a study, and for how many runs more."""

    site: str
    """This site's name in the study."""
    spent: SpentLoss = SpentLoss()
    """What the ledger holds."""
    runs: int = 1
    """Runs that are to be paid for from now on; 0 for a run that goes on after a crash, whose
    rounds are in the ledger as they come."""
    persons: int | None = None
    """Persons of this site who would take part; None if they were not counted yet."""


def refusals(
    policy: Policy, study: Study, plan: Plan | None, request: StudyRequest
) -> Iterator[PrivacyError]:
    """Yield an error for each thing that a policy refuses of a study, one sentence each.

    Parameters
    ----------
    plan : Plan or None
        None while the other sites' sizes are not known; what depends on them is then left
        to the next time that the policy is asked.
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
        index = study.sites.index(site)
        here = request.persons if plan is None else plan.shape.subjects[index]
        yield from _sizes(policy, plan, here)
        yield from _price(policy, study, plan, request)


def refuse_by_policy(
    policy: Policy, study: Study, plan: Plan | None, request: StudyRequest
) -> None:
    """Refuse a study that `refusals` has something against; the parameters are the same.

    Raises BudgetError if the first problem is one of ε. Raises PrivacyError if it is any other.
    """
    for error in refusals(policy, study, plan, request):
        raise error


def check_statistic(policy: Policy, name: str) -> None:
    """Refuse a statistic that the policy does not list; raises PrivacyError."""
    if policy.statistics is not None and name not in policy.statistics:
        raise PrivacyError(
            f"{POLICY}: field 'statistics': '{name[:40]}' is asked for and "
            f"{', '.join(policy.statistics) or 'nothing'} is allowed; decline the study or add "
            "the statistic."
        )


def _promise(policy: Policy, study: Study) -> Iterator[PrivacyError]:
    """What is protected, how, and against how many."""
    asked = study.privacy
    if asked.unit not in policy.units:
        yield refusal_sentence("units", f"unit {asked.unit}", ", ".join(policy.units))
    if asked.scheme not in policy.schemes:
        yield refusal_sentence("schemes", f"scheme {asked.scheme}", ", ".join(policy.schemes))
    family = None if study.analysis.grouped is None else study.analysis.grouped.family
    if family not in (None, policy.family_column):
        yield refusal_sentence(
            "family_column", f"families by column {family}", policy.family_column
        )
    fewest, most = policy.fewest_colluding_sites, policy.most_dropouts
    if asked.colluding_sites < fewest:
        said = f"protection against {asked.colluding_sites} colluding sites"
        yield refusal_sentence("fewest_colluding_sites", said, f"no fewer than {fewest}")
    if asked.dropouts > most:
        said = f"up to {asked.dropouts} missing sites"
        yield refusal_sentence("most_dropouts", said, f"no more than {most}")


def _company(policy: Policy, study: Study, site: str) -> Iterator[PrivacyError]:
    """Who takes part."""
    if len(study.sites) < policy.fewest_sites:
        said = f"a study of {len(study.sites)} sites"
        yield refusal_sentence("fewest_sites", said, f"no fewer than {policy.fewest_sites}")
    if site not in study.sites:
        yield PrivacyError(
            f"The study does not name '{site}' among its sites; decline it or correct its list."
        )


def _sizes(policy: Policy, plan: Plan | None, here: int | None) -> Iterator[PrivacyError]:
    if here is not None and here < policy.fewest_subjects_here:
        said, least = f"an answer from {here} subjects here", policy.fewest_subjects_here
        yield refusal_sentence("fewest_subjects_here", said, f"no fewer than {least}")
    everywhere = None if plan is None else sum(plan.shape.subjects)
    if everywhere is not None and everywhere < policy.fewest_subjects_in_all:
        said, least = f"{everywhere} subjects in all", policy.fewest_subjects_in_all
        yield refusal_sentence("fewest_subjects_in_all", said, f"no fewer than {least}")


def _price(
    policy: Policy, study: Study, plan: Plan | None, request: StudyRequest
) -> Iterator[BudgetError]:
    """What it costs: by the promise for the study, by the plan for the account, if there is one."""
    spent, runs = request.spent, request.runs
    unit, allowed = study.privacy.unit, policy.allowance(study.privacy.unit)
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
            said, used = _epsilon(asked, policy), _epsilon(before, policy)
            yield BudgetError(
                f"policy.yaml: field '{field}': the study asks for ε = {said} for "
                f"{count(runs, 'run')} where {used} is spent, which makes "
                f"{_epsilon(mu, policy)} over the limit of {limit:g} at δ = {policy.delta:g}; "
                "ask the study's people for less or raise the field."
            )


def _epsilon(mu: float, policy: Policy) -> str:
    return number(epsilon_of(mu, policy.delta))


def _statistics(study: Study, plan: Plan | None) -> list[str]:
    """Names of what the study would ask for, in its order."""
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
    except StudyError:  # a size that matters, which is judged with the plan
        return []
    return list(dict.fromkeys(release.statistic for release in releases))


def refusal_sentence(field: str, asked: str, allowed: str) -> PrivacyError:
    """Say what a study asks for and which field of the policy does not allow it."""
    return PrivacyError(
        f"policy.yaml: field '{field}': the study asks for {asked} and this site allows {allowed}; "
        "ask the study's people to change it, or change the field if you agree."
    )
