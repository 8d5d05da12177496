"""The outlook of a plan: its guarantees, its releases and its forecast.

The terminal, JSON, the design page, a site's approval, the data protection assessment and the
Python package agree about a plan, since they all use this value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

from consortium.algorithms.base import Expectation, Table
from consortium.base.formatting import count, number
from consortium.privacy.gdp import TWO_READERS
from consortium.study.plan import Plan, with_fewest
from consortium.study.spec import how_checked

HEADS = ("stage", "statistic", "rounds", "numbers", "bound per unit", "noise σ, total")
"""Of `Outlook.rows`."""


class StageOutlook(NamedTuple):
    """Fields of a stage's releases in ``consortium plan --json``."""

    stage: str
    statistic: str
    rounds: int
    entries: int
    bound: float
    sigma_aggregate: float
    bits: int
    message_bytes: int


@dataclass(frozen=True)
class Outlook:
    """Information about a plan before its approval."""

    plan: Plan

    @cached_property
    def stages(self) -> tuple[StageOutlook, ...]:
        """Releases of each stage."""
        return tuple(
            StageOutlook(
                stage=stage.name,
                statistic=stage.release.statistic,
                rounds=stage.release.rounds,
                entries=stage.release.entries,
                bound=stage.release.bound.norm,
                sigma_aggregate=stage.mechanism.noise.aggregate(),
                bits=stage.mechanism.lattice.bits,
                message_bytes=stage.message_bytes,
            )
            for stage in self.plan.stages
        )

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Return the releases of each stage, as text under `HEADS`."""
        for each in self.stages:
            counts = str(each.rounds), str(each.entries)
            yield each.stage, each.statistic, *counts, *map(number, each[4:6])

    @cached_property
    def forecast(self) -> tuple[Expectation, ...]:
        """Forecast of the analysis, the most important number first; may be empty."""
        return self.plan.analysis.expect()

    @cached_property
    def expected(self) -> tuple[Expectation, ...]:
        """The forecast, or without one the noise of a stage compared with the bound of a part."""
        return self.forecast or tuple(
            Expectation(
                f"noise in '{each.stage}' relative to one participant's bound",
                each.sigma_aggregate / each.bound,
                rises=False,
            )
            for each in self.stages
        )

    @cached_property
    def nearby(self) -> Table | None:
        """The full forecast, also of similar studies, or in sentences; may be missing."""
        return self.plan.analysis.foretell()

    @property
    def withheld(self) -> str:
        """Reason why the forecast is incomplete, in a sentence; empty if it is complete."""
        return self.plan.analysis.withheld()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What more becomes public, or is chosen, than the study file lets expect."""
        return self.plan.analysis.remarks()

    @cached_property
    def fewest(self) -> Outlook | None:
        """Forecast if only the fewest sites that may answer do so, those with fewest participants.

        None if all sites must answer, or if fewer can't be planned by themselves.

        Raises StudyError if nothing is expected to be seen then.
        """
        found = with_fewest(self.plan)
        return None if found is None else Outlook(found)

    @property
    def alone(self) -> bool:
        """Whether every round releases each site's own answer."""
        return all(stage.mechanism.each for stage in self.plan.stages)

    @property
    def checked(self) -> str:
        """Whether any party can check the result, in a sentence."""
        return how_checked(shown=self.plan.study.adds_again or self.alone)

    @property
    def verdict(self) -> str:
        """The most important number of a forecast, with its range, in a sentence; or empty."""
        if not self.forecast:
            return ""
        first, *others = self.forecast
        name = f"expected {first.name.removeprefix('expected ')}".capitalize()
        between = f" ({first.range})" if first.bounded else ""
        # Fewer that are found may agree better: the one number misleads without the other.
        found = [f"; {e.name}: {number(e.value)}" for e in others[:1] if e.name.endswith(" found")]
        return f"{name}: {number(first.value)}{between}{''.join(found)}."

    @property
    def price(self) -> str:
        """Maximum privacy loss of a participant in one run, in a sentence."""
        plan = self.plan
        privacy = self.plan.study.privacy
        unit = "participant" if privacy.unit == "subject" else "volume"
        return (
            f"One {unit}'s privacy loss: ε ≤ {number(plan.epsilon)} against the centre and "
            f"{count(privacy.colluding_sites, 'colluding site')}, {number(plan.outsider_epsilon)} "
            f"against outsiders (δ = {privacy.delta:g}). {TWO_READERS}"
        )

    def sentences(self) -> Iterator[str]:
        """Return the first sentences for a planner: findings, privacy loss and remarks."""
        verdict = self.verdict or self.withheld or "The findings have no forecast."
        fewest = self.fewest
        yield f"{verdict} {self.price}"
        if fewest is not None and self.forecast:
            who = ", ".join(fewest.plan.study.sites)
            yield f"If no more than {who} answer: {fewest.verdict}"
        yield from self.remarks
        if self.withheld not in ("", verdict):
            yield self.withheld

    def as_json(self) -> dict[str, Any]:
        """Return the output of ``consortium plan --json``."""
        plan = self.plan
        fewest = self.fewest
        nearby = self.nearby
        columns, rows = (nearby.columns, nearby.rows) if nearby else ((), ())
        return {
            "features": plan.shape.features,
            "rounds": plan.rounds,
            "unit": plan.shape.unit,
            "coalition": {"mu": plan.mu, "epsilon": plan.epsilon},
            "outsider": {"mu": plan.outsider_mu, "epsilon": plan.outsider_epsilon},
            "open_vectors": plan.study.verification.open,
            "checked": self.checked,
            "masks": asdict(plan.masking),
            "stages": [each._asdict() for each in self.stages],
            "expected": [each.as_json() for each in self.expected],
            "fewest": fewest
            and {
                "sites": list(fewest.plan.study.sites),
                "expected": [each.as_json() for each in fewest.expected],
            },
            "forecast": [dict(zip(columns, row, strict=True)) for row in rows],
            "remarks": list(self.remarks),
        }
