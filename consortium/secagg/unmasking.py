"""Opening a round's sum: the seeds are put together and their masks taken off."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consortium.errors import ThresholdError
from consortium.secagg import field, keystream, shamir
from consortium.secagg.correction import is_key_seed, is_self_seed, mask_streams
from consortium.secagg.hub_round import Tally
from consortium.secagg.key_directory import Directory, Session
from consortium.secagg.keystream import Ring
from consortium.secagg.packing import reduced


@dataclass(frozen=True)
class RoundSum:
    """What the hub learns of a round.

    Parameters
    ----------
    number : int
        Round.
    sum : array of a type of `RINGS`, shape (entries,)
        Sum of the survivors' masked vectors modulo 2^bits.
    survivors : tuple of str
        In roster order.
    opened : tuple of array, each of shape (opened entries,)
        What survivors sent openly: each one's in roster order where that is released, else their
        sum modulo 2^(the type's bits) alone; empty if the round has none.
    wrong : tuple of (str, str)
        (holder, owner) for each share that was found wrong and left out: the holder changed it,
        or the owner gave it a false one. A reason to ask, not a proof (see `shamir.recover`).
    lost : tuple of str
        Everybody else.
    seeds : tuple of bytes
        Of the masks that were taken off, one for each site in roster order: a survivor's
        self-mask seed, a lost site's key seed. With them anybody who has the contributions can
        add them again, so they are shown only of a sum that is released as it is.
    request : bytes
        SHA-256 of the request whose answers opened the sum; empty in a round without masks.
    manifests : tuple of bytes
        The survivors', in a round without masks.
    """

    number: int
    sum: Ring
    survivors: tuple[str, ...]
    opened: tuple[Ring, ...]
    wrong: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()
    seeds: tuple[bytes, ...] = ()
    request: bytes = b""
    manifests: tuple[bytes, ...] = ()


class Opener:
    """Recovers seeds from a round's answers, and remembers whose shares were wrong."""

    def __init__(self, session: Session, directory: Directory, tally: Tally) -> None:
        self._session, self._directory, self._tally = session, directory, tally
        self._shares: dict[str, dict[str, bytes]] = {site: {} for site in session.roster.sites}
        # In a complete graph few sets of sites answer for all seeds: their weights are kept.
        self._weights = functools.cache(field.weights_at_zero)
        self.wrong: list[tuple[str, str]] = []

    def open(self) -> RoundSum:
        """Take off every survivor's own mask, and the pair masks with the lost.

        Raises
        ------
        ThresholdError
            If fewer of a site's holders than the threshold have answered, or too many shares
            are wrong; it names the sites.
        """
        tally, number, context = self._tally, self._tally.number, self._tally.context
        survivors, lost = tally.survivors or (), tally.lost()
        self._sort_shares()
        self._check_answers(survivors, lost)
        seeds = {site: self._self_seed(site) for site in survivors}
        seeds |= {site: self._mask_seed(site) for site in lost}
        streams = mask_streams(self._session, self._directory, number, context, survivors, seeds)
        keystream.add_streams(tally.total, *streams)
        return RoundSum(
            number,
            reduced(tally.total, tally.bits),
            survivors,
            opened_vectors(tally),
            tuple(self.wrong),
            lost,
            tuple(seeds[site] for site in self._session.roster.sites),
            hashlib.sha256(tally.request).digest(),
        )

    def _sort_shares(self) -> None:
        """Shares by their owner and holder."""
        for holder, body in self._tally.answers.items():
            survivors, lost = self._tally.held(self._directory.graph.owners(holder))
            listed, sent = (*survivors, *lost), (*body.survivors, *body.lost)
            for owner, share in zip(listed, sent, strict=True):
                self._shares[owner][holder] = share

    def _check_answers(self, survivors: tuple[str, ...], lost: tuple[str, ...]) -> None:
        needed = self._session.roster.threshold
        for owner in (*survivors, *lost):
            found = self._shares[owner]
            if len(found) < needed:
                holders = self._directory.graph.holders(owner)
                missing = [s for s in holders if s in survivors and s not in found]
                raise ThresholdError(
                    f"Round {self._tally.number} has {len(found)} unmask answers and needs "
                    f"{needed}{self._of(holders, owner)}; missing: {', '.join(missing)}; "
                    "wait for them or give up the round."
                )

    def _of(self, holders: tuple[str, ...], owner: str) -> str:
        return f" of the {len(holders)} holders of {owner}" if self._session.roster.holders else ""

    def _self_seed(self, site: str) -> bytes:
        return self._recover(
            site,
            self._shares[site],
            lambda seed: is_self_seed(
                self._session, self._directory, self._tally.number, site, seed
            ),
        )

    def _mask_seed(self, site: str) -> bytes:
        return self._recover(
            site,
            self._shares[site],
            lambda seed: is_key_seed(
                self._session, self._directory, self._tally.number, site, seed
            ),
        )

    def _recover(
        self, site: str, shares: Mapping[str, bytes], genuine: Callable[[bytes], bool]
    ) -> bytes:
        """Recover one site's seed, trying holders that were wrong before last."""
        roster = self._session.roster
        suspects = {holder for holder, _ in self.wrong}
        trusted = sorted(shares, key=lambda name: (name in suspects, roster.point(name)))
        points = {roster.point(name): shares[name] for name in trusted}
        found = shamir.recover(points, roster.threshold, genuine, self._weights)
        if found is None:
            raise ThresholdError(
                f"Too many shares of {site}'s seed for round {self._tally.number} are wrong, of "
                f"those sent by {', '.join(trusted)}; wait for more answers or give up the round."
            )
        self.wrong += [(roster.sites[point - 1], site) for point in found.wrong]
        return found.secret


def opened_vectors(tally: Tally) -> tuple[Ring, ...]:
    """What survivors sent openly, as `RoundSum` has it."""
    if tally.released:
        return tuple(tally.opened[site] for site in tally.roster.ordered(tally.opened))
    return (tally.open_total,) if tally.opened_entries else ()
