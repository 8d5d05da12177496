"""The plan of a study, computed before any data are read.

A plan is a pure function of the study file, with its nominal numbers of participants. So the centre
and every site compute the same plan, and no party must trust another. The budget, as μ², is split
over the stages by their shares and equally over a stage's rounds.

All parties must have the same plan as whole numbers before the first round. Floating-point numbers
may differ in their last digits between processors. Sizes, grids and noise, in whole steps of the
grid, may not, or a site's noise would differ from the plan. For numbers that a plan searches, draws
or solves for, about six digits are compared, which detects a party whose libraries find others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from consortium.algorithms import REGISTRY, AnalysisPlan
from consortium.algorithms.base import Extent, PlannedRelease, Shape
from consortium.base.array import Array
from consortium.errors import BudgetError, ConsortiumError, PrivacyError, StudyError
from consortium.privacy.gdp import Budget, compose, epsilon_of, mu_of
from consortium.privacy.loss import Floats
from consortium.privacy.mechanism import Mechanism, Sharing, plan_mechanism
from consortium.secagg.crypto import digest
from consortium.secagg.packing import packed_bytes
from consortium.study.masking import Masking, delta_left, plan_masking
from consortium.study.nominal import stated_participants
from consortium.study.spec import Study

_LARGEST = 1e30
"""Of clipping bounds: squares of squares still fit a double."""
_LABEL = "consortium plan 6"


@dataclass(frozen=True)
class Stage:
    """Planned rounds of one statistic, with equal noise."""

    release: PlannedRelease
    mechanism: Mechanism

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.release.stage

    @property
    def message_bytes(self) -> int:
        """Bytes of a site's contribution to one round, without envelope."""
        mechanism = self.mechanism
        vectors = (mechanism.masked_entries > 0) + (mechanism.opened_entries > 0)
        return vectors * packed_bytes(mechanism.entries, mechanism.lattice.bits)

    def released_bytes(self, sites: int) -> int:
        """Return the bytes of a round's release over ``sites`` sites, not packed."""
        return self.mechanism.released(sites) * self.mechanism.lattice.dtype.itemsize

    @property
    def heard(self) -> int:
        """Maximum number of neighbours' answers in one manifest: twice those of a round."""
        return 2 * max(map(len, self.release.neighbours), default=0)


