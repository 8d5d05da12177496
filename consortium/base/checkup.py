"""Checks of a party's installation before a study."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal
from urllib.error import URLError
from urllib.request import urlopen

from consortium.base.atomic import write_bytes
from consortium.errors import ConsortiumError

SCARCE = 200 << 20
LITTLE = 2 << 30
"""Bytes of free disk below which a program may stop, or soon may."""
_PATIENCE = 3.0  # s for Prefect's answer


@dataclass(frozen=True)
class Check:
    """One check of an installation, and its result."""

    name: str
    """Subject of the check."""
    state: Literal["ok", "warn", "fail"]
    message: str
    """One sentence, which is shown only to the user; an error's message has its own remedy."""
    remedy: str = ""
    """What to do, if anything that the message does not state."""

    @property
    def line(self) -> str:
        """As it is printed."""
        return f"{self.state:<5} {self.name}: {self.message} {self.remedy}".rstrip()


def free_bytes(folder: Path) -> int:
    """Return the number of free bytes on a folder's disk."""
    return shutil.disk_usage(folder).free


@dataclass(frozen=True)
class Surroundings:
    """Parts of a party's installation that are not in its folder, for a check-up."""

    now: Callable[[], float]
    """Seconds since 1970."""
    token: str
    """A fresh random lower-case word, for the probe's name."""
    environment: Mapping[str, str]
    """Environment variables."""
    free: Callable[[Path], int] = field(default=free_bytes)
    """Free bytes of a folder's disk."""


def run_check(name: str, look: Callable[[], Check]) -> Check:
    """Return the result of a check of an installation, or a failure if it raises an error."""
    try:
        return look()
    except ConsortiumError as error:
        return Check(name, "fail", str(error))
    except Exception as error:  # a doctor does not fall ill
        message = f"It can't be looked at ({type(error).__name__}: {error})."
        return Check(name, "fail", message, "Check the folder's rights, or report this as a fault.")


_STATES = {"ok": 0, "warn": 1, "fail": 2}


def as_metrics(program: str, checks: Sequence[Check], now: float) -> str:
    """Return the results of checks in Prometheus's text format.

    Parameters
    ----------
    program : str
        Name of the program that was checked.
    now : float
        Seconds since 1970.
    """
    name = "cape_consortium_check"
    label = f'program="{program}"'
    lines = [
        f"# HELP {name} Result of a check of doctor: 0 ok, 1 warning, 2 failure.",
        f"# TYPE {name} gauge",
        *(f'{name}{{{label},check="{each.name}"}} {_STATES[each.state]}' for each in checks),
        f"# HELP {name}_time_seconds Unix time of the checks.",
        f"# TYPE {name}_time_seconds gauge",
        f"{name}_time_seconds{{{label}}} {now:.0f}",
    ]
    return "\n".join(lines) + "\n"


def write_metrics(path: Path, program: str, checks: Sequence[Check]) -> None:
    """Write the results of checks for Prometheus's node exporter, readable for every user.

    Raises OutputError if that is impossible.
    """
    write_bytes(path, as_metrics(program, checks, time.time()).encode())
    with suppress(OSError):  # a disk without rights
        path.chmod(0o644)


def disk(free: int, remedy: str = "Make room on the disk.") -> Check:
    """Check the free disk space of a party's installation."""
    message = f"{free / (1 << 30):.1f} GiB are free."
    if free >= LITTLE:
        return Check("disk", "ok", message)
    return Check("disk", "fail" if free < SCARCE else "warn", message, remedy)


def software(names: Sequence[str]) -> Check:
    """Report the versions of Python and of some packages, as a check of an installation."""
    python = ".".join(map(str, sys.version_info[:3]))
    libraries = ", ".join(f"{name} {version(name)}" for name in names)
    return Check("software", "ok", f"Python {python}, {libraries}.")


def prefect_server(environment: Mapping[str, str], otherwise: str) -> Check:
    """Check whether Prefect's server answers; ``otherwise`` is the remedy without one."""
    url = environment.get("PREFECT_API_URL", "")
    if not url:
        message = "PREFECT_API_URL is not set, so Prefect's own profile decides."
        return Check("Prefect", "warn", message, f"Set it, or {otherwise}.")
    remedy = f"Start Prefect's server, correct PREFECT_API_URL, or {otherwise}."
    if not url.startswith(("http://", "https://")):
        return Check("Prefect", "fail", "PREFECT_API_URL is not an http address.", remedy)
    try:
        with urlopen(f"{url.rstrip('/')}/health", timeout=_PATIENCE) as answer:  # noqa: S310 - http
            healthy = answer.status == 200
    except (URLError, OSError, ValueError) as error:
        return Check("Prefect", "fail", f"Its API does not answer ({error}).", remedy)
    if not healthy:
        return Check("Prefect", "fail", "Its API says that it is not well.", remedy)
    return Check("Prefect", "ok", "Its API answers.")
