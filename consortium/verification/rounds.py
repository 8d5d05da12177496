"""One round of a published run: its query, manifests and release, and its sum computed again.

The sum is computed from the messages on the exchange. It is exact and trusts no party.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from consortium.engine.closing import release_record
from consortium.engine.kept_round import Kept
from consortium.engine.names import QUERY, Names
from consortium.engine.queries import query_context, sketch_query
from consortium.errors import (
    AlteredError,
    ConsortiumError,
    ContradictionError,
    ExchangeError,
    ProtocolError,
)
from consortium.exchange.base import Exchange
from consortium.secagg import messages
from consortium.secagg.contribution import opened_digest
from consortium.secagg.keystream import Ring
from consortium.secagg.packing import pack
from consortium.secagg.release import (
    add_again,
    added,
    agrees,
    check_answered,
    check_seeds,
    read_release,
    ring_digests,
    signed_manifests,
)
from consortium.study.plan import Stage
from consortium.verification.agreement import RunAgreement
from consortium.verification.record import EvidenceRecord, evidence_path, round_file
from consortium.verification.verdict import Verdict


@dataclass(frozen=True)
class Released:
    """A round whose messages agree with each other."""

    kept: Kept
    """The round of the transcript."""
    stage: Stage
    query: bytes
    """The query."""
    release: messages.Release
    manifests: Mapping[str, messages.Manifest]
    """Manifest of each survivor."""
    record: bytes
    """ρ, SHA-256 of the release as it was posted."""

    @property
    def number(self) -> int:
        """1, 2, ..."""
        return self.kept.number

    @property
    def summed(self) -> bool:
        """Whether the released sum can be added again."""
        return self.stage.mechanism.shown

    @property
    def each(self) -> bool:
        """Whether each site's own answer was released and agrees with its signature."""
        return self.stage.mechanism.each


def read_round(record: EvidenceRecord, agreement: RunAgreement, kept: Kept) -> Released:
    """Hold a round's messages and numbers against each other.

    Raises ContradictionError at the first that doesn't fit.
    """
    number = kept.number
    query = record.message(round_file(number, QUERY), QUERY, number)
    message = record.file(round_file(number, messages.RELEASE))
    where = round_file(number, QUERY)
    try:
        stage = _stage(agreement, kept, query)
        where = round_file(number, messages.RELEASE)
        release = read_release(agreement.session, number, message)
        if query_context(agreement.plan, number, query) != release.context:
            raise ContradictionError(
                evidence_path(where), "it answers another question than the query."
            )
        manifests = _manifests(record, agreement, number, release, stage)
        where = round_file(number, messages.RELEASE)
        if stage.mechanism.shown:
            check_seeds(agreement.session, agreement.directory, number, release)
        elif release.seeds:
            raise ContradictionError(
                evidence_path(where), "it shows seeds of a sum that isn't released."
            )
    except ContradictionError:
        raise
    except ConsortiumError as error:
        raise ContradictionError(evidence_path(where), str(error)) from error
    _check_kept(agreement, kept, release, stage)
    if stage.mechanism.each:
        _check_rows(kept, manifests, release.context)
    return Released(
        kept=kept,
        stage=stage,
        query=query,
        release=release,
        manifests=manifests,
        record=release_record(message),
    )


def _stage(agreement: RunAgreement, kept: Kept, query: bytes) -> Stage:
    asked = sketch_query(query)
    if (asked.stage, asked.statistic) != (kept.stage, kept.statistic):
        raise ContradictionError(
            transcript_file(kept.number, "json"),
            f"says that '{kept.stage}' was asked where the query asks for '{asked.stage[:40]}'.",
        )
    return agreement.plan.stage(asked.stage)


def _manifests(
    record: EvidenceRecord,
    agreement: RunAgreement,
    number: int,
    release: messages.Release,
    stage: Stage,
) -> Mapping[str, messages.Manifest]:
    mechanism = stage.mechanism
    if not mechanism.masked_entries:
        return _told(agreement, number, release, stage)
    name = round_file(number, messages.UNMASK)
    data = record.file(name)
    try:
        request = check_answered(agreement.session, number, release, data)
        entries = mechanism.masked_entries
        bits = mechanism.lattice.bits
        clear = mechanism.public
        return signed_manifests(agreement.session, number, request, entries, bits, clear=clear)
    except ConsortiumError as error:
        raise ContradictionError(evidence_path(name), str(error)) from error


