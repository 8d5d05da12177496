"""The masks that are left on a sum, from the seeds that open them.

The same lines serve the hub, which puts the seeds together, and whoever checks its work later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from consortium.secagg.key_directory import Directory, Session
from consortium.secagg.key_schedule import commitment, mask_private, public_bytes
from consortium.secagg.pair_masks import pair_masks


def is_self_seed(
    session: Session, directory: Directory, number: int, site: str, seed: bytes
) -> bool:
    """Whether a site has committed to this seed of its self-mask."""
    return commitment(session.digest, site, number, seed) == directory.commitment(site, number)


def is_key_seed(
    session: Session, directory: Directory, number: int, site: str, seed: bytes
) -> bool:
    """Whether a site's public key of a round comes from this seed."""
    private = mask_private(session.digest, site, number, seed)
    return public_bytes(private) == directory.mask_key(site, number)


def mask_streams(
    session: Session,
    directory: Directory,
    number: int,
    context: bytes,
    survivors: Collection[str],
    seeds: Mapping[str, bytes],
) -> tuple[list[bytes], list[bytes]]:
    """Stream keys to add to the survivors' masked sum, and to subtract, to be left with the sum.

    Parameters
    ----------
    session, directory
        The run's set-up.
    number : int
        Round.
    context : bytes
        Digest of the round's question.
    survivors : collection of str
        Sites whose vectors are in the sum.
    seeds : mapping of str to bytes
        Of every site: a survivor's self-mask seed, a lost site's key seed.
    """
    added: list[bytes] = []
    subtracted: list[bytes] = []
    alive = set(survivors)
    for site in session.roster.sites:
        if site in alive:
            subtracted.append(directory.keys.self_mask(seeds[site], number, context, site))
            continue
        private = mask_private(session.digest, site, number, seeds[site])
        # What the lost site would have put on its vector is what its partners' masks lack.
        near = [peer for peer in directory.graph.neighbours(site) if peer in alive]
        roster = session.roster
        plus, minus = pair_masks(directory, roster, private, site, near, number, context)
        added += plus
        subtracted += minus
    return added, subtracted
