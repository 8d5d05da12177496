"""The announced agreement of a run, and whether this version derives the same plan from it."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import msgspec

from consortium import __version__
from consortium.engine.names import ANNOUNCEMENT, START
from consortium.engine.queries import decode_note, read_announcement
from consortium.engine.run_context import RunContext, read_start
from consortium.errors import ConfigurationError, ConsortiumError, ContradictionError, printable
from consortium.secagg.key_directory import Directory, KeySession, read_keys
from consortium.study.plan import Plan, count_rounds, make_plan, nominal_shape, plan_integers
from consortium.verification.record import (
    ANNOUNCED,
    KEYS,
    PLAN,
    STARTED,
    EvidenceRecord,
    evidence_path,
)


@dataclass(frozen=True)
class RunAgreement:
    """A run before its first round, as its messages lead to it."""

    context: RunContext
    """With the sites that the run started with."""
    session: KeySession
    directory: Directory
    plan: Plan
    announced: bytes
    keys: bytes
    """SHA-256 of the announcement's body and of the bundle of keys."""


def read_agreement(record: EvidenceRecord, approved: RunContext) -> RunAgreement:
    """Check the messages before round 1, and compute the plan again.

    Raises ContradictionError if one does not follow from the study and the others.

    Parameters
    ----------
    approved : RunContext
        According to the signed study.
    """
    body = record.message(ANNOUNCED, ANNOUNCEMENT)
    _check_announced(body, approved)
    started = record.message(STARTED, START)
    bundle = record.file(KEYS)
    where = STARTED
    try:
        context = approved.started_with(read_start(started))
        rounds = count_rounds(context.study, context.extent)
        session = KeySession(context.run, context.roster, rounds)
        where = KEYS
        directory = read_keys(session, bundle)
        _check_grids(context, directory)
        shape = nominal_shape(context.study, context.extent)
        plan = make_plan(context.study, shape, agreed=True)
    except ConsortiumError as error:
        raise ContradictionError(evidence_path(where), str(error)) from error
    _check_plan(record.file(PLAN), plan)
    return RunAgreement(
        context=context,
        session=session,
        directory=directory,
        plan=plan,
        announced=hashlib.sha256(body).digest(),
        keys=hashlib.sha256(bundle).digest(),
    )


def check_version(announced: bytes) -> None:
    """Raise ConfigurationError if a run was announced with another version of this software."""
    version = read_announcement(announced).get("version")
    if version != __version__:
        raise ConfigurationError(
            f"The run was announced with version {printable(version, 40)}, and this is "
            f"{__version__}. Install that one and check again."
        )


def _check_announced(body: bytes, approved: RunContext) -> None:
    if body == approved.announcement:
        return
    said = read_announcement(body)
    own = json.loads(approved.announcement)
    other = [name for name in own if said.get(name) != own[name]]
    what = f"is about another {', '.join(other) or 'study'} than the signed study"
    raise ContradictionError(evidence_path(ANNOUNCED), f"{what}.")


def _check_grids(context: RunContext, directory: Directory) -> None:
    for site in context.study.sites:
        if decode_note(directory.notes[site], site).grid != context.grid:
            raise ContradictionError(
                evidence_path(KEYS),
                f"{site} took part with another mask or space than the study's.",
            )


def plan_record(plan: Plan) -> dict[str, Any]:
    """Return a plan as it is stored next to the result, for its verification."""
    return {**plan_integers(plan), "promised": {"mu": plan.promised_mu, "epsilon": plan.epsilon}}


def _check_plan(data: bytes, plan: Plan) -> None:
    try:
        kept = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContradictionError(evidence_path(PLAN), "can't be read as JSON.") from error
    own = plan_record(plan)
    for name in sorted(own.keys() | kept.keys()):
        if not nearly_equal(kept.get(name), own.get(name), 1e-9):
            raise ContradictionError(
                evidence_path(PLAN),
                f"its '{name}' does not follow from the study.",
            )


def nearly_equal(one: object, other: object, slack: float) -> bool:
    """Return whether two values of a plan are equal, floating-point numbers to ``slack``."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            nearly_equal(one[k], other[k], slack) for k in one
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(nearly_equal(a, b, slack) for a, b in pairs)
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= slack * max(abs(one), abs(other)) or one == other
    return type(one) is type(other) and one == other
