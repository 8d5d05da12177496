"""Long-term keys of a party: a signing key and the root of its other secrets, in one file."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ConfigurationError

KEYS = "keys"
_KEY_BYTES = 64


@dataclass(frozen=True, repr=False)
class Identity:
    """A signing key (Ed25519) and 32 further secret bytes."""

    key: Ed25519PrivateKey
    root: bytes

    @property
    def public(self) -> bytes:
        """Public key, 32 bytes."""
        return self.key.public_key().public_bytes_raw()


def create_identity(folder: Path, entropy: bytes) -> Identity:
    """Write a party's new long-term keys, readable by their owner only.

    Raises ConfigurationError if there are keys already, or they can't be written.

    Parameters
    ----------
    entropy : bytes
        64 fresh secret bytes.
    """
    path = folder / KEYS
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(entropy)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{path} exists already. A new key would lock this site out of its studies. Remove "
            "the file yourself if you want a new key."
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written ({error.strerror}).") from error
    return load_identity(folder)


def load_identity(folder: Path, name: str = KEYS) -> Identity:
    """Read a party's long-term keys, or earlier ones that were kept under another name.

    Raises ConfigurationError if they are missing, damaged, or readable by others.
    """
    path = folder / name
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read. Make it with 'init'.") from error
    if mode & 0o077:
        raise ConfigurationError(f"{path} can be read by others. Run chmod 600 on it.")
    if len(data) != _KEY_BYTES:
        raise ConfigurationError(f"{path} is damaged. Restore it from your backup.")
    return Identity(Ed25519PrivateKey.from_private_bytes(data[:32]), data[32:])
