"""Names, kinds and limits of the messages on the exchange, in one place for centre and sites."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ANNOUNCEMENT, QUERY, REFUSAL, END = "announcement", "query", "refusal", "end"
MOST_ANNOUNCEMENT = 2 << 20
MOST_NOTICE = 64 << 10
_SLOWEST_POLL = 0.25
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

    def setup(self, kind: str, site: str | None = None) -> str:
        """A set-up message: of a site, or a bundle of the centre."""
        return f"runs/{self.run}/{kind}" + (f"/{site}" if site else "")

    def round(self, number: int, kind: str, site: str | None = None) -> str:
        """A message of a round."""
        return f"runs/{self.run}/{number:05d}/{kind}" + (f"/{site}" if site else "")

    def array(self, digest: str) -> str:
        """A public array."""
        return f"runs/{self.run}/public/{digest}"

    def refusal(self, site: str) -> str:
        """Why a site takes no further part."""
        return f"runs/{self.run}/refusal/{site}"

    def end(self) -> str:
        """The centre's last word."""
        return f"runs/{self.run}/end"


@dataclass
class Clock:
    """Time as an argument: a monotonic clock and a way to pass it."""

    now: Callable[[], float] = field(default=time.monotonic)
    pause: Callable[[float], None] = field(default=time.sleep)

    def polls(self, seconds: float) -> Iterator[float]:
        """Yield the seconds left, soon at first and then ever more slowly; end at the deadline."""
        start, step = self.now(), 0.002
        while (left := seconds - (self.now() - start)) > _INSTANT:
            yield left
            self.pause(min(step, left))
            step = min(step * 1.3, _SLOWEST_POLL)


def run_secret(root: bytes, run: str, purpose: str) -> bytes:
    """32 secret bytes of a run, from a party's long-term secret (HKDF-SHA256, RFC 5869)."""
    info = f"consortium {purpose} 1|{run}".encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(root)
