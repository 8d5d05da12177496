"""Secure aggregation without input or output: the centre learns sums, never a site's vector.

Key streams, masks, the graph of masks and how few neighbours it needs, shares of seeds, digests,
packing, the envelope, messages, both sides and their states.

`Party` and `Hub` take messages as bytes and return messages as bytes, whatever transports them.
`seal` and `unseal` also sign and check every other message of the project.
"""

from consortium.secagg.contribution import contribution_contradicts
from consortium.secagg.envelope import OVERHEAD, Opened, seal, unseal
from consortium.secagg.hub import Hub
from consortium.secagg.participants import CENTRE, Participants
from consortium.secagg.party import Party
from consortium.secagg.threshold import most_dropouts, threshold
from consortium.secagg.unmasking import RoundSum

__all__ = [
    "CENTRE",
    "OVERHEAD",
    "Hub",
    "Opened",
    "Participants",
    "Party",
    "RoundSum",
    "contribution_contradicts",
    "most_dropouts",
    "seal",
    "threshold",
    "unseal",
]