def _told(
    agreement: RunAgreement, number: int, release: messages.Release, stage: Stage
) -> Mapping[str, messages.Manifest]:
    """Return the manifests of a round without masks, which are part of its release."""
    request = messages.Request(release.context, release.survivors, release.lost, release.manifests)
    try:
        return signed_manifests(agreement.session, number, request, 0, stage.mechanism.lattice.bits)
    except ConsortiumError as error:
        where = evidence_path(round_file(number, messages.RELEASE))
        raise ContradictionError(where, str(error)) from error


def _check_rows(kept: Kept, manifests: Mapping[str, messages.Manifest], context: bytes) -> None:
    """Require that each released answer is the one that its site signed."""
    rows = kept.ring.reshape(len(manifests), -1)
    for row, (site, manifest) in zip(rows, manifests.items(), strict=True):
        if opened_digest(context, pack(row, manifest.bits).data) != manifest.opened:
            raise ContradictionError(
                transcript_file(kept.number, "npy"),
                f"the report of {site} in round {kept.number} differs from its signature.",
            )


def _check_kept(
    agreement: RunAgreement, kept: Kept, release: messages.Release, stage: Stage
) -> None:
    sites = agreement.context.study.sites
    inside = all(0 <= site < len(sites) for site in kept.survivors)
    names = tuple(sites[site] for site in kept.survivors) if inside else ()
    if names != release.survivors or kept.query != release.context:
        raise ContradictionError(
            transcript_file(kept.number, "json"),
            "its survivors or its query are not those of the round's release.",
        )
    due = (stage.mechanism.released(len(names)),)
    lattice = stage.mechanism.lattice
    agrees = kept.ring.shape == due and kept.ring.dtype == lattice.dtype
    agrees &= lattice.bits == release.bits
    if not agrees or ring_digests(kept.ring) != release.chunks:
        raise ContradictionError(
            transcript_file(kept.number, "npy"),
            f"its numbers are not those that the centre released in round {kept.number}.",
        )


def transcript_file(number: int, suffix: str) -> str:
    """Return the path of a published round's file in the output folder."""
    return f"transcript/round-{number:05d}.{suffix}"


def add_rounds_again(
    exchange: Exchange, agreement: RunAgreement, rounds: list[Released], verdict: Verdict
) -> None:
    """Add every round again that releases its masked sum."""
    names = Names(agreement.context.run)
    for done in rounds:
        if not done.summed:
            continue
        where = names.round(done.number, messages.CONTRIBUTION)
        try:
            _add(exchange, names, agreement, done)
        except ContradictionError as error:
            verdict.contradict(
                error, "Only the centre, who signed for these numbers, can have caused it."
            )
        except ConsortiumError as error:
            verdict.leave_open(where, str(error))
            verdict.shown.discard(done.number)
        else:
            verdict.shown.add(done.number)


def _add(exchange: Exchange, names: Names, agreement: RunAgreement, done: Released) -> None:
    number = done.number
    release = done.release
    mechanism = done.stage.mechanism
    clear = mechanism.public

    def vector(site: str) -> Ring:
        manifest = done.manifests[site]
        place = names.round(number, messages.CONTRIBUTION, site)
        limit = agreement.session.limits.contribution(manifest.size, len(manifest.heard))
        found = exchange.get(place, limit)
        if found is None:
            raise ExchangeError(f"{place} is gone, so round {number} can't be added again.")
        return added(site, number, manifest, found, mechanism.entries, clear=clear)

    vectors = (vector(site) for site in release.survivors)
    directory = agreement.directory
    entries = mechanism.entries
    try:
        total = add_again(
            session=agreement.session,
            directory=directory,
            number=number,
            release=release,
            vectors=vectors,
            entries=entries,
            clear=clear,
        )
    except AlteredError:
        raise
    except ProtocolError as error:  # signed for, and yet no vector of this round
        raise ContradictionError(names.round(number, messages.RELEASE), str(error)) from error
    if not agrees(total, release):
        raise ContradictionError(
            names.round(number, messages.RELEASE),
            f"the numbers released in round {number} are not the sum of the signed contributions.",
        )
