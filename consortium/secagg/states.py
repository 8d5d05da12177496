"""The protocol's states, as tables: (state, event) -> next state; what isn't listed is illegal.

An event is looked up before anything else is done, and the state is stored after everything else
has succeeded. So a refused message changes nothing.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from consortium.errors import ProtocolError


class PartyState(Enum):
    """Set-up of a site."""

    NEW = "new"
    ADVERTISED = "advertised"
    SHARED = "shared"
    READY = "ready"


class PartyRound(Enum):
    """One round at a site."""

    WAITING = "waiting"
    CONTRIBUTED = "contributed"
    ANSWERED = "answered"


class HubState(Enum):
    """Set-up of the hub."""

    ADVERTISING = "waiting for advertisements"
    SHARING = "waiting for shares"
    READY = "ready"


class HubRound(Enum):
    """One round at the hub."""

    UNOPENED = "unopened"
    GATHERING = "gathering contributions"
    UNMASKING = "waiting for answers to the unmask request"
    SUMMED = "summed"
    ABANDONED = "abandoned"


# A party that was started again after a crash goes from NEW straight to the stored keys bundle.
PARTY: Mapping[tuple[PartyState, str], PartyState] = {
    (PartyState.NEW, "advertise"): PartyState.ADVERTISED,
    (PartyState.NEW, "receive keys"): PartyState.SHARED,
    (PartyState.ADVERTISED, "receive keys"): PartyState.SHARED,
    (PartyState.SHARED, "receive shares"): PartyState.READY,
    (PartyState.READY, "contribute"): PartyState.READY,
    (PartyState.READY, "unmask"): PartyState.READY,
    (PartyState.READY, "restore"): PartyState.READY,
}

# In ANSWERED only the very request that was answered is answered again, with the same bytes.
PARTY_ROUND: Mapping[tuple[PartyRound, str], PartyRound] = {
    (PartyRound.WAITING, "contribute"): PartyRound.CONTRIBUTED,
    (PartyRound.WAITING, "restore"): PartyRound.CONTRIBUTED,
    (PartyRound.CONTRIBUTED, "unmask"): PartyRound.ANSWERED,
    (PartyRound.ANSWERED, "unmask"): PartyRound.ANSWERED,
}

HUB: Mapping[tuple[HubState, str], HubState] = {
    (HubState.ADVERTISING, "advertisement"): HubState.ADVERTISING,
    (HubState.ADVERTISING, "last advertisement"): HubState.SHARING,
    (HubState.SHARING, "keys"): HubState.SHARING,
    (HubState.SHARING, "share"): HubState.SHARING,
    (HubState.SHARING, "last share"): HubState.READY,
    (HubState.READY, "keys"): HubState.READY,
    (HubState.READY, "shares"): HubState.READY,
    (HubState.READY, "open"): HubState.READY,
}

# A round without masks needs no unmasking: it is closed by "sum open" instead of "request".
HUB_ROUND: Mapping[tuple[HubRound, str], HubRound] = {
    (HubRound.UNOPENED, "open"): HubRound.GATHERING,
    (HubRound.GATHERING, "restore"): HubRound.GATHERING,
    (HubRound.GATHERING, "contribution"): HubRound.GATHERING,
    (HubRound.GATHERING, "request"): HubRound.UNMASKING,
    (HubRound.GATHERING, "sum open"): HubRound.SUMMED,
    (HubRound.UNMASKING, "request"): HubRound.UNMASKING,
    (HubRound.UNMASKING, "unmasking"): HubRound.UNMASKING,
    (HubRound.UNMASKING, "sum"): HubRound.SUMMED,
    (HubRound.GATHERING, "abandon"): HubRound.ABANDONED,
    (HubRound.UNMASKING, "abandon"): HubRound.ABANDONED,
}

_State = TypeVar("_State", bound=Enum)


def advance(
    table: Mapping[tuple[_State, str], _State], state: _State, event: str, where: str
) -> _State:
    """Return the next state after an event.

    Raises ProtocolError if the table does not list it.

    Parameters
    ----------
    table : mapping
        One of this module's.
    state, event
        The present state and the next event.
    where : str
        Party or round, for the message.
    """
    try:
        return table[state, event]
    except KeyError:
        due = ", ".join(name for known, name in table if known is state) or "nothing"
        raise ProtocolError(
            f"{where} is {state.value} and can't do '{event}'. Allowed now: {due}."
        ) from None
