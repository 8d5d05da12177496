"""Names, kinds and limits of the messages on the exchange, in one place for centre and sites."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ANNOUNCEMENT, PRESENT, START = "announcement", "present", "start"
QUERY, REFUSAL, END = "query", "refusal", "end"
MOST_ANNOUNCEMENT = 2 << 20
MOST_NOTICE = 64 << 10
_SLOWEST_POLL = 0.25
_EAGERNESS = 0.05
_INSTANT = 1e-6  # s; a shorter rest may be too small to add to a large clock reading


@dataclass(frozen=True)
class Names:
    """Where a run's messages lie on the exchange.

    Parameters
    ----------
    run : str
    """

    run: str

    def study(self) -> str:
        """The centre's announcement."""
        return f"runs/{self.run}/study"

    def present(self, site: str) -> str:
        """A site's word that it is there."""
        return f"runs/{self.run}/present/{site}"

    def start(self) -> str:
        """The centre's word which sites the run starts with."""
        return f"runs/{self.run}/start"

    def setup(self, kind: str, site: str | None = None) -> str:
        """A set-up message: of a site, or a bundle of the centre."""
        return f"runs/{self.run}/{kind}" + (f"/{site}" if site else "")

    def round(self, number: int, kind: str, site: str | None = None) -> str:
        """A message of a round."""
        return f"runs/{self.run}/{number:05d}/{kind}" + (f"/{site}" if site else "")

    def array(self, digest: str) -> str:
        """A public array."""
        return f"runs/{self.run}/public/{digest}"

    def refusals(self) -> str:
        """Where refusals lie."""
        return f"runs/{self.run}/refusal"

    def refusal(self, site: str) -> str:
        """Why a site takes no further part."""
        return f"runs/{self.run}/refusal/{site}"

    def end(self) -> str:
        """The centre's last word."""
        return f"runs/{self.run}/end"


@dataclass
class Clock:
    """Time as an argument: a monotonic clock, a way to pass it, and the time of day (Unix)."""

    now: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], None] = field(default=time.sleep)
    wall: Callable[[], float] = field(default=time.time)

    def polls(self, seconds: float, pace: float = 0.002) -> Iterator[float]:
        """Yield the seconds left, again and again, until there are none.

        A rest is a twentieth of the time waited so far, so that whoever waits is late by
        little, and not below ``pace`` seconds or above a quarter of a second.
        """
        start = self.now()
        while (left := seconds - (waited := self.now() - start)) > _INSTANT:
            yield left
            step = min(max(waited * _EAGERNESS, pace), max(_SLOWEST_POLL, pace))
            self.pause(min(step, left))


def run_secret(root: bytes, run: str, purpose: str) -> bytes:
    """32 secret bytes of a run, from a party's long-term secret (HKDF-SHA256, RFC 5869)."""
    info = f"consortium {purpose} 1|{run}".encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(root)
