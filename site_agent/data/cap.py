"""The participants that a site includes if more qualify than a study was planned for.

At most twice the nominal number takes part: those with the smallest keyed hashes of their labels.
Adding, removing or replacing one participant then exchanges at most one. All who qualify are
charged. So later studies exclude the same participants, whatever others there are.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consortium.engine.names import run_secret
from consortium.membership.keys import Identity
from consortium.privacy.mechanism import HEADROOM
from consortium.study.spec import Study
from site_agent.labels import canonical_label

_BYTES = 8


@dataclass(frozen=True)
class Cap:
    """Maximum number of units of privacy of a site, and the secret that orders them."""

    most: int | None = None
    """Participants or families; None for any number."""
    key: bytes = b""
    """At most 64 bytes."""

    @classmethod
    def of(cls, study: Study, site: str, identity: Identity) -> "Cap":
        """Return the cap of a site in a study.

        The key is the same in every run of a study, and reveals nothing about other studies' keys.
        """
        nominal = None if study.participants is None else study.participants.get(site)
        key = run_secret(identity.root, study.study, "participants")
        return cls(None if nominal is None else HEADROOM * nominal, key)

    def hashes(self, names: Iterable[str]) -> NDArray[np.uint64]:
        """Return the keyed hash of each name (BLAKE2b, RFC 7693): 64 bits, alike in any company."""
        whole = b"".join(
            hashlib.blake2b(
                canonical_label(name).encode(errors="surrogateescape"),
                digest_size=_BYTES,
                key=self.key,
                person=b"cape cap",
            ).digest()
            for name in names
        )
        return np.frombuffer(whole, dtype="<u8").astype(np.uint64)

    def taken(self, names: Sequence[str]) -> list[int]:
        """Return the places of the names with the smallest hashes, in ascending order."""
        if self.most is None or len(names) <= self.most:
            return list(range(len(names)))
        order = np.argsort(self.hashes(names), kind="stable")
        return sorted(order[: self.most].tolist())


NO_CAP = Cap()
