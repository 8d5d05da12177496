"""Secure sums compared with the key stream that they require.

All sites and the centre run one after another in one thread, so a time is the work of all of them.
`secure_peers` compares them with others' secure sums.
"""

import hashlib
import math
import tracemalloc
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.peers import installed
from benchmarks.table import Row, alternate
from consortium.privacy.bounds import Bound
from consortium.privacy.loss import Boost
from consortium.privacy.mechanism import Sharing, plan_mechanism
from consortium.privacy.noise import GaussianSampler
from consortium.secagg import CENTRE, Hub, Participants, Party, threshold
from consortium.secagg.contribution import Vectors
from consortium.secagg.graph import plan_neighbourhood
from consortium.secagg.hub_round import Tally
from consortium.secagg.keystream import CHUNK_BYTES, RINGS, RingType, _encryptor, add_streams
from consortium.secagg.packing import packed_bytes

ENTRIES = 4_000_000


def _secret(purpose: str) -> bytes:
    return hashlib.sha256(f"benchmark {purpose}".encode()).digest()


@dataclass
class Meeting:
    """Sites and a centre that carry their messages to each other at once."""

    sites: int
    rounds: int
    dropouts: int = 0
    colluding: int = 0
    hub: Hub = field(init=False)
    parties: list[Party] = field(init=False)

    def __post_init__(self) -> None:
        names = [f"site{number}" for number in range(self.sites)]
        keys = {n: Ed25519PrivateKey.from_private_bytes(_secret(n)) for n in (*names, CENTRE)}
        public = {name: key.public_key().public_bytes_raw() for name, key in keys.items()}
        graph = plan_neighbourhood(self.sites, self.colluding, self.dropouts)
        least = graph.threshold if graph else threshold(self.sites, self.colluding, self.dropouts)
        most, holders = self.sites - self.dropouts, graph.holders if graph else 0
        roster = Participants(tuple(names), public, least, most, holders)

        def options(name: str) -> dict[str, Any]:
            return {
                "run": "benchmark",
                "roster": roster,
                "rounds": self.rounds,
                "identity": keys[name],
                "secret": _secret(f"secret of {name}"),
            }

        self.hub = Hub(**options(CENTRE))
        self.parties = [Party(name=name, **options(name)) for name in names]

    def set_up(self) -> None:
        """Set up keys and shares."""
        for party in self.parties:
            self.hub.setup.receive_advertisement(party.setup.advertise(b""))
        bundle = self.hub.setup.keys()
        for party in self.parties:
            self.hub.setup.receive_share(party.setup.receive_keys(bundle))
        for party in self.parties:
            party.setup.receive_shares(self.hub.setup.shares(party.name))

    def round(self, number: int, vector: np.ndarray) -> np.ndarray:
        """Sum one vector over all sites, secretly."""
        context = _secret(f"question {number}")
        self.hub.open(number, context, vector.size, 8 * vector.itemsize)
        for party in self.parties:
            self.hub.receive_contribution(party.contribute(number, context, vector))
        request = self.hub.request(number)
        for party in self.parties:
            self.hub.receive_unmasking(party.unmask(number, request))
        return self.hub.sum(number).sum


