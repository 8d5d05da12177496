"""The parties of a run, their keys, and the minimum number of survivors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ProtocolError
from consortium.secagg import crypto
from consortium.secagg.graph import least_safe
from consortium.secagg.threshold import most_dropouts, threshold

CENTRE = "centre"
"""The hub's reserved name."""
NAME_BYTES = 63


@dataclass(frozen=True)
class Participants:
    """Everything that the parties of a run have agreed on beforehand.

    Raises ProtocolError if names or keys are missing, doubled or malformed, or the numbers are
    unsafe even if no site works for the centre.
    """

    sites: tuple[str, ...]
    """Names in an order that all share; a site's place is its evaluation point less one."""
    keys: Mapping[str, bytes]
    """Ed25519 public keys (32 bytes) of all sites and of `CENTRE`."""
    threshold: int
    """t, shares that open a seed (see `consortium.secagg.threshold`, or, in a random graph,
    `consortium.secagg.graph`); 0 for a run in which nothing is masked."""
    minimum: int
    """m, fewest sites that a sum may have."""
    holders: int = 0
    """k, number of sites that each site draws as holders of its shares; 0 for all sites."""

    def __post_init__(self) -> None:
        self._check_names()
        self._check_numbers()

    def _check_names(self) -> None:
        names = [*self.sites, CENTRE]
        sound = all(0 < len(name.encode()) <= NAME_BYTES for name in names)
        if not (sound and len(set(names)) == len(names) and set(self.keys) == set(names)):
            raise ProtocolError(
                f"The roster must give one key to each site and to {CENTRE!r}, with distinct names "
                f"of 1 to {NAME_BYTES} bytes. Correct the sites or the keys."
            )
        keys = set(self.keys.values())
        if len(keys) != len(names) or {len(key) for key in keys} != {crypto.KEY_BYTES}:
            raise ProtocolError(
                "The roster's keys must be 32 bytes each and all different. Ask the site whose "
                "key is shared or malformed for its own."
            )

    def _check_numbers(self) -> None:
        sites = len(self.sites)
        lost = len(self.sites) - self.minimum
        if not 1 <= self.minimum <= sites:
            raise ProtocolError(
                f"The roster's minimum of {self.minimum} is not among 1 to {sites} sites. "
                "Correct it."
            )
        if self.holders:
            self._check_graph(sites, lost)
        elif self.threshold:
            safe = lost <= most_dropouts(sites, 0) and self.threshold >= threshold(sites, 0, lost)
            if not (safe and self.threshold <= self.minimum):
                raise ProtocolError(
                    f"A threshold of {self.threshold} with {self.minimum} of {sites} sites is "
                    "unsafe or can't be met. Take it from consortium.secagg.threshold."
                )

    def _check_graph(self, sites: int, lost: int) -> None:
        if not least_safe(sites, lost, self.holders, self.threshold):
            raise ProtocolError(
                f"A threshold of {self.threshold} of {self.holders} holders with {self.minimum} of "
                f"{sites} sites is unsafe. Take both from consortium.secagg.graph."
            )

    @property
    def masked(self) -> bool:
        """Whether this run has masks at all."""
        return self.threshold > 0

    @property
    def answers(self) -> int:
        """Answers to an unmask request that will do, whoever they come from.

        In a random graph fewer may: a seed needs t of its own holders.
        """
        return self.minimum if self.holders else self.threshold

    def check_identity(self, name: str, identity: Ed25519PrivateKey, secret: bytes) -> None:
        """Refuse an identity that is not the roster's, and a secret of another length than 32.

        Raises ProtocolError.
        """
        if self.keys.get(name) != identity.public_key().public_bytes_raw():
            raise ProtocolError(
                f"The identity of {name} is not the one on the roster. Use the key it joined with."
            )
        if len(secret) != crypto.KEY_BYTES:
            raise ProtocolError(f"The run's secret of {name} must have 32 bytes. Draw it again.")

    def point(self, site: str) -> int:
        """Return the evaluation point of a site's shares."""
        return self.sites.index(site) + 1

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names in the roster's order."""
        chosen = set(names)
        return tuple(site for site in self.sites if site in chosen)

    def session(self, run: str, rounds: int) -> bytes:
        """Return the SHA-256 of all that the parties of a run must agree on before they start."""
        keys = b"".join(self.keys[name] for name in (*self.sites, CENTRE))
        graph = (self.holders,) if self.holders else ()
        numbers = (self.threshold, self.minimum, rounds, *graph)
        return crypto.digest("consortium session 1", run, *numbers, keys, *self.sites)
