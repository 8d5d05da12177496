"""A design as a page and as JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from consortium.base.atomic import write_json, write_text
from consortium.base.formatting import number
from consortium.coordinator.design import (
    Assumed,
    Point,
    ProjectedAccount,
    StudyDesign,
    design,
    project_accounts,
)
from consortium.errors import StudyError
from consortium.report.pictures import DOTS, SIZE, Picture, to_picture
from consortium.report.tables import cell_text
from consortium.report.templating import plain_environment
from site_agent.policy.policy import Policy

_AXES = {
    "epsilon": "ε of the study",
    "persons": "participants in all",
    "hospitals": "hospitals",
}


@dataclass(frozen=True)
class ProjectedLedgers:
    """What studies do to every hospital's ledger."""

    accounts: tuple[ProjectedAccount, ...]
    runs: int
    """Of each study a year."""
    limit: float
    """ε that a hospital allows in all."""
    delta: float


def design_studies(
    folder: Path, assumed: Sequence[Assumed], runs: int, years: int
) -> tuple[Path, tuple[StudyDesign, ...]]:
    """Foretell studies, and write page and JSON; a hospital's limit is the usual policy's.

    Raises StudyError if the studies protect different units. Raises ConsortiumError if one can't be
    planned, or the folder can't be written.
    """
    units = {each.study.privacy.unit for each in assumed}
    if len(units) > 1:
        raise StudyError(
            "The studies protect different units, whose accounts are kept apart; design those of "
            "one unit together."
        )
    designs, policy = tuple(design(each) for each in assumed), Policy()
    limit, plans = policy.allowance(units.pop()).total, [each.outlook.plan for each in designs]
    found = project_accounts(plans, runs, years, limit, policy.delta)
    page, _ = write_design(folder, designs, ProjectedLedgers(found, runs, limit, policy.delta))
    return page, designs


def write_design(
    folder: Path, designs: Sequence[StudyDesign], ledger: ProjectedLedgers
) -> tuple[Path, Path]:
    """Write ``design.html`` and ``design.json``, from public numbers alone.

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
    """Draw the first expectation over ε, persons and hospitals, with its range."""
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
    first, last = points[0], points[-1]
    ends = (first.expected[0].value, last.expected[0].value)
    return f"from {number(ends[0])} at {first.at:,.4g} to {number(ends[1])} at {last.at:,.4g}"


def _wrapped(text: str) -> str:
    """A long name on lines of its own."""
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 26:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _study(found: StudyDesign) -> dict[str, Any]:
    study, outlook = found.assumed.study, found.outlook
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