def key_streams(count: int, nbytes: int) -> None:
    """Generate key stream and do nothing with it: what masks cost at the least."""
    zeros, window = bytes(CHUNK_BYTES), bytearray(CHUNK_BYTES)
    for number in range(count):
        stream = _encryptor(_secret(f"stream {number}"))
        for _ in range(nbytes // CHUNK_BYTES):
            stream.update_into(zeros, window)


def masks(sites: int, vector: np.ndarray) -> None:
    """Put every site's masks on, and take the self-masks off the sum."""
    keys = [_secret(f"stream {number}") for number in range(sites)]
    for each in range(sites + 1):  # the sites, and the centre
        total = np.empty_like(vector)
        add_streams(total, keys[:each], keys[each:], vector)


def sums() -> list[Row]:
    """Time sums of four million entries, as wide as in plans and in 32 bits."""
    widths: tuple[RingType, ...] = (RINGS[16], RINGS[32])
    return [row for sites in (4, 16) for dtype in widths for row in _sum_of(sites, dtype)]


def _sum_of(sites: int, dtype: RingType) -> list[Row]:
    """Return the rows of one number of sites and one width."""
    repeats = 7 if sites == 4 else 3
    vector = np.arange(ENTRIES).astype(dtype)
    meeting = Meeting(sites, repeats)
    meeting.set_up()
    numbers = iter(range(1, repeats + 1))
    streams = sites * (sites + 1)  # a site's own and its pairs' masks; its own at the centre
    acts = [
        lambda: masks(sites, vector),
        lambda: meeting.round(next(numbers), vector),
        lambda: key_streams(streams, vector.nbytes),
    ]
    hidden, ours, limit = alternate(*acts, repeats=repeats)
    bits = 8 * dtype.itemsize
    work = f"secure sum, 4 million numbers of {bits} bits, {sites} sites"
    return [
        Row(f"only the masks, {bits} bits, {sites} sites", hidden, "their streams", limit, "≤ 1.3"),
        Row(work, ours, f"its {streams} key streams", limit, "≤ 2"),
    ]


def running_sum() -> list[Row]:
    """Measure the memory of the centre's sum as contributions of many sites arrive."""
    sites, entries = 1024, 400_000
    names = tuple(f"site{number:04d}" for number in range(sites))
    keys = {name: _secret(name) for name in (*names, CENTRE)}
    roster = Participants(names, keys, sites, sites)
    vector, context = bytes(packed_bytes(entries, 16)), bytes(32)
    tracemalloc.start()
    try:
        tally = Tally(roster, 1, context, entries, 16, 0)
        for name in names:
            tally.add(name, Vectors(context, 16, memoryview(bytearray(vector)), None), b"")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    work = f"sum at the centre as it comes, {entries:,} numbers of 16 bits, {sites:,} sites"
    return [Row(work, peak / 1e6, "the limit", 2000.0, "≤ 1", "MB")]


def sent_bytes() -> list[Row]:
    """Count the bytes that a site sends per number of a release, with envelopes.

    With a numeric boost a site sends two vectors: ê masked, and w·f + ê + g open. Their width
    follows from the noise: here 256 participants at each of four sites and μ = 1 for the round.
    """
    entries, rows = 405_450, []
    meeting = Meeting(4, 2)
    meeting.set_up()
    party, context = meeting.parties[0], _secret("question")
    boosts: tuple[Boost, ...] = ("exact", 10_000)
    for number, boost in enumerate(boosts, start=1):
        mechanism = plan_mechanism(
            Sharing("cape", colluding=1, boost=boost),
            entries=entries,
            bound=Bound(1.0),
            units=(256,) * 4,
            target=1.0,
        )
        share = mechanism.protect(0, np.zeros(entries), GaussianSampler(_secret("noise")))
        opened = share.opened if mechanism.opened_entries else None
        bits = mechanism.lattice.bits
        size = len(party.contribute(number, context, share.masked, opened, bits=bits))
        work = f"sent per released number, boost {boost}, {bits} bits"
        rows.append(
            Row(work, size / entries, "a float64 in the clear", 8.0, "≤ 4.5 bytes", "bytes")
        )
    return rows


def noise() -> list[Row]:
    """Time draws of discrete Gaussian noise, exact in both cases."""
    sampler, size = GaussianSampler(_secret("noise")), 20_000
    work = "20,000 draws of exact noise, σ = 10⁶ steps"
    if not installed("OpenDP"):
        (ours,) = alternate(lambda: sampler.draw(10**6, size))
        return [Row(work, ours, "OpenDP", None, "≥ 10", inverse=True)]
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement, zeros = dp.m.make_gaussian(*space, scale=1e6), [0] * size
    ours, theirs = alternate(
        lambda: sampler.draw(10**6, size), lambda: measurement(zeros), repeats=5
    )
    return [Row(work, ours, "OpenDP", theirs, "≥ 10", inverse=True)]


def growth() -> list[Row]:
    """Time one site's share of set-up and of a round of 1,000 entries; the peer is 32 sites.

    A third of the sites may collude. A round's part grows with the number of neighbours. Set-up
    checks one signature of every site, so its part finally grows with the number of sites.
    """
    vector, times = np.arange(1000, dtype=np.uint32), {}
    for sites in (4, 16, 32, 64, 256, 1024):
        meeting = Meeting(sites, 3, colluding=sites // 3)
        (first,) = alternate(meeting.set_up, repeats=1)
        numbers = iter((1, 2, 3))
        (each,) = alternate(lambda: meeting.round(next(numbers), vector), repeats=3)  # noqa: B023
        times[sites] = first / sites, each / sites
    rows = []
    for sites, pair in times.items():
        reach = f"≤ {max(1.0, math.log(sites) / math.log(32)):.2f}"
        for what, ours, peer in zip(("set-up of 3 rounds", "round"), pair, times[32], strict=True):
            rows.append(Row(f"{what}, per site, {sites} sites", ours, "32 sites", peer, reach))
    return rows
