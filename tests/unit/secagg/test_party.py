"""What a site refuses, whoever asks."""

import numpy as np
import pytest

from consortium.errors import ProtocolError, ThresholdError
from consortium.secagg import CENTRE, Party, RoundSum, messages, seal
from tests.support.secagg_wire import Consortium, Wire, context, identity, lists, snapshot, vectors

FIVE = Consortium(count=5)
SITES = FIVE.sites
VALUES = vectors(SITES, 10)


@pytest.fixture
def wire() -> Wire:
    return Wire(FIVE).set_up()


def request(
    survivors: tuple[str, ...],
    lost: tuple[str, ...],
    *,
    asked: int = 1,
    about: bytes = context(1),
    signer: str = CENTRE,
) -> bytes:
    body = lists(FIVE.run, survivors, lost, asked, about)
    return seal(identity(signer), FIVE.run, signer, messages.UNMASK, asked, messages.encode(body))


HOSTILE = {
    "overlap": request(SITES, SITES[4:]),
    "overlap in place of a site": request(SITES[:4], SITES[3:4]),
    "incomplete": request(SITES[:4], ()),
    "named twice": request((*SITES[:4], "s3"), SITES[4:]),
    "a stranger": request((*SITES[:4], "s9"), SITES[4:]),
    "too few survivors": request(SITES[:3], SITES[3:]),
    "itself lost": request(SITES[1:], SITES[:1]),
    "another order": request(SITES[::-1], ()),
    "another question": request(SITES, (), about=context(2)),
    "another round": request(SITES, (), asked=2),
    "another signer": request(SITES, (), signer="s1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused(wire: Wire, name: str) -> None:
    wire.contribute(1, VALUES)
    party = wire.parties["s0"]
    before = snapshot(party)
    with pytest.raises(ProtocolError):
        party.unmask(1, HOSTILE[name])
    assert snapshot(party) == before
    assert np.array_equal(wire.unmask(1).sum, sum(VALUES.values()))


def test_too_few_survivors_names_the_lost(wire: Wire) -> None:
    wire.contribute(1, VALUES)
    with pytest.raises(ThresholdError, match="s3, s4"):
        wire.parties["s0"].unmask(1, HOSTILE["too few survivors"])


def test_a_site_that_contributed_nothing_answers_nothing(wire: Wire) -> None:
    wire.contribute(1, VALUES, missing=["s4"])
    for shown in ((SITES, ()), (SITES[:4], SITES[4:])):
        with pytest.raises(ProtocolError, match="waiting"):
            wire.parties["s4"].unmask(1, request(*shown))


def test_one_request_a_round_is_answered_and_its_repeat_alike(wire: Wire) -> None:
    wire.contribute(1, VALUES)
    party = wire.parties["s0"]
    first, second = request(SITES, ()), request(SITES[:4], SITES[4:])
    answer = party.unmask(1, first)
    before = snapshot(party)
    with pytest.raises(ProtocolError, match="another unmask request"):
        party.unmask(1, second)
    assert party.unmask(1, first) == answer
    assert snapshot(party) == before


def test_a_round_is_contributed_to_once(wire: Wire) -> None:
    wire.contribute(1, VALUES)
    with pytest.raises(ProtocolError):
        wire.parties["s0"].contribute(1, context(1), VALUES["s0"])
    with pytest.raises(ProtocolError):
        wire.parties["s0"].contribute(1, context(2), VALUES["s0"])


@pytest.mark.parametrize("number", [-1, 0, 4])
def test_only_the_rounds_of_the_run_exist(wire: Wire, number: int) -> None:
    with pytest.raises(ProtocolError, match="1 to 3"):
        wire.parties["s0"].contribute(number, context(1), VALUES["s0"])
    with pytest.raises(ProtocolError, match="1 to 3"):
        wire.hub.open(number, context(1), 10, 32)


@pytest.mark.parametrize(
    ("about", "masked", "opened"),
    [
        (b"short", np.zeros(3, np.uint32), None),
        (context(1), np.zeros(3, np.int32), None),
        (context(1), np.zeros(3), None),
        (context(1), np.zeros((3, 1), np.uint32), None),
        (context(1), np.zeros(3, ">u4"), None),
        (context(1), np.zeros(3, np.uint32), np.zeros(3, np.uint64)),
    ],
)
def test_malformed_vectors_are_refused(wire, about, masked, opened) -> None:  # type: ignore[no-untyped-def]
    before = snapshot(wire.parties["s0"])
    with pytest.raises(ProtocolError):
        wire.parties["s0"].contribute(1, about, masked, opened)
    assert snapshot(wire.parties["s0"]) == before


def test_a_vector_is_not_changed(wire: Wire) -> None:
    kept = VALUES["s0"].copy()
    wire.parties["s0"].contribute(1, context(1), VALUES["s0"])
    assert np.array_equal(VALUES["s0"], kept)


def test_notes_are_known_to_all(wire: Wire) -> None:
    expected = {site: f"note of {site}".encode() for site in SITES}
    assert wire.hub.setup.notes == expected
    assert all(party.setup.notes == expected for party in wire.parties.values())
    with pytest.raises(ProtocolError):
        _ = FIVE.party("s0").setup.notes
    with pytest.raises(ProtocolError, match="s0, s1, s2, s3, s4"):
        _ = FIVE.hub().setup.notes


def test_only_the_rightful_identity_takes_part() -> None:
    given = {"run": "r", "roster": FIVE.roster, "rounds": 3}
    for wrong in (
        {"name": "s0", "identity": identity("s1"), "secret": bytes(32)},
        {"name": "s9", "identity": identity("s9"), "secret": bytes(32)},
        {"name": "s0", "identity": identity("s0"), "secret": bytes(31)},
        {"name": "s0", "identity": identity("s0"), "secret": bytes(32), "run": ""},
        {"name": "s0", "identity": identity("s0"), "secret": bytes(32), "rounds": -1},
    ):
        with pytest.raises(ProtocolError):
            Party(**(given | wrong))  # type: ignore[arg-type]
    with pytest.raises(ProtocolError):
        FIVE.party("s0").setup.advertise(bytes(messages.NOTE_BYTES + 1))


@pytest.mark.parametrize(
    "history", [(False, HOSTILE["another round"]), (True, HOSTILE["itself lost"])]
)
def test_an_impossible_history_is_refused(wire: Wire, history: tuple[bool, bytes]) -> None:
    before = snapshot(wire.parties["s0"])
    with pytest.raises(ProtocolError):
        wire.parties["s0"].restore(1, context(1), *history)
    assert snapshot(wire.parties["s0"]) == before
    assert isinstance(wire.play(1, VALUES), RoundSum)
