"""Credentials of a party for an exchange: one YAML file that only its owner can read.

Its content is never shown, neither in an error nor in a ``repr``.
"""

import os
import stat
from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from consortium.base.frozen_model import FrozenModel, first_problem
from consortium.base.strict_yaml import PlainYamlError, parse_yaml
from consortium.errors import ConfigurationError

_Model = TypeVar("_Model", bound=BaseModel)


class S3Credentials(FrozenModel):
    """Credentials of a bucket. Missing ones are searched where Amazon's own tools search."""

    model_config = ConfigDict(hide_input_in_errors=True)

    endpoint: str | None = Field(default=None, pattern=r"^https?://[^\s/@]+/?$")
    """Address of the server, as https://host:port; none for Amazon's."""
    key: SecretStr | None = None
    """Access key id."""
    secret: SecretStr | None = None
    """Secret access key."""
    region: str | None = Field(default=None, pattern=r"^[a-z0-9-]+$")
    """Region that the bucket is in."""
    ca_bundle: Path | None = None
    """PEM file of the authorities that may vouch for the server."""

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.key is None) != (self.secret is None):
            raise ValueError("'key' and 'secret' belong together")
        return self


class SftpCredentials(FrozenModel):
    """For an SFTP server, whose own key must be known before anything is said to it."""

    model_config = ConfigDict(hide_input_in_errors=True)

    known_hosts: Path
    """File with the server's public key, as ssh-keyscan prints it. Compare it with the key that the
    server's owner publishes."""
    key_file: Path | None = None
    """Private key to log in with, readable by its owner only."""
    passphrase: SecretStr | None = None
    """Opens the private key. It is never sent."""
    password: SecretStr | None = None
    """Password of the account, for a server that accepts no key."""

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.key_file is None) == (self.password is None):
            raise ValueError("give either 'key_file' or 'password'")
        if self.passphrase is not None and self.key_file is None:
            raise ValueError("'passphrase' belongs to a 'key_file'")
        return self


def load_credentials(path: Path, model: type[_Model]) -> _Model:
    """Read a credentials file; relative paths in it are meant from its folder.

    Raises ConfigurationError if it is missing, others may read it, a field is unknown, missing or
    malformed, or a file that it names is not there.
    """
    text = _read_private(path)
    try:
        values = parse_yaml(text)
    except PlainYamlError:  # its cause may quote the file
        raise ConfigurationError(f"{path} is not YAML. Write lines 'field: value'.") from None
    try:
        found = model.model_validate(values)
    except ValidationError as error:
        problem = first_problem(error, model, secret=True)
        fields = ", ".join(model.model_fields)
        raise ConfigurationError(f"{path}: {problem} The fields are {fields}.") from None
    named = {name: value for name, value in found if isinstance(value, Path)}
    return found.model_copy(
        update={name: _beside(path, name, value) for name, value in named.items()}
    )


def check_private(path: Path, status: os.stat_result) -> None:
    """Refuse a file that others on this machine may read; raises ConfigurationError if they may."""
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigurationError(f"{path} may be read by others. Run 'chmod 600' on it.")


def _read_private(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            check_private(path, os.fstat(file.fileno()))
            return file.read()
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(
            f"{path} can't be read. Name the YAML file with the exchange's credentials."
        ) from None


def _beside(path: Path, field: str, value: Path) -> Path:
    try:
        found = path.parent / value.expanduser()
    except RuntimeError:  # the home of a user who does not exist on this machine
        found = path.parent / value
    if not _is_file(found):
        raise ConfigurationError(f"{path}: field '{field}': {found} is not a file. Correct it.")
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no disk can have
        return False
