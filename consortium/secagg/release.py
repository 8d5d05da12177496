"""The hub's statement to all parties about a round that it released.

If a sum is released, the seeds of the removed masks are published with it. They belong only to this
round. One of each site's two seeds is published, never both. So they reveal only the sum, which is
public.

Any party can verify a released round by adding it again. A sum is a function of the contributions,
whose digests all sites signed before a mask was removed, of the keys that all sites signed before
round 1, and of the seeds that the hub publishes. Each seed has one value that fits the keys, and
the streams between two survivors cancel whatever they are. So the sum also has one value.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np

from consortium.errors import AlteredError, ProtocolError, printable
from consortium.secagg import contribution, keystream, messages
from consortium.secagg.key_directory import Directory, KeySession
from consortium.secagg.keystream import Ring
from consortium.secagg.packing import MOST_BITS, packed_bytes, reduce_modulo, ring_type, unpack
from consortium.secagg.participants import CENTRE
from consortium.secagg.unmasking import (
    RoundSum,
    is_key_seed,
    is_self_seed,
    mask_streams,
    read_manifest,
)


def release_message(
    total: RoundSum, context: bytes, released: Ring, bits: int, *, shown: bool
) -> messages.Release:
    """Make the hub's statement about a round.

    Parameters
    ----------
    context : bytes
        Digest of the round's question.
    released : array of a type of `RINGS`
        The released vector.
    bits : int
        It is over the integers modulo 2^bits.
    shown : bool
        Whether that is the sum itself. The seeds of its masks then reveal nothing more.
    """
    chunks = ring_digests(released)
    seeds = total.seeds if shown else ()
    return messages.Release(
        context=context,
        survivors=total.survivors,
        lost=total.lost,
        request=total.request,
        bits=bits,
        chunks=chunks,
        seeds=seeds,
        manifests=total.manifests,
    )


def ring_digests(vector: Ring) -> tuple[bytes, ...]:
    """Return the SHA-256 of each `messages.CHUNK_BYTES` of a vector, little-endian, not packed."""
    plain = np.ascontiguousarray(vector, vector.dtype.newbyteorder("<"))
    return contribution.digests(plain.view(np.uint8).data) if plain.size else ()


def read_release(session: KeySession, number: int, data: bytes) -> messages.Release:
    """Check the hub's statement about a round, for which only the roster is needed.

    Raises ProtocolError if it is not the hub's for this round, or its lists are not, in roster
    order, every site on one of them, with enough survivors.
    """
    opened = session.unseal(messages.RELEASE, data, len(data), CENTRE, number)
    body = messages.decode(messages.Release, opened.body, CENTRE)
    _check_lists(session, number, body)
    return body


def _check_lists(session: KeySession, number: int, body: messages.Release) -> None:
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
            f"The release of round {number} doesn't list every site once, in roster order. Don't "
            "use its numbers."
        )
    if len(body.survivors) < roster.minimum:
        raise ProtocolError(
            f"The release of round {number} has {len(body.survivors)} survivors where "
            f"{roster.minimum} are the minimum. Don't use its numbers."
        )


def check_seeds(
    session: KeySession, directory: Directory, number: int, release: messages.Release
) -> None:
    """Hold the seeds that the hub shows against what their owners signed before round 1.

    Raises ProtocolError if there are none; or it names the site whose seed is another.
    """
    if len(release.seeds) != len(session.roster.sites):
        raise ProtocolError(
            f"The release of round {number} doesn't show the seeds of its masks, so it can't be "
            "added again."
        )
    alive = set(release.survivors)
    for site, seed in zip(session.roster.sites, release.seeds, strict=True):
        genuine = is_self_seed if site in alive else is_key_seed
        if not genuine(session, directory, number, site, seed):
            raise ProtocolError(
                f"The release of round {number} shows a seed of {site} that is not the one which "
                "the site committed to; the sum is not that of the sites' vectors."
            )


def check_answered(
    session: KeySession, number: int, release: messages.Release, request: bytes
) -> messages.Request:
    """Compare a release with the request that the hub posted before any mask was removed.

    Raises ProtocolError if another request was answered, or the request has another list of
    survivors or another manifest.

    Returns
    -------
    Request
        Its manifests are checked, each against its own site's signature.
    """
    if hashlib.sha256(request).digest() != release.request:
        raise ProtocolError(
            f"The release of round {number} names another unmask request than the one posted; the "
            "summed vectors were not fixed before masks were removed."
        )
    opened = session.unseal(messages.UNMASK, request, len(request), CENTRE, number)
    body = messages.decode(messages.Request, opened.body, CENTRE)
    answer = (body.context, body.survivors, body.lost, len(body.manifests))
    due = (release.context, release.survivors, release.lost, len(release.survivors))
    if answer != due:
        raise ProtocolError(
            f"The release of round {number} has other survivors, or another question, than its "
            "unmask request. Don't use its numbers."
        )
    return body


def signed_manifests(
    session: KeySession,
    number: int,
    request: messages.Request,
    entries: int,
    bits: int,
    *,
    clear: bool = False,
) -> dict[str, messages.Manifest]:
    """Return the manifest of each survivor, checked with public data.

    Raises ProtocolError if one is not the site's own for this round and question, or of another
    size; ``clear`` as for `added`.
    """
    if len(request.manifests) != len(request.survivors):
        raise ProtocolError(
            f"Round {number} has {len(request.manifests)} manifests of {len(request.survivors)} "
            "survivors. Don't use its numbers."
        )
    manifests: dict[str, messages.Manifest] = {}
    for site, data in zip(request.survivors, request.manifests, strict=True):
        body = read_manifest(session, number, request.context, site, data)
        size = packed_bytes(entries, bits)
        chunks = -(-body.size // messages.CHUNK_BYTES)
        least = 2 * size if clear else size
        if (body.bits, body.masked) != (bits, size) or body.size < least:
            raise ProtocolError(
                f"The manifest of {site} for round {number} is of another vector than {entries} "
                f"entries of {bits} bits. Don't use the round's numbers."
            )
        if len(body.chunks) != chunks:
            raise ProtocolError(
                f"The manifest of {site} for round {number} has {len(body.chunks)} digests for "
                f"{body.size} bytes. Don't use the round's numbers."
            )
        manifests[site] = body
    return manifests


def added(
    site: str,
    number: int,
    manifest: messages.Manifest,
    found: bytes,
    entries: int,
    *,
    clear: bool = False,
) -> Ring:
    """Return a contribution's term in the masked sum, if it matches its site's manifest.

    That is the masked vector. If an unencrypted open vector follows it (``clear``), it is the
    masked vector minus the open one, since the release is then the open vectors' sum minus the
    other. Raises AlteredError if it does not match: the owner of the exchange or the site can have
    changed it. Raises ProtocolError if the site has signed for free bits that are not zero.
    """
    data = memoryview(found)[: manifest.size]
    if len(data) != manifest.size or contribution.digests(data) != manifest.chunks:
        raise AlteredError(
            f"The contribution of {printable(site)} to round {number} on the exchange is not the "
            "one that the site signed. Have the exchange's owner restore the first one."
        )
    what = f"The contribution of {printable(site)} to round {number}"
    size = manifest.masked
    masked = unpack(data[:size], manifest.bits, entries, what)
    if not clear:
        return masked
    return cast("Ring", masked - unpack(data[size : 2 * size], manifest.bits, entries, what))


def add_again(
    session: KeySession,
    directory: Directory,
    number: int,
    release: messages.Release,
    vectors: Iterable[Ring],
    entries: int,
    *,
    clear: bool = False,
) -> Ring:
    """Add the survivors' vectors, and remove the masks whose seeds are published.

    Parameters
    ----------
    session, directory
        The run's set-up.
    number : int
        Round.
    release : Release
        One that `check_seeds` found sound.
    vectors : iterable of array of a type of `RINGS`, shape (entries,)
        Each survivor's term, from `added`. Only one is in memory at a time.
    clear : bool
        Whether open vectors were subtracted: the release is then the sum with its sign changed.

    Returns
    -------
    array of the same type, shape (entries,)
    """
    total: Ring = np.zeros(entries, ring_type(release.bits))
    for vector in vectors:
        total += vector
    seeds: Mapping[str, bytes] = dict(zip(session.roster.sites, release.seeds, strict=True))
    streams = mask_streams(
        session=session,
        directory=directory,
        number=number,
        context=release.context,
        survivors=release.survivors,
        seeds=seeds,
    )
    keystream.add_streams(total, *streams)
    return reduce_modulo(cast("Ring", np.negative(total)) if clear else total, release.bits)


def agrees(total: Ring, release: messages.Release) -> bool:
    """Return whether a sum is, entry by entry, the one that was released."""
    return total.dtype == ring_type(release.bits) and ring_digests(total) == release.chunks
