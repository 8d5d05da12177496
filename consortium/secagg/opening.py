"""Opening a round's sum: the seeds are put together and their masks taken off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consortium.errors import ThresholdError
from consortium.secagg import field, masks, shamir
from consortium.secagg.directory import Directory, Session
from consortium.secagg.masking import pair_masks
from consortium.secagg.masks import Ring
from consortium.secagg.schedule import commitment, mask_private, public_bytes
from consortium.secagg.tally import Tally


@dataclass(frozen=True)
class RoundSum:
    """What the hub learns of a round.

    Parameters
    ----------
    number : int
        Round.
    sum : array of uint32 or uint64, shape (entries,)
        Sum of the survivors' masked vectors modulo 2^bits.
    survivors : tuple of str
        In roster order.
    opened : mapping of str to array, each of shape (opened entries,)
        What each survivor sent openly, read-only; empty if the round has none.
    wrong : tuple of (str, str)
        (holder, owner) for each share that was found wrong and left out: the holder changed it,
        or the owner gave it a false one. A reason to ask, not a proof (see `shamir.recover`).
    """

    number: int
    sum: Ring
    survivors: tuple[str, ...]
    opened: Mapping[str, Ring]
    wrong: tuple[tuple[str, str], ...] = ()


class Opener:
    """Recovers seeds from a round's answers, and remembers whose shares were wrong."""

    def __init__(self, session: Session, directory: Directory, tally: Tally) -> None:
        self._session, self._directory, self._tally = session, directory, tally
        # The same few sets of sites answer for every seed: their weights are computed once.
        self._weights = functools.cache(field.weights_at_zero)
        self.wrong: list[tuple[str, str]] = []

    def open(self) -> RoundSum:
        """Take off every survivor's own mask, and the pair masks with the lost.

        Raises
        ------
        ThresholdError
            If fewer sites than the threshold have answered, or too many shares are wrong; it
            names the sites.
        """
        tally, number, context = self._tally, self._tally.number, self._tally.context
        survivors, lost = tally.survivors or (), tally.lost()
        self._check_answers(survivors)
        added: list[bytes] = []
        subtracted: list[bytes] = []
        for place, site in enumerate(survivors):
            seed = self._self_seed(site, place)
            subtracted.append(self._directory.keys.self_mask(seed, number, context, site))
        roster = self._session.roster
        for place, site in enumerate(lost):
            private = mask_private(self._session.digest, site, number, self._mask_seed(site, place))
            # What the lost site would have put on its vector is what its partners' masks lack.
            plus, minus = pair_masks(
                self._directory, roster, private, site, survivors, number, context
            )
            added += plus
            subtracted += minus
        masks.add_streams(tally.total, added, subtracted)
        return RoundSum(number, tally.total, survivors, opened_vectors(tally), tuple(self.wrong))

    def _check_answers(self, survivors: tuple[str, ...]) -> None:
        answers, needed = self._tally.answers, self._session.roster.threshold
        if len(answers) < needed:
            missing = ", ".join(site for site in survivors if site not in answers)
            raise ThresholdError(
                f"Round {self._tally.number} has {len(answers)} unmask answers and needs {needed}; "
                f"missing: {missing}; wait for them or give up the round."
            )

    def _self_seed(self, site: str, place: int) -> bytes:
        due = self._directory.commitment(site, self._tally.number)
        shares = {name: body.survivors[place] for name, body in self._tally.answers.items()}
        return self._recover(
            site,
            shares,
            lambda seed: commitment(self._session.digest, site, self._tally.number, seed) == due,
        )

    def _mask_seed(self, site: str, place: int) -> bytes:
        number, digest = self._tally.number, self._session.digest
        due = self._directory.mask_key(site, number)
        shares = {name: body.lost[place] for name, body in self._tally.answers.items()}
        return self._recover(
            site,
            shares,
            lambda seed: public_bytes(mask_private(digest, site, number, seed)) == due,
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


def opened_vectors(tally: Tally) -> dict[str, Ring]:
    """Collect what each survivor sent openly, in roster order."""
    ordered = ((site, tally.opened[site]) for site in tally.roster.ordered(tally.opened))
    return {site: vector for site, vector in ordered if vector is not None}
