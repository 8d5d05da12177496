"""From a plan and the rounds that took place to the privacy report: exact, and nothing unsaid."""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version

import numpy as np

from consortium import __version__
from consortium.engine.session import Round, count_units
from consortium.privacy.cross_check import cross_check
from consortium.privacy.gdp import compose, epsilon_of, person_loss
from consortium.privacy.mechanism import Mechanism
from consortium.privacy.noise import SAMPLER
from consortium.report.privacy_report import (
    CrossCheckRecord,
    GraphRecord,
    Guarantee,
    Guarantees,
    Person,
    PrivacyReport,
    ReleaseRecord,
    SiteRecord,
)
from consortium.study.plan import Plan, Stage


def account(
    plan: Plan, rounds: Sequence[Round], volumes: int, sampler: str | None = None
) -> PrivacyReport:
    """Compute the privacy report's losses for every release of a run.

    Parameters
    ----------
    volumes : int
        T, maximum number of volumes of one participant: factor of a timepoint's guarantee.
    sampler : str, optional
        Where the noise came from, if not from the exact sampler with secret keys.
    """
    privacy = plan.study.privacy
    losses = Losses(plan, rounds)
    return PrivacyReport(
        study=plan.study.study,
        unit=privacy.unit,
        scheme=privacy.scheme,
        boost=privacy.boost,
        open_vectors=plan.study.verification.open,
        sampler=sampler or SAMPLER,
        colluding_sites=privacy.colluding_sites,
        delta=privacy.delta,
        graph=GraphRecord(**asdict(plan.masking)) if plan.masking.holders else None,
        promised=Guarantee(epsilon=privacy.epsilon, mu=plan.promised_mu),
        guarantees=Guarantees(
            coalition=_guarantee(losses.worst, plan.delta),
            outsider=_guarantee(max(map(compose, losses.outsider)), plan.outsider_delta),
        ),
        person=_person(plan, losses.worst, volumes),
        sites=_sites(plan, rounds, losses.totals),
        releases=tuple(_release(plan, done) for done in rounds),
        public=plan.study.analysis.declared,
        cross_check=_cross_check(losses.costliest, plan.delta),
        versions={
            "cape-consortium": __version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "cryptography": version("cryptography"),
        },
    )


class Losses:
    """Privacy losses μ of every round (columns) for every site (rows), for the report.

    A site that is not in a round's sum is charged the planned loss: its message may have been seen,
    also by outsiders if open vectors are public or its answer was readable for neighbours.
    """

    def __init__(self, plan: Plan, rounds: Sequence[Round]) -> None:
        sites = plan.study.sites
        self.coalition: list[list[float]] = [[] for _ in sites]
        self.outsider: list[list[float]] = [[] for _ in sites]
        for done in rounds:
            self._add(plan.stage(done.stage), done.survivors)

    def _add(self, stage: Stage, present: Sequence[int]) -> None:
        mechanism = stage.mechanism
        open_ = bool(stage.release.neighbours)
        near = dict(zip(present, mechanism.coalition(present), strict=True))
        far = dict(zip(present, mechanism.outsider(present), strict=True))
        planned = mechanism.coalition()
        read = mechanism.outsider() if mechanism.public or open_ else np.zeros(len(planned))
        for site, (coalition, outsider) in enumerate(zip(planned, read, strict=True)):
            self.coalition[site].append(float(near.get(site, coalition)))
            self.outsider[site].append(float(far.get(site, outsider)))

    @cached_property
    def totals(self) -> list[float]:
        """Loss of every site, over all rounds."""
        return [compose(row) for row in self.coalition]

    @property
    def worst(self) -> float:
        """The largest of `totals`."""
        return max(self.totals)

    @property
    def costliest(self) -> list[float]:
        """Loss of the site that lost most, by round."""
        return self.coalition[self.totals.index(self.worst)]


def _person(plan: Plan, worst: float, volumes: int) -> Person:
    mu = worst if plan.study.privacy.unit == "subject" else person_loss(worst, volumes)
    return Person(epsilon_coalition=epsilon_of(mu, plan.delta), mu_coalition=mu, volumes=volumes)


def _sites(plan: Plan, rounds: Sequence[Round], totals: Sequence[float]) -> tuple[SiteRecord, ...]:
    counts = count_units(plan, rounds)
    return tuple(
        SiteRecord(
            name=name,
            nominal=nominal,
            units=round(units),
            units_deviation=counts.deviation,
            answered=sum(site in done.survivors for done in rounds),
            mu_coalition=totals[site],
        )
        for site, (name, nominal, units) in enumerate(
            zip(plan.study.sites, plan.shape.units, counts.estimate, strict=True)
        )
    )


def _cross_check(losses: Sequence[float], delta: float) -> CrossCheckRecord:
    found = cross_check([mu for mu in losses if mu > 0], delta)
    return CrossCheckRecord(
        library=found.library, version=found.version, epsilon_coalition=found.epsilon
    )


def _release(plan: Plan, done: Round) -> ReleaseRecord:
    stage = plan.stage(done.stage)
    mechanism = stage.mechanism
    noise = stage.mechanism.noise
    weights = mechanism.weights
    return ReleaseRecord(
        stage=stage.name,
        round=done.number,
        statistic=stage.release.statistic,
        entries=mechanism.entries,
        bound=mechanism.bound.norm,
        sensitivity=_own(mechanism.sensitivities, weights),
        weights=weights,
        sigma_correlated=_own(noise.correlated, weights),
        sigma_local=_own(noise.local, weights),
        sigma_aggregate=_spread(mechanism, done.survivors),
        mu_coalition=float(mechanism.coalition(done.survivors).max()),
        mu_outsider=float(mechanism.outsider(done.survivors).max()),
        survivors=tuple(plan.study.sites[s] for s in done.survivors),
    )


def _spread(mechanism: Mechanism, survivors: Sequence[int]) -> float:
    """Return the standard deviation of the released noise: the sum's, or the noisiest answer's."""
    if not mechanism.each:
        return mechanism.noise.aggregate(survivors)
    return max(mechanism.noise.local[s] / mechanism.weights[s] for s in survivors)


def _own(values: Sequence[float], weights: Sequence[float]) -> float | tuple[float, ...]:
    """Convert from the aggregator's units to the sites' own; one number if all are equal."""
    own = tuple(value / weight for value, weight in zip(values, weights, strict=True))
    return own[0] if len(set(own)) == 1 else own


def _guarantee(mu: float, delta: float) -> Guarantee:
    return Guarantee(epsilon=epsilon_of(mu, delta), mu=mu)
