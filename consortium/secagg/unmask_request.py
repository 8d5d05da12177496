"""The hub's unmask request, and when a site may answer it."""

from __future__ import annotations

from collections.abc import Collection

from consortium.errors import ProtocolError, ThresholdError
from consortium.secagg import messages
from consortium.secagg.key_directory import Session
from consortium.secagg.participants import CENTRE


def read_request(session: Session, number: int, context: bytes, data: bytes) -> messages.Request:
    """Check a request as anybody can.

    Parameters
    ----------
    session : Session
    number : int
        Round.
    context : bytes
        Digest of the round's question.
    data : bytes

    Raises
    ------
    ProtocolError
        If it is not the hub's for this round and question, or the two lists are not, in roster
        order, every site on one of them.
    ThresholdError
        If it names fewer survivors than the roster's minimum.
    """
    opened = session.unseal(messages.UNMASK, data, len(data), CENTRE, number)
    body = messages.decode(messages.Request, opened.body, CENTRE)
    if body.context != context:
        raise ProtocolError(
            f"The unmask request of round {number} belongs to another question; give up the round."
        )
    _check_lists(session, number, body)
    return body


def read_manifest(
    session: Session, number: int, context: bytes, site: str, data: bytes
) -> messages.Manifest:
    """Check a manifest as anybody can: it is the site's own, for this round and question.

    Raises
    ------
    ProtocolError
        If it is not.
    """
    opened = session.unseal(messages.MANIFEST, data, len(data), site, number)
    body = messages.decode(messages.Manifest, opened.body, site)
    if body.context != context:
        raise ProtocolError(
            f"The manifest of {site} for round {number} belongs to another question; discard it."
        )
    return body


def _check_lists(session: Session, number: int, body: messages.Request) -> None:
    roster = session.roster
    survivors, lost = roster.ordered(body.survivors), roster.ordered(body.lost)
    complete = set(survivors).isdisjoint(lost) and len(survivors) + len(lost) == len(roster.sites)
    told = (body.survivors, body.lost)
    if not complete or (survivors, lost) != told or len(body.manifests) != len(survivors):
        raise ProtocolError(
            f"The unmask request of round {number} doesn't list every site once, in roster order; "
            "give up the round."
        )
    if len(survivors) < roster.minimum:
        raise ThresholdError(
            f"The unmask request of round {number} names {len(survivors)} survivors where "
            f"{roster.minimum} are the minimum, without {', '.join(lost)}; give up the round."
        )


def check_request(
    session: Session,
    number: int,
    context: bytes,
    name: str,
    data: bytes,
    neighbours: Collection[str],
) -> messages.Request:
    """Check a request as the site ``name``, which has contributed, must before it answers.

    It must show what its ``neighbours`` in the graph of masks have contributed, under their own
    signatures: a centre that opened a sum before a colluding site had sent its vector could let
    that site choose it so that the total is any number it likes. Each site is watched by all of
    its neighbours; in a complete graph these are all others.

    Raises
    ------
    ProtocolError
        As `read_request`, or if the site itself is not among the survivors, or a neighbour is
        without having said what it sent.
    """
    if not session.roster.masked:
        raise ProtocolError("This run was set up without masks; no unmask request is due in it.")
    body = read_request(session, number, context, data)
    if name not in body.survivors:
        raise ProtocolError(
            f"The unmask request of round {number} lists {name} as lost, though it has "
            "contributed; give up the round, its vector came too late or was held back."
        )
    _check_manifests(session, number, body, {name, *neighbours})
    return body


def _check_manifests(
    session: Session, number: int, body: messages.Request, watched: Collection[str]
) -> None:
    for site, manifest in zip(body.survivors, body.manifests, strict=True):
        if site in watched:
            read_manifest(session, number, body.context, site, manifest)
