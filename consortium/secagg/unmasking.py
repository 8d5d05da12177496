"""Unmasking of a round's sum: the seeds are recovered and their masks removed.

Also the hub's unmask request, and the conditions under which a site may answer it. The same
functions compute the masks of a sum for the hub and for the parties that verify its work later.
"""

import functools
import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from consortium.errors import ProtocolError, ThresholdError
from consortium.secagg import keystream, messages, shamir
from consortium.secagg.hub_round import Tally
from consortium.secagg.key_directory import Directory, KeySession
from consortium.secagg.key_schedule import commitment, mask_private, public_bytes
from consortium.secagg.keystream import Ring, pair_masks
from consortium.secagg.packing import reduce_modulo
from consortium.secagg.participants import CENTRE


def is_self_seed(
    session: KeySession, directory: Directory, number: int, site: str, seed: bytes
) -> bool:
    """Return whether a site has committed to this seed of its self-mask."""
    return commitment(session.digest, site, number, seed) == directory.commitment(site, number)


def is_key_seed(
    session: KeySession, directory: Directory, number: int, site: str, seed: bytes
) -> bool:
    """Return whether a site's public key of a round comes from this seed."""
    private = mask_private(session.digest, site, number, seed)
    return public_bytes(private) == directory.mask_key(site, number)


def mask_streams(
    session: KeySession,
    directory: Directory,
    number: int,
    context: bytes,
    survivors: Collection[str],
    seeds: Mapping[str, bytes],
) -> tuple[list[bytes], list[bytes]]:
    """Stream keys to add to the survivors' masked sum, and to subtract, to be left with the sum.

    Parameters
    ----------
    session, directory
        The run's set-up.
    number : int
        Round.
    context : bytes
        Digest of the round's question.
    survivors : collection of str
        Sites whose vectors are in the sum.
    seeds : mapping of str to bytes
        Of every site: a survivor's self-mask seed, a lost site's key seed.
    """
    added: list[bytes] = []
    subtracted: list[bytes] = []
    alive = set(survivors)
    for site in session.roster.sites:
        if site in alive:
            subtracted.append(directory.keys.self_mask(seeds[site], number, context, site))
            continue
        private = mask_private(session.digest, site, number, seeds[site])
        # The masks of its partners lack exactly those that the lost site would have added.
        near = [peer for peer in directory.graph.neighbours(site) if peer in alive]
        roster = session.roster
        plus, minus = pair_masks(
            directory=directory,
            roster=roster,
            private=private,
            site=site,
            peers=near,
            number=number,
            context=context,
        )
        added += plus
        subtracted += minus
    return added, subtracted


def read_unmask_request(
    session: KeySession, number: int, context: bytes, data: bytes
) -> messages.Request:
    """Check a request, for which only public data are needed.

    Raises ProtocolError if it is not the hub's for this round and question, or the two lists are
    not, in roster order, every site on one of them. Raises ThresholdError if it names fewer
    survivors than the roster's minimum.

    Parameters
    ----------
    number : int
        Round.
    context : bytes
        Digest of the round's question.
    """
    opened = session.unseal(messages.UNMASK, data, len(data), CENTRE, number)
    body = messages.decode(messages.Request, opened.body, CENTRE)
    if body.context != context:
        raise ProtocolError(
            f"The unmask request of round {number} belongs to another question. Give up the round."
        )
    _check_lists(session, number, body)
    return body


def read_manifest(
    session: KeySession, number: int, context: bytes, site: str, data: bytes
) -> messages.Manifest:
    """Check with public data that a manifest is the site's own, for this round and question.

    Raises ProtocolError if it is not.
    """
    opened = session.unseal(messages.MANIFEST, data, len(data), site, number)
    body = messages.decode(messages.Manifest, opened.body, site)
    if body.context != context:
        raise ProtocolError(
            f"The manifest of {site} for round {number} belongs to another question. Discard it."
        )
    return body


def _check_lists(session: KeySession, number: int, body: messages.Request) -> None:
    roster = session.roster
    survivors = roster.ordered(body.survivors)
    lost = roster.ordered(body.lost)
    complete = set(survivors).isdisjoint(lost) and len(survivors) + len(lost) == len(roster.sites)
    lists = (body.survivors, body.lost)
    if not complete or (survivors, lost) != lists or len(body.manifests) != len(survivors):
        raise ProtocolError(
            f"The unmask request of round {number} doesn't list every site once, in roster order. "
            "Give up the round."
        )
    if len(survivors) < roster.minimum:
        raise ThresholdError(
            f"The unmask request of round {number} names {len(survivors)} survivors where "
            f"{roster.minimum} are the minimum, without {', '.join(lost)}. Give up the round."
        )


