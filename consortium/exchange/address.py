"""Exchanges by the address that a user writes."""

import re
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from consortium.errors import ConfigurationError
from consortium.exchange.base import Exchange
from consortium.exchange.credentials import S3Credentials, SftpCredentials, load_credentials
from consortium.exchange.directory import DirectoryExchange

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PATH = re.compile(r"(/[A-Za-z0-9_=+~-][A-Za-z0-9._=+~-]*)*/?")
_FORMS = "a directory, file:///path, s3://bucket/prefix or sftp://user@host[:port]/path"


def open_exchange(place: str | Path, credentials: Path | None = None) -> Exchange:
    """Open the exchange that an address names.

    Raises ConfigurationError if the address or the credentials are wrong, or support for its kind
    is not installed. Raises ExchangeError if the place can't be used.

    Parameters
    ----------
    place : str or Path
        A directory, or a URL: ``file:///path``, ``s3://bucket/prefix`` or
        ``sftp://user@host[:port]/path``.
    credentials : Path, optional
        YAML file with the fields of `S3Credentials` or `SftpCredentials`, readable by its owner
        only. An S3 place without it uses what Amazon's own tools would.
    """
    if isinstance(place, Path) or "://" not in place:
        return DirectoryExchange(Path(place))
    try:
        url = urlsplit(place)
        url.port  # noqa: B018 - reading it checks it
    except ValueError:
        raise ConfigurationError(
            f"The exchange's address must be {_FORMS}, and it has another form. Correct it."
        ) from None
    if url.password is not None:
        raise ConfigurationError(
            "An exchange's address must not contain a password. Put it into a credentials file."
        )
    openers = {"file": _directory, "s3": _s3, "sftp": _sftp}
    if url.scheme not in openers or url.query or url.fragment:
        raise ConfigurationError(
            f"The exchange's address must be {_FORMS}, got '{url.scheme[:20]}:'. Correct it."
        )
    return openers[url.scheme](url, credentials)


def _directory(url: SplitResult, _: Path | None) -> Exchange:
    if url.netloc not in ("", "localhost") or len(url.path) < 2:
        raise ConfigurationError(
            "A file address must have three slashes, such as file:///path. Correct it."
        )
    return DirectoryExchange(Path(unquote(url.path)))


def _s3(url: SplitResult, credentials: Path | None) -> Exchange:
    if not _BUCKET.fullmatch(url.netloc) or not _PATH.fullmatch(url.path):
        raise ConfigurationError(
            "An S3 address must be s3://bucket/prefix with letters, digits, '-', '_' and '.'. "
            "Correct it."
        )
    try:
        from consortium.exchange.s3 import S3Exchange
    except ImportError as error:
        raise _not_installed("s3") from error
    entry = S3Credentials() if credentials is None else load_credentials(credentials, S3Credentials)
    return S3Exchange(url.netloc, url.path.strip("/"), entry)


def _sftp(url: SplitResult, credentials: Path | None) -> Exchange:
    if not url.username or not url.hostname or len(url.path) < 2 or not _PATH.fullmatch(url.path):
        raise ConfigurationError(
            "An SFTP address must be sftp://user@host[:port]/path with letters, digits, '-', '_' "
            "and '.'. Correct it."
        )
    if credentials is None:
        raise ConfigurationError(
            "An SFTP exchange requires a credentials file with 'known_hosts' and 'key_file'. "
            "Name it with --credentials."
        )
    try:
        from consortium.exchange.sftp import Address, SftpExchange
    except ImportError as error:
        raise _not_installed("sftp") from error
    entry = load_credentials(credentials, SftpCredentials)
    address = Address(unquote(url.username), url.hostname, url.port or 22)
    return SftpExchange(address, url.path, entry)


def _not_installed(extra: str) -> ConfigurationError:
    return ConfigurationError(
        f"{extra}:// exchanges require packages that are not in requirements.txt of a release. "
        f"Install its requirements-all.txt, or run 'pip install \"cape-consortium[{extra}]\"'."
    )
