"""Table 3.1: bytes that each site and the centre send and receive for one private sum.

``python -m benchmarks.replication.communication`` prints tables and writes
docs/images/communication.png in a minute. Messages are those of the protocol, set-up included,
with signatures and envelopes; the question of the round, which is the analysis's, is not counted. A
third of the sites may collude. ``exact`` sends one masked vector of 16 bits a number, a numeric
boost, as Algorithm 3.2, a second one that the centre may read. The chapter's other scheme
(Heikkilä and others, 2017) is computed for M compute nodes and 8 bytes a number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.replication.common import colluders
from benchmarks.replication.drawing import panels
from benchmarks.secagg import Meeting
from benchmarks.timing import show
from consortium.algorithms.base import Array

BITS, FLOAT = 16, 8
NODES = 10
"""M, the other scheme's compute nodes."""
ENTRIES = (1_000, 10_000, 100_000, 1_000_000)
SITES = (4, 16, 64, 128, 256)
FEW_ENTRIES = 100
"""D along the axis of S, small because otherwise the part of S is not visible."""
CONTEXT = bytes(32)


@dataclass
class Traffic:
    """Bytes of one sum."""

    set_up: float
    """Sent and received by a site before the first round, mean over the sites."""
    round: float
    """The same, in a round."""
    centre: int
    """Sent and received by the centre, set-up and round."""


def traffic(sites: int, entries: int, kind: str) -> Traffic:
    """Count the bytes of a set-up and one round."""
    meeting = Meeting(sites, 1, colluding=colluders(sites))
    first = _set_up(meeting)
    second = _round(meeting, entries, entries if kind == "boost" else 0)
    return Traffic(first / sites, second / sites, first + second)


def _set_up(meeting: Meeting) -> int:
    hub, parties = meeting.hub, meeting.parties
    total = 0
    for party in parties:
        advertised = party.setup.advertise(b"")
        hub.setup.receive_advertisement(advertised)
        total += len(advertised)
    keys = hub.setup.keys()
    for party in parties:
        share = party.setup.receive_keys(keys)
        hub.setup.receive_share(share)
        total += len(keys) + len(share)
    for party in parties:
        shares = hub.setup.shares(party.name)
        party.setup.receive_shares(shares)
        total += len(shares)
    return total


def _round(meeting: Meeting, entries: int, opened: int) -> int:
    hub, vector = meeting.hub, np.zeros(entries, np.dtype("<u2"))
    hub.open(1, CONTEXT, entries, BITS, opened)
    total = 0
    for party in meeting.parties:
        sent = party.contribute(1, CONTEXT, vector, vector[:opened] if opened else None, bits=BITS)
        hub.receive_contribution(sent)
        total += len(sent)
    request = hub.request(1)
    for party in meeting.parties:
        answer = party.unmask(1, request)
        hub.receive_unmasking(answer)
        total += len(request) + len(answer)
    return total


def slope(x: Sequence[int], y: Sequence[float]) -> float:
    """Return the slope of a straight line through all points."""
    return float(np.polyfit(np.array(x, float), np.array(y, float), 1)[0])


def power(x: Sequence[int], y: Sequence[float]) -> float:
    """Return the exponent of x between the two largest points."""
    return float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2]))


def main() -> None:
    kinds = ("exact", "boost")
    by_entries = {kind: [traffic(4, d, kind) for d in ENTRIES] for kind in kinds}
    by_sites = [traffic(s, FEW_ENTRIES, "exact") for s in SITES]
    rows = []
    for at, d in enumerate(ENTRIES):
        each = [f"{by_entries[kind][at].round:,.0f}" for kind in kinds]
        rows.append([f"{d:,}", *each, f"{FLOAT * d:,}", f"{FLOAT * d * NODES:,}"])
    rows.append(
        ["bytes a number"]
        + [f"{slope(ENTRIES, [t.round for t in by_entries[kind]]):.2f}" for kind in kinds]
        + [f"{FLOAT}", f"{FLOAT * NODES}"]
    )
    show(
        "Bytes of a site in a round, S = 4",
        ["D", *kinds, "float64 in the clear", f"other scheme, M = {NODES}"],
        rows,
    )
    rows = [
        [f"{s}", f"{t.set_up:,.0f}", f"{t.round:,.0f}", f"{t.centre:,}"]
        for s, t in zip(SITES, by_sites, strict=True)
    ]
    growing: list[list[float]] = [
        [t.set_up for t in by_sites],
        [t.round for t in by_sites],
        [t.centre for t in by_sites],
    ]
    rows.append(["exponent of S at the end", *(f"{power(SITES, y):.2f}" for y in growing)])
    show(
        f"Bytes at D = {FEW_ENTRIES}, exact",
        ["S", "site, set-up", "site, round", "centre, all"],
        rows,
    )
    numbers, sites = np.array(ENTRIES, float), np.array(SITES, float)
    curves: dict[str, tuple[Array, Array]] = {
        "cape": (numbers, np.array([t.round for t in by_entries["exact"]])),
        "boost": (numbers, np.array([t.round for t in by_entries["boost"]])),
        "clear": (numbers, FLOAT * numbers),
        "compute nodes": (numbers, FLOAT * NODES * numbers),
    }
    sums = {
        "cape": (sites, np.array([float(t.centre) for t in by_sites])),
        "clear": (sites, FLOAT * FEW_ENTRIES * sites),
        "compute nodes": (sites, FLOAT * FEW_ENTRIES * NODES * (sites + 1)),
    }
    drawn = [
        ("bytes of a site in a round, S = 4", "D", curves),
        (f"bytes of the centre, D = {FEW_ENTRIES}", "S", sums),
    ]
    print(panels("communication", drawn, "bytes"))


if __name__ == "__main__":
    main()