def check_request(
    session: KeySession,
    number: int,
    context: bytes,
    name: str,
    data: bytes,
    neighbours: Collection[str],
) -> messages.Request:
    """Check a request before the site ``name``, which has contributed, answers it.

    It must contain the manifests of the site's ``neighbours`` in the graph of masks, under their
    own signatures. A centre that opened a sum before a colluding site had sent its vector could let
    that site choose the total. Each site is checked by all of its neighbours, which in a complete
    graph are all others. Raises ProtocolError as `read_unmask_request`, or if the site itself is
    not among the survivors, or a surviving neighbour's manifest is missing.
    """
    if not session.roster.masked:
        raise ProtocolError("This run was set up without masks, so it has no unmask request.")
    body = read_unmask_request(session, number, context, data)
    if name not in body.survivors:
        raise ProtocolError(
            f"The unmask request of round {number} lists {name} as lost, though it has "
            "contributed: its vector came too late or was held back. Give up the round."
        )
    _check_manifests(session, number, body, {name, *neighbours})
    return body


def _check_manifests(
    session: KeySession, number: int, body: messages.Request, watched: Collection[str]
) -> None:
    for site, manifest in zip(body.survivors, body.manifests, strict=True):
        if site in watched:
            read_manifest(session, number, body.context, site, manifest)


@dataclass(frozen=True)
class RoundSum:
    """Result of a round at the hub."""

    number: int
    """Round."""
    sum: Ring
    """Sum of the survivors' masked vectors modulo 2^bits, shape (entries,), of a type of
    `RINGS`."""
    survivors: tuple[str, ...]
    """In roster order."""
    opened: tuple[Ring, ...]
    """Open vectors of the survivors, each of shape (opened entries,), in roster order. If they are
    not released, only their sum modulo 2^(the type's bits). Empty if the round has none."""
    wrong: tuple[tuple[str, str], ...] = ()
    """(holder, owner) for each share that was found wrong and left out: the holder changed it, or
    the owner gave it a false one. A reason to ask, not a proof (see `shamir.recover`)."""
    lost: tuple[str, ...] = ()
    """Everybody else."""
    seeds: tuple[bytes, ...] = ()
    """Seeds of the removed masks, one for each site in roster order: a survivor's self-mask seed,
    or a lost site's key seed. With them any party that has the contributions can add them again, so
    they are published only for a sum that is released."""
    request: bytes = b""
    """SHA-256 of the request whose answers opened the sum; empty in a round without masks."""
    manifests: tuple[bytes, ...] = ()
    """The survivors', in a round without masks."""


class Opener:
    """Recovers seeds from a round's answers, and records the sites whose shares were wrong."""

    def __init__(self, session: KeySession, directory: Directory, tally: Tally) -> None:
        self._session = session
        self._directory = directory
        self._tally = tally
        self._shares: dict[str, dict[str, bytes]] = {site: {} for site in session.roster.sites}
        # In a complete graph few sets of sites answer for all seeds: their weights are kept.
        self._weights = functools.cache(shamir.weights_at_zero)
        self.wrong: list[tuple[str, str]] = []

    def open(self) -> RoundSum:
        """Take off every survivor's own mask, and the pair masks with the lost.

        Raises ThresholdError if fewer of a site's holders than the threshold have answered, or too
        many shares are wrong. It names the sites.
        """
        tally = self._tally
        number = self._tally.number
        context = self._tally.context
        survivors = tally.survivors or ()
        lost = tally.lost()
        self._sort_shares()
        self._check_answers(survivors, lost)
        seeds = {site: self._self_seed(site) for site in survivors}
        seeds |= {site: self._mask_seed(site) for site in lost}
        streams = mask_streams(
            session=self._session,
            directory=self._directory,
            number=number,
            context=context,
            survivors=survivors,
            seeds=seeds,
        )
        keystream.add_streams(tally.total, *streams)
        return RoundSum(
            number=number,
            sum=reduce_modulo(tally.total, tally.bits),
            survivors=survivors,
            opened=opened_vectors(tally),
            wrong=tuple(self.wrong),
            lost=lost,
            seeds=tuple(seeds[site] for site in self._session.roster.sites),
            request=hashlib.sha256(tally.request).digest(),
        )

    def _sort_shares(self) -> None:
        """Return the shares by their owner and holder."""
        for holder, body in self._tally.answers.items():
            survivors, lost = self._tally.held(self._directory.graph.owners(holder))
            listed = (*survivors, *lost)
            sent = (*body.survivors, *body.lost)
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
                    f"{needed}{self._of(holders, owner)}; missing: {', '.join(missing)}. "
                    "Wait for them or give up the round."
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
                f"those sent by {', '.join(trusted)}. Wait for more answers or give up the round."
            )
        self.wrong += [(roster.sites[point - 1], site) for point in found.wrong]
        return found.secret


def opened_vectors(tally: Tally) -> tuple[Ring, ...]:
    """Return the survivors' open vectors, as in `RoundSum`."""
    if tally.released:
        return tuple(tally.opened[site] for site in tally.roster.ordered(tally.opened))
    return (tally.open_total,) if tally.opened_entries else ()
