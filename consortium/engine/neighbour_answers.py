"""Answers of sites to their neighbours, for algorithms that work without a centre.

In a stage with neighbours, each site posts its protected answer twice: encrypted for the centre, as
always, and readable for its neighbours, signed and bound to the same query. A site computes its
next answer from its neighbours' own messages. So a centre can't alter or invent answers. The open
copy adds no privacy loss: the stage releases each site's answer anyway, with enough noise for a
single answer.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from consortium.algorithms.base import Array, NeighbourAnswers
from consortium.errors import ProtocolError
from consortium.privacy.mechanism import Mechanism
from consortium.secagg import OVERHEAD
from consortium.secagg.keystream import Ring
from consortium.secagg.messages import Broadcast, Limits, encode
from consortium.secagg.packing import pack, unpack
from consortium.study.plan import Plan, Stage


def answers_neighbours(stage: Stage) -> bool:
    """Return whether the answers of a stage are sent to neighbours."""
    return bool(stage.release.neighbours) and stage.mechanism.each


def encode_broadcast(context: bytes, vector: Ring, bits: int) -> bytes:
    """Encode a site's protected answer to its neighbours.

    Parameters
    ----------
    context : bytes
        32-byte digest of the question.
    vector : array of a type of `RINGS`
        As `Mechanism.protect` made it.
    bits : int
        The lattice's.
    """
    return encode(Broadcast(context, pack(vector, bits).tobytes()))


def broadcast_limit(stage: Stage) -> int:
    """Return the maximum bytes of an encoded broadcast."""
    return Limits.broadcast(stage.message_bytes) - OVERHEAD


def read_broadcast(body: bytes, context: bytes, mechanism: Mechanism, site: int) -> Array:
    """Decode a neighbour's protected answer.

    Raises ProtocolError if it is malformed, or answers another question than ``context``.

    Returns
    -------
    array, shape (entries,)
        In the statistic's units.
    """
    try:
        said = msgspec.msgpack.decode(body, type=Broadcast)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError("A broadcast can't be read. Update the site that sent it.") from error
    if said.context != context:
        raise ProtocolError(
            "A broadcast answers another question than this site was asked. Ask the coordinator "
            "why sites are asked differently."
        )
    lattice = mechanism.lattice
    ring = unpack(said.vector, lattice.bits, mechanism.entries, "A broadcast")
    return lattice.decode(ring) / mechanism.weights[site]


def collect_answers(
    plan: Plan, stage: Stage, site: int, rounds: Sequence[Mapping[int, Array]]
) -> NeighbourAnswers:
    """Collect the answers that a site may use.

    Parameters
    ----------
    stage : Stage
        A stage with neighbours.
    site : int
        The receiving site.
    rounds : sequence of mapping of int to array
        Answers by site for each round that is sent to neighbours. Other sites' are not used.
    """
    within = {site, *stage.release.neighbours[site]}
    entries = next(s for s in plan.stages if answers_neighbours(s)).mechanism.entries
    answers = np.zeros((len(rounds), len(plan.study.sites), entries))
    for number, said in enumerate(rounds):
        answers[number] = answers[max(number - 1, 0)]
        for other in within & said.keys():
            answers[number, other] = said[other]
    return NeighbourAnswers(site, answers)
