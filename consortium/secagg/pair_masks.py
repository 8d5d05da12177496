"""Which masks a site puts on its vector; the same lines serve the hub when the site is lost.

With the sites in roster order, site u adds PRG(s_uv) for every later neighbour v and subtracts it
for every earlier one, so that the sum over both is free of it.
"""

from collections.abc import Iterable

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from consortium.secagg.crypto import shared_secret
from consortium.secagg.key_directory import Directory
from consortium.secagg.participants import Participants


def pair_masks(
    directory: Directory,
    roster: Participants,
    private: X25519PrivateKey,
    site: str,
    peers: Iterable[str],
    number: int,
    context: bytes,
) -> tuple[list[bytes], list[bytes]]:
    """Stream keys of the masks that a site adds, and of those it subtracts.

    Parameters
    ----------
    directory, roster
        The run's set-up.
    private : X25519PrivateKey
        The site's own for this round.
    peers : iterable of str
        Its neighbours that count.
    number : int
        Round.
    context : bytes
        Digest of the round's question.
    """
    added: list[bytes] = []
    subtracted: list[bytes] = []
    place = {name: index for index, name in enumerate(roster.sites)}
    for peer in peers:
        shared = shared_secret(private, directory.mask_key(peer, number))
        first, second = (site, peer) if place[site] < place[peer] else (peer, site)
        key = directory.keys.pair_mask(shared, number, context, first, second)
        (added if first == site else subtracted).append(key)
    return added, subtracted
