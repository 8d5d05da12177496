"""What a study would reach, and what others near it: from public assumptions, before it is asked.

Every number is a plan's, or its analysis's own forecast for that plan. Studies near it have another
ε, more or fewer persons in every hospital, or more hospitals of the mean size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from consortium.algorithms.base import Expectation, Extent
from consortium.base.formatting import count, number
from consortium.errors import ConsortiumError
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.study.outlook import Outlook
from consortium.study.plan import Plan, make_plan
from consortium.study.spec import Study

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Of ε and of persons."""
HOSPITALS = (0, 1, 2, 4, 8)
"""More than the study has."""
Expected = tuple[Expectation, ...]


@dataclass(frozen=True)
class Assumed:
    """A study as its planners assume it."""

    study: Study
    extent: Extent
    subjects: tuple[int, ...]
    """Persons of each hospital."""
    volumes: int
    """Of each person."""

    @property
    def plan(self) -> Plan:
        """Its plan, made even if it is expected to show nothing.

        Raises ConsortiumError if it can't be planned at all.
        """
        analysis = self.study.analysis
        if "anyway" in type(analysis).model_fields:
            analysis = analysis.model_copy(update={"anyway": True})
        study = self.study.model_copy(update={"analysis": analysis})
        samples = [size * self.volumes for size in self.subjects]
        return make_plan(study, self.extent.shape(self.subjects, samples, study.privacy.unit))

    def with_epsilon(self, factor: float) -> Assumed:
        """The same with another ε."""
        privacy = self.study.privacy
        update = {"privacy": privacy.model_copy(update={"epsilon": factor * privacy.epsilon})}
        return self._changed(update, self.subjects)

    def with_persons(self, factor: float) -> Assumed:
        """The same with more or fewer persons in every hospital."""
        analysis = self.study.analysis.scaled(factor)
        usual = tuple(max(1, round(factor * size)) for size in self.subjects)
        subjects = analysis.stated_sizes(self.study.sites) or usual
        return self._changed({"analysis": analysis}, subjects)

    def with_hospitals(self, more: int) -> Assumed | None:
        """The same with more hospitals of the mean size; None if the study names what each does."""
        sites = self.study.sites
        names = tuple(f"another{number}" for number in range(1, more + 1))
        analysis = self.study.analysis.joined(sites, names)
        if analysis is None:
            return None
        size = round(sum(self.subjects) / len(sites))
        each = analysis.stated_sizes(names) or (size,) * more
        update = {"sites": (*sites, *names), "analysis": analysis}
        return self._changed(update, (*self.subjects, *each))

    def _changed(self, update: Mapping[str, Any], subjects: tuple[int, ...]) -> Assumed:
        study = self.study.model_copy(update=update)
        return Assumed(study, self.extent, subjects, self.volumes)


class Point(NamedTuple):
    """A study near the one that is planned."""

    at: float
    """Its ε, or number of persons or hospitals."""
    expected: Expected
    """Empty if it can't be planned."""


@dataclass(frozen=True)
class StudyDesign:
    """A study's outlook, and what studies near it reach."""

    assumed: Assumed
    outlook: Outlook
    curves: Mapping[str, tuple[Point, ...]]
    """Over ``epsilon``, ``persons`` and ``hospitals``."""
    sentences: tuple[str, ...]
    """What changes with each of them."""


def design(assumed: Assumed) -> StudyDesign:
    """Foretell a study and those near it.

    Raises ConsortiumError if the study itself can't be planned.
    """
    study, outlook = assumed.study, Outlook(assumed.plan)
    more = [(extra, assumed.with_hospitals(extra)) for extra in HOSPITALS]
    curves = {
        "epsilon": _points(
            (factor * study.privacy.epsilon, assumed.with_epsilon(factor)) for factor in FACTORS
        ),
        "persons": _points(
            (sum(near.subjects), near) for near in map(assumed.with_persons, FACTORS)
        ),
        "hospitals": _points((len(near.study.sites), near) for _, near in more if near is not None),
    }
    return StudyDesign(assumed, outlook, curves, _sentences(assumed, outlook.expected, curves))


def _points(near: Any) -> tuple[Point, ...]:
    return tuple(Point(float(at), _expected(each)) for at, each in near)


def _expected(assumed: Assumed) -> Expected:
    try:
        return Outlook(assumed.plan).expected
    except ConsortiumError:
        return ()


def _sentences(
    assumed: Assumed, expected: Expected, curves: Mapping[str, Sequence[Point]]
) -> tuple[str, ...]:
    """What half of ε costs, what more persons and hospitals bring: the first number of each."""
    first, epsilon = expected[0], assumed.study.privacy.epsilon
    each = round(sum(assumed.subjects) / len(assumed.subjects))
    two = assumed.with_hospitals(2)
    asked = {
        f"Half of ε ({number(epsilon / 2)} instead of {number(epsilon)})": curves["epsilon"][1],
        f"Twice the ε ({number(2 * epsilon)})": curves["epsilon"][3],
        f"Twice the participants ({2 * sum(assumed.subjects):,})": curves["persons"][3],
    }
    if two is not None:
        asked[f"Two more hospitals of {count(each, 'participant')}"] = curves["hospitals"][2]
    return tuple(_compared(what, first, point) for what, point in asked.items())


def _compared(what: str, first: Expectation, point: Point) -> str:
    if not point.expected:
        return f"{what}: such a study can't be planned."
    now, then = first.value, point.expected[0].value
    if number(now) == number(then):
        return f"{what}: {first.name} stays at {number(now)}."
    judged = "better" if (then > now) == first.rises else "worse"
    return f"{what}: {first.name} {number(now)} becomes {number(then)}, which is {judged}."


@dataclass(frozen=True)
class ProjectedAccount:
    """A hospital's ledger in the years to come."""

    site: str
    epsilons: tuple[float, ...]
    """ε spent after each year."""
    full: int
    """First year that its limit doesn't allow; 0 if all do."""


def project_accounts(
    plans: Sequence[Plan], runs: int, years: int, limit: float, delta: float
) -> tuple[ProjectedAccount, ...]:
    """Add up what studies do to every hospital's ledger, each run so often a year.

    Parameters
    ----------
    plans : sequence of Plan
        Of one unit of privacy.
    runs, years : int
        Runs of each study a year.
    limit : float
        ε that a hospital allows in all.
    delta : float
        δ of the ledger.
    """
    found, most = [], mu_of(limit, delta)
    for site in dict.fromkeys(site for plan in plans for site in plan.study.sites):
        mine = [p.site_loss(p.study.sites.index(site)) for p in plans if site in p.study.sites]
        yearly = math.sqrt(runs) * math.hypot(*mine)
        losses = [math.sqrt(year) * yearly for year in range(1, years + 1)]
        over = [year for year, mu in enumerate(losses, start=1) if mu > most]
        epsilons = tuple(epsilon_of(mu, delta) for mu in losses)
        found.append(ProjectedAccount(site, epsilons, over[0] if over else 0))
    return tuple(found)
