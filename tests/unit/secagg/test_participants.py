import pytest

from consortium.errors import ProtocolError
from consortium.secagg import CENTRE, Participants
from tests.support.secagg_wire import Consortium

FIVE = Consortium(count=5)
SITES = FIVE.sites

ROSTER_CHANGES: list[dict[str, object]] = [
    {"sites": ("s0", "s0", "s2", "s3", "s4")},
    {"sites": ("s0", "s1", "s2", "s3", CENTRE)},
    {"sites": SITES[:4]},
    {"keys": dict.fromkeys(FIVE.roster.keys, b"k" * 32)},
    {"keys": {name: key[:31] for name, key in FIVE.roster.keys.items()}},
    {"threshold": 2},
    {"threshold": 5},
    {"threshold": -1},
    {"minimum": 3},
    {"minimum": 0, "threshold": 0},
    {"minimum": 6, "threshold": 0},
]


@pytest.mark.parametrize("changed", ROSTER_CHANGES)
def test_an_unsound_roster_is_refused(changed: dict[str, object]) -> None:
    good = FIVE.roster
    fields = {name: getattr(good, name) for name in ("sites", "keys", "threshold", "minimum")}
    Participants(**fields)
    with pytest.raises(ProtocolError):
        Participants(**(fields | changed))


def test_the_session_depends_on_everything_agreed() -> None:
    sessions = {
        Consortium(*fields).roster.session(run, rounds)
        for fields in ((5,), (6,), (5, 3, 0))
        for run in ("a", "b")
        for rounds in (1, 2)
    }
    assert len(sessions) == 12