@dataclass(frozen=True)
class Plan:
    """Everything that is fixed before the first round."""

    study: Study
    shape: Shape
    stages: tuple[Stage, ...]

    @property
    def rounds(self) -> int:
        """Most rounds that the study can have."""
        return sum(stage.release.rounds for stage in self.stages)

    @property
    def minimum(self) -> int:
        """Fewest sites that a round may end with."""
        return len(self.study.sites) - self.study.privacy.dropouts

    @cached_property
    def analysis(self) -> AnalysisPlan[Any]:
        """The analysis, with the quantities that follow from parameters and sizes."""
        return REGISTRY[self.study.algorithm](self.study.analysis, self.shape)

    @cached_property
    def losses(self) -> tuple[tuple[float, ...], ...]:
        """Planned μ of each round (rows) for each site, against the worst coalition."""
        return self._by_round(lambda mechanism: mechanism.coalition())

    @cached_property
    def outsider_losses(self) -> tuple[tuple[float, ...], ...]:
        """Planned μ of each round (rows) for each site, against a reader of the releases."""
        return self._by_round(lambda mechanism: mechanism.outsider())

    def _by_round(self, loss: Callable[[Mechanism], Floats]) -> tuple[tuple[float, ...], ...]:
        rows: list[tuple[float, ...]] = []
        for stage in self.stages:
            row = tuple(float(mu) for mu in loss(stage.mechanism))
            rows += [row] * stage.release.rounds
        return tuple(rows)

    def site_loss(self, site: int) -> float:
        """Return the largest μ of the whole study for one site."""
        return compose(row[site] for row in self.losses)

    @property
    def promised_mu(self) -> float:
        """μ that the study file allows; infinite without privacy."""
        return promised_mu(self.study)

    @property
    def mu(self) -> float:
        """μ of the whole study for the worst site, at the worst."""
        return max(self.site_loss(site) for site in range(len(self.study.sites)))

    @property
    def epsilon(self) -> float:
        """ε against the coalition at the study's δ."""
        return epsilon_of(self.mu, self.delta)

    @cached_property
    def masking(self) -> Masking:
        """Graph of masks."""
        return plan_masking(self.study)

    @property
    def delta(self) -> float:
        """The study's δ without the graph's failure: what μ is turned into ε at."""
        return self.study.privacy.delta - self.masking.failure

    @property
    def outsider_epsilon(self) -> float:
        """ε of the whole study at `outsider_delta`, for the worst site."""
        return epsilon_of(self.outsider_mu, self.outsider_delta)

    @property
    def outsider_delta(self) -> float:
        """δ of the guarantee against outsiders.

        A graph's failure reveals sums over a few sites. An outsider learns more from them than from
        the release only if single vectors are public.
        """
        return self.delta if self.study.verification.open else self.study.privacy.delta

    def site_outsider_loss(self, site: int) -> float:
        """Return μ of the whole study for one site against outsiders, who see only the releases."""
        return compose(row[site] for row in self.outsider_losses)

    @property
    def outsider_mu(self) -> float:
        """μ of the whole study for the worst site against outsiders, who see only the releases."""
        return max(self.site_outsider_loss(site) for site in range(len(self.study.sites)))

    def stage(self, name: str) -> Stage:
        """Look a stage up by name; raises PrivacyError if the plan has no such stage."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise PrivacyError(
            f"A release must be in the plan, and the plan has no stage '{name}'. Refuse the "
            "release."
        )


def nominal_shape(study: Study, extent: Extent) -> Shape:
    """Return the nominal numbers of participants and volumes that a study states.

    Raises StudyError if it states none.
    """
    participants = stated_participants(study, f"study '{study.study}'")
    length = 1 if study.features else study.volumes or study.data.volumes
    if length is None:
        raise StudyError(
            "field 'volumes': the nominal number of volumes of a participant is required. Add for "
            "example the line 'volumes: 200'."
        )
    subjects = [participants[site] for site in study.sites]
    return extent.shape(subjects, [length * many for many in subjects], study.privacy.unit)


def promised_mu(study: Study) -> float:
    """Return μ of a study's ε and δ (less a graph's failure); infinite for the scheme ``none``."""
    privacy = study.privacy
    return math.inf if privacy.scheme == "none" else mu_of(privacy.epsilon, delta_left(study))


def make_plan(study: Study, shape: Shape, *, agreed: bool = False) -> Plan:
    """Return the plan of a study, before any data are read.

    Raises StudyError if the parameters don't fit the data's sizes or the number of drop-outs is
    unsafe, or a study that is not agreed is expected to find nothing. Raises BudgetError if the
    releases can't be made within the stated ε.

    Parameters
    ----------
    agreed : bool
        Whether all parties have agreed to it: then it is carried out, whatever its forecast.
    """
    if len(shape.units) != len(study.sites):
        raise StudyError(
            f"Every site must state its number of participants, and {len(shape.units)} of "
            f"{len(study.sites)} did. Wait for the others, or correct the study's list of sites."
        )
    shape = replace(shape, sites=study.sites, labels=_entry_labels(study, shape))
    plan_masking(study.started_with(study.sites[: study.fewest]))
    masking = plan_masking(study)
    limit = promised_mu(study)
    sharing = _sharing(study, masking.hidden)
    noise = _whole_noise(study, sharing, limit)
    shape = replace(shape, noise=noise, alone=1.0 / limit if noise else 0.0)
    stages = []
    budget = Budget(limit)
    for release in planned_releases(study, shape, agreed=agreed):
        stage = _plan_stage(study, shape, release, sharing, limit)
        stages.append(stage)
        for number in range(release.rounds if math.isfinite(limit) else 0):
            mu = float(stage.mechanism.coalition().max())
            budget = budget.charge(mu, f"{study.study}: round {number + 1} of '{stage.name}'")
    return Plan(study, shape, tuple(stages))


def _sharing(study: Study, hidden: int) -> Sharing:
    privacy = study.privacy
    return Sharing(
        scheme=privacy.scheme,
        colluding=privacy.colluding_sites,
        dropouts=privacy.dropouts,
        hidden=hidden,
        boost=privacy.boost,
        public=study.verification.open,
    )


def _whole_noise(study: Study, sharing: Sharing, limit: float) -> float:
    """Return noise over sensitivity of one release with the whole budget, over equal sites."""
    if not math.isfinite(limit):
        return 0.0
    try:
        noise = sharing.noise((1.0,) * len(study.sites), limit)
    except PrivacyError as error:
        raise BudgetError(
            f"field 'privacy.epsilon': must be larger than {study.privacy.epsilon}, for which no "
            "noise can be computed. Raise it."
        ) from error
    return float(noise.aggregate())


def _entry_labels(study: Study, shape: Shape) -> tuple[str, ...]:
    """Return the names that the study gives to entries; empty where it gives none."""
    sizes = dict(shape.views)
    found = list[str]()
    for view in study.features:
        own = view.names_of(sizes[view.name])
        found += own if len(own) == sizes[view.name] else ("",) * sizes[view.name]
    return tuple(found)


def count_rounds(study: Study, extent: Extent) -> int:
    """Return the maximum number of rounds of a study, those that it has without noise."""
    ones = (1,) * len(study.sites)
    shape = replace(extent.shape(ones, ones, study.privacy.unit), sites=study.sites)
    return sum(release.rounds for release in planned_releases(study, shape))


def with_fewest(plan: Plan) -> Plan | None:
    """Return the plan with the fewest sites that may answer, those with fewest participants.

    Raises StudyError if nothing is expected to be seen then.

    Returns
    -------
    Plan or None
        None if all sites must answer, or fewer can't be planned by themselves.
    """
    study = plan.study
    shape = plan.shape
    left = study.fewest - study.privacy.dropouts
    if left >= len(study.sites):
        return None
    kept = sorted(sorted(range(len(study.sites)), key=lambda s: shape.units[s])[:left])
    subjects = tuple(shape.subjects[s] for s in kept)
    samples = tuple(shape.samples[s] for s in kept)
    sites = tuple(study.sites[s] for s in kept)
    privacy = study.privacy.model_copy(update={"dropouts": 0})
    fewer = study.model_copy(update={"sites": sites, "quorum": None, "privacy": privacy})
    try:
        found = make_plan(fewer, replace(shape, subjects=subjects, samples=samples), agreed=True)
    except ConsortiumError:
        return None
    try:
        found.analysis.refuse_hopeless()
    except StudyError as error:
        who = " and ".join(found.study.sites)
        raise StudyError(
            f"{error} This is the case if only {who} answer, which the study's quorum allows."
        ) from error
    return found


def planned_releases(
    study: Study, shape: Shape, *, agreed: bool = False
) -> tuple[PlannedRelease, ...]:
    """Return every release that a study's analysis may make.

    Raises StudyError if the parameters don't fit the sizes, or are too small or large to be
    computed with.
    """
    try:
        analysis = REGISTRY[study.algorithm](study.analysis, shape)
        releases = analysis.releases if agreed else analysis.planned()
    except ArithmeticError as error:
        raise _out_of_range(study) from error
    for release in releases:
        if not all(
            1 / _LARGEST <= b <= _LARGEST for b in (release.bound.norm, release.bound.spread)
        ):
            raise _out_of_range(study)
    return releases


def _out_of_range(study: Study) -> StudyError:
    return StudyError(
        f"field 'analysis': {study.algorithm} requires every bound, and numbers computed from it, "
        f"to be between {1 / _LARGEST:g} and {_LARGEST:g}, and one of them is not. Correct the "
        "bounds."
    )


def _plan_stage(
    study: Study, shape: Shape, release: PlannedRelease, sharing: Sharing, limit: float
) -> Stage:
    target = limit * math.sqrt(release.share / release.rounds)
    try:
        mechanism = plan_mechanism(
            sharing,
            entries=release.entries,
            bound=release.bound,
            units=shape.units,
            target=target if math.isfinite(target) else 1.0,
            each=release.released == "each",
            sums=not release.neighbours,
        )
    except BudgetError:
        raise
    except PrivacyError as error:
        raise BudgetError(
            f"field 'privacy.epsilon': must be larger than {study.privacy.epsilon} for "
            f"{release.rounds} rounds of '{release.stage}' over {sum(shape.units)} units "
            f"({str(error).rstrip('.')}). Raise epsilon, reduce the rounds, or add participants."
        ) from error
    return Stage(release, mechanism)


def plan_integers(plan: Plan) -> dict[str, Any]:
    """Return all numbers and names that decide a run's noise and sums, as integers."""
    privacy = plan.study.privacy
    masking = plan.masking
    return {
        "units": list(plan.shape.units),
        "colluding": privacy.colluding_sites,
        "dropouts": privacy.dropouts,
        "hidden": masking.hidden,
        "holders": masking.holders,
        "threshold": masking.threshold,
        "stages": [_stage(stage) for stage in plan.stages],
        "computed": {name: _digits(value) for name, value in plan.analysis.computed.items()},
    }


def _digits(value: Array | float) -> tuple[str, str]:
    """Return six digits of the sum of all magnitudes, and of a part that differs by array."""
    numbers = np.ravel(value)
    whole = float(np.abs(numbers).sum())
    part = float(numbers @ np.cos(np.arange(numbers.size))) / whole if whole else 0.0
    return f"{whole:.5e}", f"{round(part, 5) + 0.0:.5f}"


def _stage(stage: Stage) -> dict[str, Any]:
    mechanism = stage.mechanism
    return {
        "stage": stage.name,
        "statistic": stage.release.statistic,
        "rounds": stage.release.rounds,
        "scheme": mechanism.scheme,
        "exact": mechanism.exact,
        "each": mechanism.each,
        "entries": mechanism.entries,
        "bits": mechanism.lattice.bits,
        "log2_step": round(math.log2(mechanism.lattice.step)),
        "dropped": mechanism.lattice.dropped,
        "correlated": list(mechanism.correlated),
        "local": list(mechanism.local),
    }


def plan_digest(plan: Plan) -> bytes:
    """Return 32 bytes that are equal for two plans if and only if `plan_integers` are."""
    content = msgspec.json.encode(plan_integers(plan), order="sorted")
    return digest(_LABEL, plan.study.digest, content)
