"""All sites in one process, through the same noise and the same secure aggregation.

Deterministic: every secret comes from the seed. It is for planning and for benchmarks. A simulation
gives no privacy protection, and its seed must never be used for a real run.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.algorithms.base import Array, Result, Shape, SiteData
from consortium.engine.neighbour_answers import answers_neighbours, collect_answers
from consortium.engine.queries import encode_query, query_context
from consortium.engine.session import Round, Session, own_answers
from consortium.errors import StudyError
from consortium.privacy.mechanism import HEADROOM
from consortium.privacy.noise import GaussianSampler
from consortium.secagg import CENTRE, Hub, Participants, Party
from consortium.study.plan import Plan, make_plan, nominal_shape
from consortium.study.spec import Study


class Simulation:
    """A consortium in memory.

    Parameters
    ----------
    data : sequence of SiteData
        One per site, in the study's order.
    """

    def __init__(self, study: Study, data: Sequence[SiteData], seed: int) -> None:
        self.plan: Plan = make_plan(study, shape_of(study, data))
        _check_sizes(self.plan, data)
        self.session = Session(self.plan)
        self._data = data
        self._seed = seed
        self._hub, self._parties = self._meet()

    def run(self, watch: Callable[[Round], None] = lambda _: None) -> Result:
        """Run all rounds; ``watch`` sees each one when it is finished."""
        while self.session.pending is not None:
            watch(self.step())
        assert self.session.result is not None  # noqa: S101 - nothing is pending
        return self.session.result

    def step(self) -> Round:
        """Run one round: statistics, noise, masks, unmasking, release."""
        session = self.session
        number = self.session.number
        assert session.pending is not None  # noqa: S101 - for the type checker
        stage = session.stage
        analysis = self.plan.analysis
        mechanism = stage.mechanism
        query = session.pending
        body, _ = encode_query(session.pending)
        context = query_context(self.plan, number, body)
        masked = mechanism.masked_entries
        opened = mechanism.opened_entries
        bits = mechanism.lattice.bits
        each = mechanism.each
        self._hub.open(number, context, masked, bits, opened, released=each)
        answers = self._told() if stage.release.neighbours else []
        for index, party in enumerate(self._parties):
            query = replace(query, site=index)
            if stage.release.neighbours:
                query = replace(
                    query, neighbour_answers=collect_answers(self.plan, stage, index, answers)
                )
            data = self._data[index]
            local = analysis.statistics[query.statistic]
            statistic = np.zeros(stage.release.entries)
            if data.units or not mechanism.sums:
                statistic = local(analysis, data, query, mechanism.bound)
            sampler = GaussianSampler(self._secret(f"noise {index} {number}"))
            part = data.units / self.plan.shape.units[index]
            share = mechanism.protect(index, statistic, sampler, part)
            self._hub.receive_contribution(
                party.contribute(
                    number,
                    context,
                    share.masked,
                    share.opened if opened else None,
                    bits=bits,
                    released=each,
                )
            )
        if masked:
            request = self._hub.request(number)
            for party in self._parties:
                self._hub.receive_unmasking(party.unmask(number, request))
        total = self._hub.sum(number)
        values = mechanism.release(total.sum, total.opened)
        return session.accept(values, range(len(self._parties)))

    def _told(self) -> list[Mapping[int, Array]]:
        """Return the sites' answers to their neighbours, by round."""
        rounds: list[Mapping[int, Array]] = []
        for done in self.session.rounds:
            stage = self.plan.stage(done.stage)
            if answers_neighbours(stage):
                rounds.append(own_answers(stage.mechanism, done.values, done.survivors))
        return rounds

    def _meet(self) -> tuple[Hub, list[Party]]:
        study = self.plan.study
        rounds = self.plan.rounds
        names = (*study.sites, CENTRE)
        keys = {n: Ed25519PrivateKey.from_private_bytes(self._secret(f"key {n}")) for n in names}
        public = {name: key.public_key().public_bytes_raw() for name, key in keys.items()}
        masking = self.plan.masking
        minimum = self.plan.minimum
        roster = Participants(study.sites, public, masking.threshold, minimum, masking.holders)
        run = f"simulation-{study.study}"
        secret = self._secret
        hub = Hub(
            run=run, roster=roster, rounds=rounds, identity=keys[CENTRE], secret=secret("hub")
        )
        parties = [
            Party(
                run=run,
                name=name,
                roster=roster,
                rounds=rounds,
                identity=keys[name],
                secret=secret(f"party {name}"),
            )
            for name in study.sites
        ]
        for party in parties:
            hub.setup.receive_advertisement(party.setup.advertise(b""))
        for party in parties:
            hub.setup.receive_share(party.setup.receive_keys(hub.setup.keys()))
        for party in parties:
            party.setup.receive_shares(hub.setup.shares(party.name))
        return hub, parties

    def _secret(self, purpose: str) -> bytes:
        return hashlib.sha256(f"simulation {self._seed} {purpose}".encode()).digest()


def _check_sizes(plan: Plan, data: Sequence[SiteData]) -> None:
    """Raise StudyError if a site has more units than a sum can contain."""
    for name, site, nominal in zip(plan.study.sites, data, plan.shape.units, strict=True):
        if site.units > HEADROOM * nominal:
            raise StudyError(
                f"field 'participants': at least half of the true number is required, and {name} "
                f"has {site.units} where {nominal} are stated. Raise the nominal number."
            )


def shape_of(study: Study, data: Sequence[SiteData]) -> Shape:
    """Return the nominal sizes that a study states; those of the data if it states none."""
    if study.participants is not None:
        lengths = [length for site in data for length in site.lengths]
        volumes = None if study.features else study.volumes or round(sum(lengths) / len(lengths))
        stated = study.model_copy(update={"volumes": volumes})
        return nominal_shape(stated, data[0].extent)
    return data[0].extent.shape(
        [len(site.lengths) for site in data],
        [sum(site.lengths) for site in data],
        study.privacy.unit,
    )
