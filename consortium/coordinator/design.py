"""Forecasts of a study and of similar ones, from public assumptions, before its approval.

Every number is a plan's, or its analysis's own forecast for that plan. Similar studies have another
ε, more or fewer participants in every hospital, or more hospitals of the mean size. A design is
written as a page and as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from consortium.algorithms.base import Expectation, Extent
from consortium.base.atomic import write_json, write_text
from consortium.base.formatting import count, number
from consortium.errors import ConsortiumError, StudyError
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.report.pictures import DOTS, SIZE, Picture, to_picture
from consortium.report.tables import cell_text
from consortium.report.templating import plain_environment
from consortium.study.outlook import Outlook
from consortium.study.plan import Plan, make_plan
from consortium.study.spec import Study
from site_agent.policy.policy import Policy

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Factors of ε and of the number of participants."""
HOSPITALS = (0, 1, 2, 4, 8)
"""More than the study has."""
Expected = tuple[Expectation, ...]
_AXES = {
    "epsilon": "ε of the study",
    "persons": "participants in all",
    "hospitals": "hospitals",
}


@dataclass(frozen=True)
class Assumed:
    """A study as its planners assume it."""

    study: Study
    extent: Extent
    subjects: tuple[int, ...]
    """Participants of each hospital."""
    volumes: int
    """Volumes of each participant."""

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
        """Return the same with another ε."""
        privacy = self.study.privacy
        update = {"privacy": privacy.model_copy(update={"epsilon": factor * privacy.epsilon})}
        return self._changed(update, self.subjects)

    def with_persons(self, factor: float) -> Assumed:
        """Return the same with more or fewer participants in every hospital."""
        subjects = tuple(max(1, round(factor * size)) for size in self.subjects)
        return self._changed({}, subjects)

    def with_hospitals(self, more: int) -> Assumed | None:
        """Return the same with more hospitals of the mean size; None if sites have own roles."""
        sites = self.study.sites
        names = tuple(f"another{number}" for number in range(1, more + 1))
        analysis = self.study.analysis.joined(sites, names)
        if analysis is None:
            return None
        size = round(sum(self.subjects) / len(sites))
        update = {"sites": (*sites, *names), "analysis": analysis}
        return self._changed(update, (*self.subjects, *(size,) * more))

    def _changed(self, update: Mapping[str, Any], subjects: tuple[int, ...]) -> Assumed:
        study = self.study.model_copy(update=update)
        return Assumed(study, self.extent, subjects, self.volumes)


class Point(NamedTuple):
    """Forecast of a study near the planned one, for `design.html`."""

    at: float
    """Its ε, or number of participants or hospitals."""
    expected: Expected
    """Empty if it can't be planned."""


@dataclass(frozen=True)
class StudyDesign:
    """A study's outlook, and the forecasts of similar studies."""

    assumed: Assumed
    outlook: Outlook
    curves: Mapping[str, tuple[Point, ...]]
    """Forecasts by ``epsilon``, ``persons`` and ``hospitals``."""
    sentences: tuple[str, ...]
    """Effect of each of the three, in a sentence."""


def design(assumed: Assumed) -> StudyDesign:
    """Forecast a study and similar ones, for the page `design.html`.

    Raises ConsortiumError if the study itself can't be planned.
    """
    study = assumed.study
    outlook = Outlook(assumed.plan)
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
    """State the effects of half of ε, more participants and more hospitals on the first number."""
    first = expected[0]
    epsilon = assumed.study.privacy.epsilon
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
    now = first.value
    then = point.expected[0].value
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
    """Add the charges of studies to every hospital's ledger, with a number of runs a year.

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
    found = []
    most = mu_of(limit, delta)
    for site in dict.fromkeys(site for plan in plans for site in plan.study.sites):
        mine = [p.site_loss(p.study.sites.index(site)) for p in plans if site in p.study.sites]
        yearly = math.sqrt(runs) * math.hypot(*mine)
        losses = [math.sqrt(year) * yearly for year in range(1, years + 1)]
        over = [year for year, mu in enumerate(losses, start=1) if mu > most]
        epsilons = tuple(epsilon_of(mu, delta) for mu in losses)
        found.append(ProjectedAccount(site, epsilons, over[0] if over else 0))
    return tuple(found)


@dataclass(frozen=True)
class ProjectedLedgers:
    """Charges of planned studies to every hospital's ledger, projected over years."""

    accounts: tuple[ProjectedAccount, ...]
    runs: int
    """Runs of each study a year."""
    limit: float
    """ε that a hospital allows in all."""
    delta: float


