"""Secure aggregation without input or output: the centre learns sums, never a site's vector.

`Party` and `Hub` take messages as bytes and return messages as bytes; who carries them is no
business of theirs. `seal` and `unseal` sign and check every other message of the project, too.
"""

from consortium.secagg.envelope import OVERHEAD, Opened, seal, unseal
from consortium.secagg.freight import contradicts
from consortium.secagg.hub import Hub
from consortium.secagg.opening import RoundSum
from consortium.secagg.party import Party
from consortium.secagg.roster import CENTRE, Roster
from consortium.secagg.threshold import most_dropouts, threshold

__all__ = [
    "CENTRE",
    "OVERHEAD",
    "Hub",
    "Opened",
    "Party",
    "Roster",
    "RoundSum",
    "contradicts",
    "most_dropouts",
    "seal",
    "threshold",
    "unseal",
]
