"""The set-up's second message: shares of every round's two seeds, encrypted to each holder.

What one site holds of another is one string of 64 bytes a round: its share of the key seed, then
its share of the self-mask seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from consortium.errors import DisagreementError, ProtocolError
from consortium.secagg import crypto, messages, shamir
from consortium.secagg.key_directory import Directory, Session
from consortium.secagg.key_schedule import OwnKeys
from consortium.secagg.participants import CENTRE

_ROUND_BYTES = 2 * shamir.SHARE_BYTES


def split_seeds(session: Session, own: OwnKeys, holders: Sequence[str]) -> dict[str, bytes]:
    """Share all seeds of a site; returns what each of its holders is to hold.

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
    common: bytes = b"",
) -> messages.Share:
    """Encrypt to each holder what it is to hold.

    Parameters
    ----------
    directory : Directory
    name : str
        The owner of the seeds.
    channels : mapping of str to bytes
        Agreement with each peer.
    held : mapping of str to bytes
        From `split_seeds`.
    common : bytes
        Digest of what all must have in common.
    """
    sealed = tuple(
        b""
        if site == name
        else crypto.encrypt(
            directory.keys.channel(channels[site], name, site, messages.SHARE, 0), shares
        )
        for site, shares in held.items()
    )
    return messages.Share(directory.transcript, sealed, common)


def read_shares(session: Session, bundle: bytes) -> dict[str, bytes]:
    """Take the hub's bundle apart: one envelope, still unchecked, for each site.

    Raises
    ------
    ProtocolError
        If the bundle is not the hub's or not complete.
    """
    opened = session.unseal(messages.SHARES, bundle, session.limits.shares, CENTRE, 0)
    body = messages.decode(messages.Shares, opened.body, CENTRE)
    if len(body.shares) != len(session.roster.sites):
        raise ProtocolError("The centre's bundle of shares is not complete; fetch it again later.")
    return dict(zip(session.roster.sites, body.shares, strict=True))


def read_share(
    session: Session, directory: Directory, envelope: bytes, sender: str | None = None
) -> tuple[str, messages.Share]:
    """Check one site's share message as hub and sites both can, without decrypting anything.

    Raises
    ------
    ProtocolError
        If it is not signed by the site, malformed, or made for another set of keys.
    """
    opened = session.unseal(messages.SHARE, envelope, session.limits.share, sender, 0)
    body = messages.decode(messages.Share, opened.body, opened.sender)
    count = session.roster.holders or len(session.roster.sites)
    if opened.sender == CENTRE or len(body.sealed) != count:
        raise ProtocolError(
            f"The shares of {opened.sender} are not one for each holder; discard the message."
        )
    if body.transcript != directory.transcript:
        raise ProtocolError(
            f"{opened.sender} was shown other keys than these; don't trust the centre of this run."
        )
    return opened.sender, body


def check_common(
    session: Session, directory: Directory, site: str, envelope: bytes, own: bytes, who: str
) -> None:
    """Compare what a site says that all have in common with what ``who`` has.

    Raises
    ------
    DisagreementError
        If they differ.
    """
    _, body = read_share(session, directory, envelope, site)
    if body.common != own:
        raise DisagreementError(
            f"{site} works out another plan than {who}, with other noise, sums or sites' sizes, "
            "before the first round; install the same version of the software and of its libraries "
            "on both machines and start a new run."
        )


def open_share(
    session: Session,
    directory: Directory,
    name: str,
    sender: str,
    shared: bytes,
    envelope: bytes,
) -> bytes:
    """Decrypt what ``sender`` gave ``name`` to hold; ``shared`` is their channels' agreement.

    Raises
    ------
    ProtocolError
        If the message is unsound, can't be decrypted, or has another number of rounds.
    """
    _, body = read_share(session, directory, envelope, sender)
    key = directory.keys.channel(shared, sender, name, messages.SHARE, 0)
    sealed = body.sealed[directory.graph.holders(sender).index(name)]
    held = crypto.decrypt(key, sealed, f"The share of {sender} for {name}")
    if len(held) != session.keyed_rounds * _ROUND_BYTES:
        raise ProtocolError(
            f"{sender} gave {name} shares for another number of rounds; "
            "install the same version there."
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
