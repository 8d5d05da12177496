"""The end of a run: the centre's list of its releases, and the sites' attestations of it."""

from collections.abc import Sequence

from consortium.engine import closing as bodies
from consortium.engine.names import ATTESTATION, CLOSING
from consortium.errors import ContradictionError, ProtocolError
from consortium.study.plan import plan_digest
from consortium.verification.agreement import RunAgreement
from consortium.verification.record import ATTESTED, CLOSED, EvidenceRecord, evidence_path
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict


def read_closing(
    record: EvidenceRecord, agreement: RunAgreement, rounds: Sequence[Released]
) -> bodies.Closing:
    """Check that the centre closed the run with exactly these rounds; raises ContradictionError."""
    try:
        closing = bodies.decode_closing(bodies.Closing, record.message(CLOSED, CLOSING), "centre")
    except ProtocolError as error:
        raise ContradictionError(evidence_path(CLOSED), str(error)) from error
    digests = (closing.announcement, closing.keys, closing.plan)
    if digests != (agreement.announced, agreement.keys, plan_digest(agreement.plan)):
        raise ContradictionError(
            evidence_path(CLOSED), "it closes a run of another study, keys or plan."
        )
    if len(closing.records) != len(rounds):
        raise ContradictionError(
            evidence_path(CLOSED),
            f"the centre released {len(closing.records)} rounds, and the transcript has "
            f"{len(rounds)}: a round was left out, repeated or added.",
        )
    for done, due in zip(rounds, closing.records, strict=True):
        if done.record != due:
            raise ContradictionError(
                evidence_path(CLOSED),
                f"the centre closed the run with another release of round "
                f"{done.number} than the one kept here.",
            )
    return closing


def hear_attestations(
    record: EvidenceRecord, agreement: RunAgreement, rounds: Sequence[Released], verdict: Verdict
) -> None:
    """Count the sites' attestations: the rounds that are shown, and whether the result is unique.

    One dishonest site can leave a question open. It can neither contradict nor show a result.
    """
    study = agreement.context.study
    agreeing: list[bodies.Attestation] = []
    for site in study.sites:
        if record.read(f"{ATTESTED}/{site}") is None:
            if study.checkers:
                verdict.add(
                    evidence_path(f"{ATTESTED}/{site}"), f"{site} has not attested the run."
                )
            continue
        try:
            said = _attestation(record, site)
        except ContradictionError as error:
            verdict.contradict(error, "A holder of this copy or the centre caused it.")
            continue
        if _agrees(said, agreement, rounds, site, verdict):
            agreeing.append(said)
    colluding = study.privacy.colluding_sites
    shown = shown_by(agreeing, len(rounds), colluding)
    verdict.shown |= {done.number for done in rounds if done.summed and done.number in shown}
    verdict.shown |= {done.number for done in rounds if done.each}
    answers = agreement.context.roster.answers if agreement.session.roster.masked else 0
    needed = bodies.attesting(study.sites, colluding, answers)
    if study.checkers and len(agreeing) < needed:
        verdict.leave_open(
            evidence_path(ATTESTED),
            f"{len(agreeing)} sites attest this result where {needed} are needed to exclude "
            "another one. Ask the missing sites.",
        )


def shown_by(agreeing: Sequence[bodies.Attestation], rounds: int, colluding: int) -> set[int]:
    """Return the rounds that more sites have checked than may collude."""
    return {
        number
        for number in range(1, rounds + 1)
        if sum(number in said.checked for said in agreeing) > colluding
    }


def same_result(
    said: bodies.Attestation, announced: bytes, keys: bytes, plan: bytes, records: Sequence[bytes]
) -> bool:
    """Return whether a site attests exactly this result, and disputes no part of it."""
    statement = (said.announcement, said.keys, said.plan, said.records, said.refuted)
    return statement == (announced, keys, plan, tuple(records), ())


def _attestation(record: EvidenceRecord, site: str) -> bodies.Attestation:
    name = f"{ATTESTED}/{site}"
    try:
        body = record.message(name, ATTESTATION, sender=site)
        return bodies.decode_closing(bodies.Attestation, body, site)
    except ProtocolError as error:
        raise ContradictionError(evidence_path(name), str(error)) from error


def _agrees(
    said: bodies.Attestation,
    agreement: RunAgreement,
    rounds: Sequence[Released],
    site: str,
    verdict: Verdict,
) -> bool:
    where = evidence_path(f"{ATTESTED}/{site}")
    for number, code in said.refuted:
        verdict.leave_open(
            where,
            f"{site} disputes round {number} ({code[:40]}): it or the centre is dishonest; "
            "--exchange decides it.",
        )
    for number in said.missed:
        verdict.add(where, f"{site} contributed to round {number}, which lists it as lost.")
    if said.earlier:
        verdict.add(where, f"{site} answered in other runs of this study: {_few(said.earlier)}.")
    records = [done.record for done in rounds]
    plan = plan_digest(agreement.plan)
    if said.refuted:
        return False
    if not same_result(said, agreement.announced, agreement.keys, plan, records):
        verdict.leave_open(
            where,
            f"{site} attests another result of this run: it or the centre is dishonest. Ask "
            f"{site} for the releases that it has.",
        )
        return False
    return True


def _few(names: Sequence[str]) -> str:
    return ", ".join(name[:80] for name in names[:5]) + (" and more" if len(names) > 5 else "")
