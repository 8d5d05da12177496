"""An algorithm on its way: the pending query, and the rounds that led to it.

A session is a value of the plan and of the releases so far. Fed with the same
releases it asks the same queries, so a study resumes by replaying its rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from consortium.algorithms.base import Array, Query, Release, Result
from consortium.engine.unit_counts import UnitCounts
from consortium.errors import PrivacyError, ProtocolError
from consortium.privacy.gdp import Budget
from consortium.privacy.mechanism import Mechanism
from consortium.study.plan import Plan, Stage


@dataclass(frozen=True)
class Round:
    """A finished round: its query and its release."""

    number: int
    """1, 2, ..."""
    stage: str
    statistic: str
    survivors: tuple[int, ...]
    """Sites in the sum, as indices."""
    values: Array
    """The released values."""


class Session:
    """The centre's half of an algorithm, one round at a time.

    Raises PrivacyError if the algorithm's query is not in the plan.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rounds: list[Round] = []
        self.result: Result | None = None
        self.pending: Query | None = None
        self._budgets = [Budget(plan.promised_mu) for _ in plan.study.sites]
        self.counts = UnitCounts(plan.shape.units)
        self._run = plan.analysis.run()
        self._advance(None)

    @property
    def number(self) -> int:
        """Number of the pending round."""
        return len(self.rounds) + 1

    @property
    def stage(self) -> Stage:
        """Planned stage of the pending query."""
        if self.pending is None:
            raise ProtocolError("The analysis is finished and has no further round.")
        return self.plan.stage(self.pending.stage)

    def accept(self, values: Array, survivors: Sequence[int]) -> Round:
        """Pass the pending round's release to the algorithm, which makes the next query.

        Raises BudgetError if the release has too few sites for the guarantee. Raises PrivacyError
        if the algorithm's next query is not in the plan.

        Parameters
        ----------
        values : array
            As `Mechanism.release` returned it.
        survivors : sequence of int
            Sites in the sum.
        """
        stage = self.stage
        mechanism = self.stage.mechanism
        present = tuple(sorted(survivors))
        if mechanism.scheme != "none":
            self._charge(present, stage)
        done = Round(self.number, stage.name, stage.release.statistic, present, np.asarray(values))
        self.rounds.append(done)
        release = per_statistic_unit(mechanism, done.values, present, self.plan, self.counts)
        self._advance(release)
        return done

    def _charge(self, present: tuple[int, ...], stage: Stage) -> None:
        losses = stage.mechanism.coalition(present)
        charged = list(self._budgets)
        for site, mu in zip(present, losses, strict=True):
            what = f"{self.plan.study.sites[site]}: round {self.number} of '{stage.name}'"
            charged[site] = charged[site].charge(float(mu), what)
        self._budgets = charged

    def _advance(self, release: Release | None) -> None:
        try:
            self.pending = next(self._run) if release is None else self._run.send(release)
        except StopIteration as stop:
            self.pending = None
            self.result = stop.value
            return
        check_planned(self.plan, self.pending, [r.stage for r in self.rounds])


def per_statistic_unit(
    mechanism: Mechanism,
    values: Array,
    present: tuple[int, ...],
    plan: Plan,
    counts: UnitCounts,
) -> Release:
    """Turn a released sum over units into their mean, or each site's own sum into its own mean.

    Parameters
    ----------
    values : array
        As `Mechanism.release` returns it.
    present : tuple of int
        Sites in the sum, ascending.
    plan : Plan
        With the nominal numbers of units.
    counts : UnitCounts
        Of the releases before; those of this one are added.
    """
    nominal = np.array(plan.shape.units, dtype=np.float64)[list(present)]
    places = mechanism.places
    if mechanism.each:
        weights = np.array([mechanism.weights[s] for s in present])
        rows = np.stack(list(own_answers(mechanism, values, present).values()))
        levels = mechanism.deviations(present) / weights
        if places:
            for site, row, level, many in zip(present, rows, levels, nominal, strict=True):
                unit = many / mechanism.counted
                counts.add([site], [row[-1] * unit], float(level) * unit)
            rows = rows[:, :-1]
        units = counts.estimate
        parts = units[list(present)] / nominal if mechanism.sums else np.ones(len(present))
        return Release(
            rows / parts[:, None],
            float((levels / parts).max()),
            present,
            tuple(units.tolist()),
            counts.deviation,
        )
    share = sum(mechanism.weights[s] for s in present)
    level = mechanism.deviation(present) / share
    found = values / share
    if places:
        unit = float(nominal.sum()) / mechanism.counted
        counts.add(present, found[-places:][list(present)] * unit, level * unit)
        found = found[:-places]
    units = counts.estimate
    part = float(units[list(present)].sum() / nominal.sum()) if mechanism.sums else 1.0
    return Release(found / part, level / part, present, tuple(units.tolist()), counts.deviation)


def count_units(plan: Plan, rounds: Sequence[Round]) -> UnitCounts:
    """Estimate the numbers of units from all finished rounds of a run."""
    counts = UnitCounts(plan.shape.units)
    for done in rounds:
        mechanism = plan.stage(done.stage).mechanism
        per_statistic_unit(mechanism, done.values, done.survivors, plan, counts)
    return counts


def own_answers(mechanism: Mechanism, values: Array, present: Sequence[int]) -> dict[int, Array]:
    """Take a release of each site's own answer apart, in the statistic's units."""
    rows = values.reshape(len(present), mechanism.entries)
    return {s: row / mechanism.weights[s] for s, row in zip(present, rows, strict=True)}


def check_planned(plan: Plan, query: Query, before: Sequence[str]) -> Stage:
    """Return the planned stage that a query of the analysis belongs to.

    Raises PrivacyError if stage, statistic or the form of an argument is not planned, or the
    stage's rounds are used up.

    Parameters
    ----------
    query : Query
        Of its arrays only the shapes are looked at.
    before : sequence of str
        Stages of all earlier rounds.
    """
    stage = plan.stage(query.stage)
    if query.statistic != stage.release.statistic:
        raise PrivacyError(
            f"The query asks for '{query.statistic}' where stage '{query.stage}' plans "
            f"'{stage.release.statistic}'. Such a query is refused."
        )
    if before.count(query.stage) >= stage.release.rounds:
        raise PrivacyError(
            f"Stage '{query.stage}' has had its {stage.release.rounds} planned rounds, so "
            "a further query is refused."
        )
    found = {name: np.shape(value) for name, value in query.arguments.items()}
    due = stage.release.arguments
    for name in sorted(found.keys() | due.keys()):
        if found.get(name) != due.get(name):
            raise PrivacyError(
                f"The query's argument '{name[:40]}' is {found.get(name, 'missing')} where stage "
                f"'{stage.name}' plans {due.get(name, 'none')}. The query is refused."
            )
    return stage
