"""The set-up's second message: shares of every round's two seeds, encrypted to each holder.

For each round one site has 64 bytes of another: its share of the key seed, then its share of the
self-mask seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from consortium.errors import DisagreementError, ProtocolError
from consortium.secagg import crypto, messages, shamir
from consortium.secagg.key_directory import Directory, KeySession
from consortium.secagg.key_schedule import OwnKeys
from consortium.secagg.merkle_tree import is_under, tree_paths, tree_root
from consortium.secagg.participants import CENTRE

_ROUND_BYTES = 2 * shamir.SHARE_BYTES


@dataclass(frozen=True)
class CheckedShares:
    """A site's share message, once it is checked, with each ciphertext's way to the root."""

    body: messages.Share
    shared: messages.Shared
    paths: tuple[tuple[bytes, ...], ...]


def split_seeds(session: KeySession, own: OwnKeys, holders: Sequence[str]) -> dict[str, bytes]:
    """Share all seeds of a site; returns the shares of each holder.

    In a complete graph the owner is one of them.
    """
    roster = session.roster
    points = [roster.point(site) for site in holders]
    held = {site: bytearray() for site in holders}
    for number in range(1, session.keyed_rounds + 1):
        seeds = {"mask": own.mask_seed(number), "self": own.self_seed(number)}
        for purpose, seed in seeds.items():
            noise = own.polynomial(purpose, number, shamir.noise_bytes(roster.threshold))
            shares = shamir.split(seed, roster.threshold, points, noise)
            for site, share in zip(holders, shares, strict=True):
                held[site] += share
    return {site: bytes(shares) for site, shares in held.items()}


def seal_shares(
    directory: Directory,
    name: str,
    channels: Mapping[str, bytes],
    held: Mapping[str, bytes],
) -> tuple[bytes, ...]:
    """Encrypt the shares of each holder to it.

    Parameters
    ----------
    name : str
        The owner of the seeds.
    channels : mapping of str to bytes
        Agreement with each peer.
    held : mapping of str to bytes
        From `split_seeds`.
    """
    return tuple(
        b""
        if site == name
        else crypto.encrypt(
            directory.keys.channel(channels[site], name, site, messages.SHARE, 0), shares
        )
        for site, shares in held.items()
    )


def read_share(
    session: KeySession, directory: Directory, envelope: bytes, sender: str | None = None
) -> tuple[str, CheckedShares]:
    """Check one site's share message as the hub can, without decrypting anything.

    Raises ProtocolError if it is not signed by the site, malformed, made for another set of keys,
    or has other ciphertexts than the site signed in its statement to all parties.
    """
    opened = session.unseal(messages.SHARE, envelope, session.limits.share, sender, 0)
    body = messages.decode(messages.Share, opened.body, opened.sender)
    count = session.roster.holders or len(session.roster.sites)
    if opened.sender == CENTRE or len(body.sealed) != count:
        raise ProtocolError(
            f"The shares of {opened.sender} are not one for each holder. Discard the message."
        )
    shared = read_shared(session, directory, opened.sender, body.signed)
    if tree_root(body.sealed) != shared.root:
        raise ProtocolError(
            f"The shares of {opened.sender} are not those in its signed statement. Discard the "
            "message."
        )
    return opened.sender, CheckedShares(body, shared, tree_paths(body.sealed))


def read_shared(
    session: KeySession, directory: Directory, site: str, envelope: bytes
) -> messages.Shared:
    """Check a site's statement to all parties about its shares.

    Raises ProtocolError if it is not signed by the site, malformed, or made for another set of
    keys.
    """
    opened = session.unseal(messages.SHARED, envelope, session.limits.share, site, 0)
    body = messages.decode(messages.Shared, opened.body, site)
    if body.transcript != directory.transcript:
        raise ProtocolError(
            f"{site} was shown other keys than these. Don't trust the centre of this run."
        )
    return body


def handed_to(
    directory: Directory, reader: str, given: Mapping[str, CheckedShares]
) -> messages.Shares:
    """Return the shares for one site: its own part of each site's, and all signatures."""
    owners = set(directory.graph.owners(reader)) - {reader}
    parts: list[messages.SharePart] = []
    for site in directory.sites:
        body = given[site].body
        sealed = b""
        path = tuple[bytes, ...]()
        if site in owners:
            place = directory.graph.holders(site).index(reader)
            sealed = body.sealed[place]
            path = given[site].paths[place]
        parts.append(messages.SharePart(body.signed, sealed, path))
    return messages.Shares(reader, tuple(parts))


def read_shares(session: KeySession, reader: str, bundle: bytes) -> dict[str, messages.SharePart]:
    """Split the hub's bundle of shares for a site into one part of each site, still unchecked.

    Raises ProtocolError if the bundle is not the hub's, not for this ``reader``, or not complete.
    """
    opened = session.unseal(messages.SHARES, bundle, session.limits.shares, CENTRE, 0)
    body = messages.decode(messages.Shares, opened.body, CENTRE)
    if body.reader != reader:
        raise ProtocolError(
            f"The centre's bundle of shares is for another site than {reader}. Fetch it again "
            "later, and check the rights to write to the exchange."
        )
    if len(body.shares) != len(session.roster.sites):
        raise ProtocolError("The centre's bundle of shares is not complete. Fetch it again later.")
    return dict(zip(session.roster.sites, body.shares, strict=True))


def check_common(shared: messages.Shared, site: str, own: bytes, who: str) -> None:
    """Compare a site's digest, which must be the same at all sites, with that of ``who``.

    Raises DisagreementError if they differ.
    """
    if shared.common != own:
        raise DisagreementError(
            f"{site} works out another plan than {who}, with other noise, sums or sites' sizes, "
            "before the first round. Install the same version of the software and of its libraries "
            "on both machines and start a new run."
        )


def open_share(
    session: KeySession,
    directory: Directory,
    name: str,
    sender: str,
    shared: bytes,
    part: messages.SharePart,
    root: bytes,
) -> bytes:
    """Decrypt the shares of ``sender`` that ``name`` received.

    Raises ProtocolError if they are not those that the sender signed for this holder, can't be
    decrypted, or have another number of rounds.

    Parameters
    ----------
    session, directory
        The run's set-up.
    shared : bytes
        Their channels' agreement.
    root : bytes
        Root that the sender has signed.
    """
    holders = directory.graph.holders(sender)
    place = holders.index(name)
    if not is_under(root, part.sealed, place, len(holders), part.path):
        raise ProtocolError(
            f"The share of {sender} for {name} is not the one that {sender} signed. Don't trust "
            "the centre of this run."
        )
    key = directory.keys.channel(shared, sender, name, messages.SHARE, 0)
    held = crypto.decrypt(key, part.sealed, f"The share of {sender} for {name}")
    if len(held) != session.keyed_rounds * _ROUND_BYTES:
        raise ProtocolError(
            f"{sender} gave {name} shares for another number of rounds. "
            "Install the same version there."
        )
    return held


def mask_share(held: bytes, number: int) -> bytes:
    """Share of the key seed of one round."""
    start = (number - 1) * _ROUND_BYTES
    return held[start : start + shamir.SHARE_BYTES]


def self_share(held: bytes, number: int) -> bytes:
    """Share of the self-mask seed of one round."""
    start = (number - 1) * _ROUND_BYTES + shamir.SHARE_BYTES
    return held[start : start + shamir.SHARE_BYTES]
