"""From a plan and the rounds that took place to the privacy report: exact, and nothing unsaid."""

import platform
from collections.abc import Sequence
from importlib.metadata import version

from consortium import __version__
from consortium.engine.session import Round
from consortium.privacy.accountant import person_loss
from consortium.privacy.cross_check import cross_check
from consortium.privacy.gdp import compose, epsilon_of
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
from consortium.study.masking import Masking
from consortium.study.plan import Plan

_DECLARED = {
    "groups": "how many participants of each group each site has, as the study file states it",
    "site_means": "sites' means that the study file declares: the promise holds with declared "
    "numbers held constant",
}
"""What a study's analysis makes public by stating it."""


def account(
    plan: Plan, rounds: Sequence[Round], volumes: int, sampler: str | None = None
) -> PrivacyReport:
    """Account for every release of a run.

    Parameters
    ----------
    volumes : int
        T, most volumes of one person: what a timepoint's guarantee is multiplied by.
    sampler : str, optional
        Where the noise came from, if not from the exact sampler with secret keys.
    """
    privacy, sites = plan.study.privacy, plan.study.sites
    coalition, outsider = _losses(plan, rounds)
    totals = [compose(column) for column in coalition]
    worst = max(totals)
    seen = max(compose(column) for column in outsider)
    costliest = coalition[totals.index(worst)]
    checked = cross_check([mu for mu in costliest if mu > 0], plan.delta)
    person = worst if privacy.unit == "subject" else person_loss(worst, volumes)
    answered = [sum(s in done.survivors for done in rounds) for s in range(len(sites))]
    return PrivacyReport(
        study=plan.study.study,
        unit=privacy.unit,
        scheme=privacy.scheme,
        boost=privacy.boost,
        open_vectors=plan.study.verification.open,
        sampler=sampler or SAMPLER,
        colluding_sites=privacy.colluding_sites,
        delta=privacy.delta,
        graph=_graph(plan.masking),
        promised=Guarantee(epsilon=privacy.epsilon, mu=plan.promised_mu),
        guarantees=Guarantees(
            coalition=_guarantee(worst, plan.delta), outsider=_guarantee(seen, plan.outsider_delta)
        ),
        person=Person(
            epsilon_coalition=epsilon_of(person, plan.delta),
            mu_coalition=person,
            volumes=volumes,
        ),
        sites=tuple(
            SiteRecord(name=name, units=units, answered=count, mu_coalition=total)
            for name, units, count, total in zip(
                sites, plan.shape.units, answered, totals, strict=True
            )
        ),
        releases=tuple(_release(plan, done) for done in rounds),
        public=tuple(t for name, t in _DECLARED.items() if getattr(plan.study.analysis, name, 0)),
        cross_check=CrossCheckRecord(
            library=checked.library, version=checked.version, epsilon_coalition=checked.epsilon
        ),
        versions={
            "cape-consortium": __version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "cryptography": version("cryptography"),
        },
    )


def _losses(plan: Plan, rounds: Sequence[Round]) -> tuple[list[list[float]], list[list[float]]]:
    """μ of every round (columns) for every site (rows), against coalition and outsider.

    A site that is not in a round's sum is charged what was planned: its message may have been seen,
    by outsiders, too, if open vectors are public or its answer went to neighbours in the open.
    """
    count = len(plan.study.sites)
    coalition: list[list[float]] = [[] for _ in range(count)]
    outsider: list[list[float]] = [[] for _ in range(count)]
    for done in rounds:
        stage = plan.stage(done.stage)
        mechanism, open_ = stage.mechanism, bool(stage.release.neighbours)
        near = dict(zip(done.survivors, mechanism.coalition(done.survivors), strict=True))
        far = dict(zip(done.survivors, mechanism.outsider(done.survivors), strict=True))
        planned = mechanism.coalition()
        read = mechanism.outsider() if mechanism.public or open_ else [0.0] * count
        for site in range(count):
            coalition[site].append(float(near.get(site, planned[site])))
            outsider[site].append(float(far.get(site, read[site])))
    return coalition, outsider


def _release(plan: Plan, done: Round) -> ReleaseRecord:
    stage = plan.stage(done.stage)
    mechanism, noise = stage.mechanism, stage.mechanism.noise
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
    """Standard deviation of the released noise: of the sum's, or of the noisiest answer's."""
    if not mechanism.each:
        return mechanism.noise.aggregate(survivors)
    return max(mechanism.noise.local[s] / mechanism.weights[s] for s in survivors)


def _own(values: Sequence[float], weights: Sequence[float]) -> float | tuple[float, ...]:
    """From the aggregator's units to the sites' own; one number if all are alike."""
    own = tuple(value / weight for value, weight in zip(values, weights, strict=True))
    return own[0] if len(set(own)) == 1 else own


def _graph(masking: Masking) -> GraphRecord | None:
    if not masking.holders:
        return None
    return GraphRecord(
        holders=masking.holders,
        threshold=masking.threshold,
        hidden=masking.hidden,
        failure=masking.failure,
    )


def _guarantee(mu: float, delta: float) -> Guarantee:
    return Guarantee(epsilon=epsilon_of(mu, delta), mu=mu)
