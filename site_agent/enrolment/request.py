"""A site's request to be admitted, and the change of its key."""

import secrets
from pathlib import Path

from consortium.errors import ConfigurationError, ConsortiumError
from consortium.membership.admission import JoinRequest, write_request
from consortium.membership.keys import KEYS, Identity, create_identity, load_identity
from consortium.membership.roster import fingerprint
from site_agent.config import SiteConfig
from site_agent.enrolment.pinned_consortium import PinnedConsortium, pin_consortium, read_pinned
from site_agent.layout import APPROVED
from site_agent.ledger.anchor import Answers, LedgerAnchor
from site_agent.ledger.ledger import Ledger

_OLD = "keys.old"
_SET_ASIDE = "approved-before"


def join_consortium(
    folder: Path, name: str, centre: str, participants: int | None = None
) -> tuple[Path, JoinRequest]:
    """Pin a consortium's key and write a signed request to be admitted.

    Raises ConfigurationError if the key is malformed or another than the pinned one, or a file
    can't be used.

    Parameters
    ----------
    folder : Path
        The site's folder.
    name : str
        The site's.
    centre : str
        The consortium's key, 64 hexadecimal digits; may be empty if it is pinned already.
    participants : int, optional
        Nominal number of participants that the site states.

    Returns
    -------
    path : Path
        The request, for the coordinator.
    request : JoinRequest
    """
    trust = _settle(folder, centre)
    path = folder / f"{name}.join.yaml"
    old = load_identity(folder, _OLD).key if (folder / _OLD).exists() else None
    identity = load_identity(folder)
    request = write_request(
        path=path,
        site=name,
        centre=trust.centre,
        key=identity.key,
        replaced=old,
        participants=participants,
    )
    pin_consortium(folder, trust)
    return path, request


def rotate_key(folder: Path, name: str, centre: str) -> tuple[Path, JoinRequest]:
    """Draw new keys, keep the old ones as ``keys.old``, and write a request that both sign.

    Approvals with the old key no longer count: the new key's roster needs a new approval. Called
    again after a crash in the middle, it continues where it stopped. Raises ConfigurationError as
    `join_consortium`, and if an earlier change is not finished.
    """
    _settle(folder, centre)
    if (folder / KEYS).exists() or not (folder / _OLD).exists():
        _retire(folder)
    create_identity(folder, secrets.token_bytes(64))
    return join_consortium(folder, name, centre)


def earlier_key(folder: Path) -> bytes | None:
    """Return a site's public key before its last change, as long as ``keys.old`` is kept.

    Raises ConfigurationError if the file can't be used.
    """
    return load_identity(folder, _OLD).public if (folder / _OLD).exists() else None


def open_anchor(
    folder: Path, config: SiteConfig, identity: Identity, answers: Answers | None = None
) -> LedgerAnchor:
    """Return the anchor of a site's ledger on its exchange.

    Raises ConfigurationError, ExchangeError, LedgerError if a file or the exchange can't be used.
    """
    exchange = config.open_exchange()
    ledger = Ledger(config.ledger)
    return LedgerAnchor(
        exchange=exchange,
        identity=identity,
        name=config.name,
        ledger=ledger,
        earlier=earlier_key(folder),
        answers=answers,
    )


def change_key(
    folder: Path, config: SiteConfig, centre: str
) -> tuple[Path, JoinRequest, ConsortiumError | None]:
    """Change a site's key, and put the ledger's head on the exchange under the new one.

    Raises LedgerError, ExchangeError if the ledger is not the newest, or the exchange can't show
    it. Then no key is changed. Raises ConfigurationError as `rotate_key`.

    Parameters
    ----------
    folder : Path
        The site's folder.
    centre : str
        As in `rotate_key`.

    Returns
    -------
    path, request
        As `rotate_key` returns them.
    trouble : ConsortiumError or None
        Why the head was not put on the exchange; the agent does so when it starts.
    """
    if (folder / KEYS).exists():
        open_anchor(folder, config, load_identity(folder)).check()
    path, request = rotate_key(folder, config.name, centre)
    return path, request, open_anchor(folder, config, load_identity(folder)).post()


def _retire(folder: Path) -> None:
    """Move the keys, and the records that they signed, to names for the old key."""
    identity = load_identity(folder)  # unreadable keys must not be moved
    old = folder / _OLD
    if old.exists():
        raise ConfigurationError(
            f"{old} exists: the key was changed before. Remove it once the coordinator has "
            "admitted that change, then change the key again."
        )
    approved = folder / APPROVED
    try:
        if approved.exists():
            approved.rename(folder / f"{_SET_ASIDE}-{fingerprint(identity.public)}")
        (folder / KEYS).rename(old)  # a crash leaves one of the two, never none
    except OSError as error:
        raise ConfigurationError(
            f"The keys in {folder} can't be renamed ({error.strerror}). Check the folder's rights."
        ) from error


def _settle(folder: Path, centre: str) -> PinnedConsortium:
    known = read_pinned(folder)
    if not centre:
        if known is None:
            raise ConfigurationError(
                "The consortium's key is not known here. Name it with --centre, as its "
                "coordinator reads it out."
            )
        return known
    try:
        key = bytes.fromhex(centre)
        if len(key) != 32:
            raise ValueError
    except ValueError as error:
        raise ConfigurationError(
            "--centre is not a key of 64 hexadecimal digits. Ask the coordinator for it."
        ) from error
    if known is not None and known.centre != key:
        raise ConfigurationError(
            f"This site has joined the consortium of {fingerprint(known.centre)}, and --centre has "
            f"the fingerprint {fingerprint(key)}. Make another folder with 'site-agent init' for "
            "that one, and let both share the ledger."
        )
    return known or PinnedConsortium(key)
