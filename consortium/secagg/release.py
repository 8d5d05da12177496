"""What the hub says, for everybody, of a round that it released.

Where a sum is released as it is, the seeds of the masks that were taken off are shown with it.
They belong to this round alone, and of each site one of its two is shown, never both, so that
what can be learnt by them is the sum, which is public.
"""

from __future__ import annotations

import numpy as np

from consortium.errors import ProtocolError
from consortium.secagg import contribution, messages
from consortium.secagg.correction import is_key_seed, is_self_seed
from consortium.secagg.key_directory import Directory, Session
from consortium.secagg.keystream import Ring
from consortium.secagg.packing import MOST_BITS
from consortium.secagg.participants import CENTRE
from consortium.secagg.unmasking import RoundSum


def release_of(
    total: RoundSum, context: bytes, released: Ring, bits: int, *, shown: bool
) -> messages.Release:
    """Make what the hub says of a round.

    Parameters
    ----------
    total : RoundSum
    context : bytes
        Digest of the round's question.
    released : array of a type of `RINGS`
        What became public.
    bits : int
        It is over the integers modulo 2^bits.
    shown : bool
        Whether that is the sum itself, so that the seeds of its masks tell nothing more.
    """
    chunks = ring_digests(released)
    seeds = total.seeds if shown else ()
    return messages.Release(
        context,
        total.survivors,
        total.lost,
        total.request,
        bits,
        chunks,
        seeds,
        total.manifests,
    )


def ring_digests(vector: Ring) -> tuple[bytes, ...]:
    """SHA-256 of each `messages.CHUNK_BYTES` of a vector, little-endian and not packed."""
    plain = np.ascontiguousarray(vector, vector.dtype.newbyteorder("<"))
    return contribution.digests(plain.view(np.uint8).data) if plain.size else ()


def read_release(session: Session, number: int, data: bytes) -> messages.Release:
    """Check what the hub says of a round as anybody can who knows the roster.

    Raises
    ------
    ProtocolError
        If it is not the hub's for this round, or its lists are not, in roster order, every site
        on one of them, with enough survivors.
    """
    opened = session.unseal(messages.RELEASE, data, len(data), CENTRE, number)
    body = messages.decode(messages.Release, opened.body, CENTRE)
    _check_lists(session, number, body)
    return body


def _check_lists(session: Session, number: int, body: messages.Release) -> None:
    roster = session.roster
    lists = roster.ordered(body.survivors), roster.ordered(body.lost)
    complete = set(body.survivors).isdisjoint(body.lost)
    complete &= sum(map(len, lists)) == len(roster.sites)
    seeds = len(body.seeds) in (0, len(roster.sites))
    seeds &= len(body.manifests) == (0 if body.request else len(body.survivors))
    if lists != (body.survivors, body.lost) or not (
        complete and seeds and 1 <= body.bits <= MOST_BITS
    ):
        raise ProtocolError(
            f"The release of round {number} doesn't list every site once, in roster order; don't "
            "use its numbers."
        )
    if len(body.survivors) < roster.minimum:
        raise ProtocolError(
            f"The release of round {number} has {len(body.survivors)} survivors where "
            f"{roster.minimum} are the minimum; don't use its numbers."
        )


def check_seeds(
    session: Session, directory: Directory, number: int, release: messages.Release
) -> None:
    """Hold the seeds that the hub shows against what their owners signed before round 1.

    Raises
    ------
    ProtocolError
        If there are none; or it names the site whose seed is another.
    """
    if len(release.seeds) != len(session.roster.sites):
        raise ProtocolError(
            f"The release of round {number} doesn't show the seeds of its masks, so that nobody "
            "can add it again."
        )
    alive = set(release.survivors)
    for site, seed in zip(session.roster.sites, release.seeds, strict=True):
        genuine = is_self_seed if site in alive else is_key_seed
        if not genuine(session, directory, number, site, seed):
            raise ProtocolError(
                f"The release of round {number} shows a seed of {site} that is not the one which "
                "the site committed to; the sum is not what the sites sent."
            )