def design_studies(
    folder: Path, assumed: Sequence[Assumed], runs: int, years: int
) -> tuple[Path, tuple[StudyDesign, ...]]:
    """Forecast studies, and write page and JSON; a hospital's limit is the default policy's.

    Raises StudyError if the studies protect different units. Raises ConsortiumError if one can't be
    planned, or the folder can't be written.
    """
    units = {each.study.privacy.unit for each in assumed}
    if len(units) > 1:
        raise StudyError(
            "The studies protect different units, whose accounts are kept apart. Design those of "
            "one unit together."
        )
    designs = tuple(design(each) for each in assumed)
    policy = Policy()
    limit = policy.allowance(units.pop()).total
    plans = [each.outlook.plan for each in designs]
    found = project_accounts(plans, runs, years, limit, policy.delta)
    page, _ = write_design(folder, designs, ProjectedLedgers(found, runs, limit, policy.delta))
    return page, designs


def write_design(
    folder: Path, designs: Sequence[StudyDesign], ledger: ProjectedLedgers
) -> tuple[Path, Path]:
    """Write ``design.html`` and ``design.json``, only from public numbers.

    Raises OutputError if the folder can't be written.
    """
    content = {"studies": [_study(each) for each in designs], "ledger": _ledger(ledger)}
    environment = plain_environment("consortium.report")
    environment.filters["cell"] = cell_text
    text = environment.get_template("design.html.j2").render(
        designs=designs,
        draw_curves=draw_curves,
        ledger=ledger,
        years=len(ledger.accounts[0].epsilons),
    )
    return (
        write_text(folder / "design.html", text),
        write_json(folder / "design.json", content),
    )


def draw_curves(found: StudyDesign) -> Picture:
    """Draw a design's first forecast over ε, participants and hospitals, with its range."""
    reached = found.outlook.expected[0].name
    figure = Figure(figsize=SIZE, dpi=DOTS, layout="constrained")
    curves = {name: [p for p in points if p.expected] for name, points in found.curves.items()}
    curves = {name: points for name, points in curves.items() if len(points) > 1}
    axes = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for place, (name, points) in zip(axes, curves.items(), strict=True):
        at = [point.at for point in points]
        first = [point.expected[0] for point in points]
        place.plot(at, [each.value for each in first], "o-", color="#0b5c6b", markersize=4)
        if any(each.bounded for each in first):
            low, high = (np.array([getattr(e, end) for e in first]) for end in ("low", "high"))
            place.fill_between(at, low, high, color="#0b5c6b", alpha=0.15, linewidth=0)
        now = _now(found, name)
        place.axvline(now, color="#b3272d", linewidth=1, linestyle="--")
        place.set_xlabel(_AXES[name], fontsize=8)
        place.set_xscale("log", base=2)
        place.set_xticks(at, [f"{each:,.4g}" for each in at], fontsize=7)
        place.minorticks_off()
        place.tick_params(axis="y", labelsize=7)
        place.grid(alpha=0.3)
    axes[0].set_ylabel(_wrapped(reached), fontsize=8)
    said = "; ".join(f"over {_AXES[name]} {_path(points)}" for name, points in curves.items())
    return to_picture(figure, f"{reached}: {said}")


def _now(found: StudyDesign, curve: str) -> float:
    study = found.assumed.study
    whole = {
        "epsilon": study.privacy.epsilon,
        "persons": sum(found.assumed.subjects),
        "hospitals": len(study.sites),
    }
    return float(whole[curve])


def _path(points: Sequence[Point]) -> str:
    first = points[0]
    last = points[-1]
    ends = (first.expected[0].value, last.expected[0].value)
    return f"from {number(ends[0])} at {first.at:,.4g} to {number(ends[1])} at {last.at:,.4g}"


def _wrapped(text: str) -> str:
    """Break a long name into lines."""
    words = text.split()
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 26:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _study(found: StudyDesign) -> dict[str, Any]:
    study = found.assumed.study
    outlook = found.outlook
    return {
        "study": study.study,
        "digest": study.digest,
        "analysis": study.algorithm,
        "sites": dict(zip(study.sites, found.assumed.subjects, strict=True)),
        "volumes": found.assumed.volumes,
        "epsilon": outlook.plan.epsilon,
        "delta": study.privacy.delta,
        "unit": study.privacy.unit,
        "forecast": bool(outlook.forecast),
        "expected": [each.as_json() for each in outlook.expected],
        "curves": {
            name: [{"at": at, "expected": [e.as_json() for e in near]} for at, near in points]
            for name, points in found.curves.items()
        },
        "sentences": list(found.sentences),
        "not_foretold": outlook.withheld,
        "remarks": list(outlook.remarks),
    }


def _ledger(ledger: ProjectedLedgers) -> dict[str, Any]:
    return {
        "runs_a_year": ledger.runs,
        "limit": ledger.limit,
        "delta": ledger.delta,
        "sites": {
            account.site: {
                "epsilon_after_year": [e if math.isfinite(e) else None for e in account.epsilons],
                "first_year_over_limit": account.full or None,
            }
            for account in ledger.accounts
        },
    }
