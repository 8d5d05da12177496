"""What the hub refuses, what it makes of wrong shares, and rounds that fail alone."""

import tracemalloc

import numpy as np
import pytest

from consortium.errors import ProtocolError, ThresholdError
from consortium.secagg import CENTRE, Hub, messages, packing, seal, seed_shares
from consortium.secagg.contribution import Vectors
from consortium.secagg.hub_round import Tally
from consortium.secagg.merkle_tree import tree_root
from consortium.secagg.shamir import PRIME
from consortium.secagg.unmasking import opened_vectors
from tests.support.secagg_wire import (
    Consortium,
    Wire,
    context,
    identity,
    lists,
    plain_sum,
    snapshot,
    step_of,
    vectors,
    with_payload,
)

FIVE = Consortium(count=5)
SITES = FIVE.sites
VALUES = vectors(SITES, 10)
ENTRIES = 100_000


@pytest.fixture
def wire() -> Wire:
    return Wire(FIVE).set_up()


def refused(hub: Hub, match: str, method: str, *arguments: object) -> None:
    before = snapshot(hub)
    with pytest.raises(ProtocolError, match=match):
        step_of(hub, method)(*arguments)
    assert snapshot(hub) == before


def spoil(wire: Wire, holder: str, owners: tuple[str, ...] = SITES) -> None:
    """Make a site give wrong shares of these owners' seeds."""
    held = wire.parties[holder].setup.keys.held
    for owner in owners:
        held[owner] = bytes(byte ^ (7 + len(holder + owner)) for byte in held[owner])


@pytest.mark.parametrize("lost", [(), ("s2",)])
@pytest.mark.parametrize("holder", ["s0", "s4"])
def test_a_wrong_share_is_left_out_and_its_holder_named(
    wire: Wire, holder: str, lost: tuple[str, ...]
) -> None:
    spoil(wire, holder)
    result = wire.play(1, VALUES, lost=lost)
    assert np.array_equal(result.sum, plain_sum(VALUES, result.survivors))
    # Once s0 is found out its shares come last, and s4's are never needed.
    assert result.wrong == ((("s0", "s0"),) if holder == "s0" else ())


@pytest.mark.parametrize("lost", [(), ("s4",)])
def test_a_share_that_is_off_by_one_is_noticed(wire: Wire, lost: tuple[str, ...]) -> None:
    """Site s2's share has weight 1 among the first three, so that the secret is off by one."""
    held = wire.parties["s2"].setup.keys.held
    for owner, shares in held.items():
        values = [int.from_bytes(shares[i : i + 32], "little") for i in range(0, len(shares), 32)]
        held[owner] = b"".join(((v + 1) % PRIME).to_bytes(32, "little") for v in values)
    result = wire.play(1, VALUES, lost=lost)
    assert np.array_equal(result.sum, plain_sum(VALUES, result.survivors))
    assert result.wrong == (("s2", "s0"),)


def test_an_off_by_one_share_of_a_lost_site_alone_is_noticed(wire: Wire) -> None:
    held = wire.parties["s2"].setup.keys.held
    share = (int.from_bytes(held["s4"][:32], "little") + 1) % PRIME
    held["s4"] = share.to_bytes(32, "little") + held["s4"][32:]
    result = wire.play(1, VALUES, lost=["s4"])
    assert np.array_equal(result.sum, plain_sum(VALUES, result.survivors))
    assert result.wrong == (("s2", "s4"),)


def test_one_false_share_among_good_ones_is_told_apart(wire: Wire) -> None:
    spoil(wire, "s1", ("s3",))
    result = wire.play(1, VALUES)
    assert result.wrong == (("s1", "s3"),)
    assert np.array_equal(result.sum, plain_sum(VALUES, SITES))


def test_too_many_wrong_shares_open_nothing(wire: Wire) -> None:
    for holder in SITES[:3]:
        spoil(wire, holder)
    wire.contribute(1, VALUES)
    sent = wire.hub.request(1)
    for party in wire.parties.values():
        wire.hub.receive_unmasking(party.unmask(1, sent))
    refused(wire.hub, "s0, s1, s2, s3, s4", "sum", 1)


def test_more_answers_mend_a_round_with_a_wrong_share(wire: Wire) -> None:
    spoil(wire, "s0")
    wire.contribute(1, VALUES)
    sent = wire.hub.request(1)
    for name in SITES[:3]:
        wire.hub.receive_unmasking(wire.parties[name].unmask(1, sent))
    refused(wire.hub, "Too many shares", "sum", 1)
    wire.hub.receive_unmasking(wire.parties["s3"].unmask(1, sent))
    assert np.array_equal(wire.hub.sum(1).sum, plain_sum(VALUES, SITES))


def test_a_false_dealer_is_named() -> None:
    """A site deals shares of seeds that it did not commit to."""
    wire = Wire(FIVE)
    sent = [party.setup.advertise(b"") for party in wire.parties.values()]
    for data in sent:
        wire.hub.setup.receive_advertisement(data)
    for party in wire.parties.values():
        message = party.setup.receive_keys(wire.hub.setup.keys())
        if party.name == "s4":
            held = dict.fromkeys(SITES, b"\x05" * 64 * FIVE.rounds)
            sealed = seed_shares.seal_shares(party.directory, "s4", party.setup.keys.channels, held)
            shared = messages.Shared(party.directory.transcript, tree_root(sealed))
            key = identity("s4")
            signed = seal(key, FIVE.run, "s4", messages.SHARED, 0, messages.encode(shared))
            encoded = messages.encode(messages.Share(signed, sealed))
            message = seal(key, FIVE.run, "s4", messages.SHARE, 0, encoded)
            party.setup._signed = signed
        wire.hub.setup.receive_share(message)
    for party in wire.parties.values():
        party.setup.receive_shares(wire.hub.setup.shares(party.name))
    with pytest.raises(ThresholdError, match="shares of s4's seed"):
        wire.play(1, VALUES)
    # The next rounds do without it.
    wire.hub.abandon(1)


def test_too_few_contributions_wait_or_fail_alone(wire: Wire) -> None:
    wire.contribute(1, VALUES, missing=["s1", "s3"])
    refused(wire.hub, "s1, s3", "request", 1)
    late = wire.parties["s3"].contribute(1, context(1), VALUES["s3"])
    wire.hub.receive_contribution(late)
    assert np.array_equal(wire.unmask(1, ["s1"]).sum, plain_sum(VALUES, set(SITES) - {"s1"}))


def test_too_few_answers_fail_that_round_alone(wire: Wire) -> None:
    wire.contribute(1, VALUES)
    with pytest.raises(ThresholdError, match="s0, s3, s4"):
        wire.unmask(1, ["s0", "s3", "s4"])
    wire.hub.abandon(1)
    refused(wire.hub, "abandoned", "sum", 1)
    refused(wire.hub, "abandoned", "abandon", 1)
    assert np.array_equal(wire.play(2, VALUES).sum, plain_sum(VALUES, SITES))


def test_late_and_second_contributions_are_refused(wire: Wire) -> None:
    wire.contribute(1, VALUES, missing=["s4"])
    again = wire.log[-1]
    refused(wire.hub, "before", "receive_contribution", again)
    late = wire.parties["s4"].contribute(1, context(1), VALUES["s4"])
    wire.hub.request(1)
    refused(wire.hub, "unmasking|waiting", "receive_contribution", late)
    assert np.array_equal(wire.unmask(1, ["s4"]).sum, plain_sum(VALUES, SITES[:4]))
    refused(wire.hub, "summed", "receive_contribution", late)


@pytest.mark.parametrize(
    ("about", "entries", "bits", "opened"),
    [
        (context(2), 10, 32, None),
        (context(1), 9, 32, None),
        (context(1), 5, 64, None),
        (context(1), 10, 32, 1),
    ],
)
def test_contributions_to_another_question_are_refused(
    wire: Wire, about: bytes, entries: int, bits: int, opened: int | None
) -> None:
    wire.hub.open(1, context(1), 10, 32)
    values = vectors(["s0"], entries, bits)["s0"]
    extra = None if opened is None else values[:opened]
    sent = wire.parties["s0"].contribute(1, about, values, extra)
    refused(wire.hub, "s0", "receive_contribution", sent)


@pytest.mark.parametrize(
    "arguments",
    [
        (context(1), -1, 32, 0),
        (context(1), 0, 32, 0),
        (context(1), 3, 32, -1),
        (context(1), 3, 0, 0),
        (context(1), 3, 65, 0),
        (b"", 3, 32, 0),
    ],
)
def test_a_malformed_round_is_not_opened(wire: Wire, arguments: tuple[object, ...]) -> None:
    refused(wire.hub, "can't be opened", "open", 1, *arguments)


def test_a_round_is_opened_once(wire: Wire) -> None:
    wire.hub.open(1, context(1), 10, 32)
    refused(wire.hub, "gathering", "open", 1, context(1), 10, 32)
    wire.hub.abandon(1)
    refused(wire.hub, "abandoned", "open", 1, context(1), 10, 32)


def test_answers_of_the_lost_are_refused(wire: Wire) -> None:
    wire.contribute(1, VALUES, missing=["s4"])
    wire.hub.request(1)
    answer = messages.Unmasking(b"r" * 32, (b"s" * 32,) * 4, (b"s" * 32,))
    lost = wire.parties["s4"]._to_centre(messages.UNMASKING, 1, answer)
    refused(wire.hub, "No answer of s4", "receive_unmasking", lost)
    wrong = wire.parties["s0"]._to_centre(messages.UNMASKING, 1, answer)
    refused(wire.hub, "another unmask request", "receive_unmasking", wrong)


def test_the_set_up_waits_for_all(wire: Wire) -> None:
    hub = FIVE.hub()
    assert hub.setup.missing == SITES
    for name in SITES[:4]:
        hub.setup.receive_advertisement(FIVE.party(name).setup.advertise(b""))
    assert hub.setup.missing == ("s4",)
    refused(hub, "advertisements", "keys")
    refused(hub, "advertisements", "open", 1, context(1), 10, 32)
    assert wire.hub.setup.missing == ()


def test_the_centre_is_no_site(wire: Wire) -> None:
    wire.hub.open(1, context(1), 10, 32)
    data = seal(identity(CENTRE), FIVE.run, CENTRE, messages.CONTRIBUTION, 1, bytes(100))
    data = with_payload(data)
    refused(wire.hub, "centre", "receive_contribution", data)
    data = seal(identity(CENTRE), FIVE.run, CENTRE, messages.ADVERTISE, 0, bytes(100))
    refused(FIVE.hub(), "centre", "receive_advertisement", data)


def test_a_run_without_masks() -> None:
    plain = Wire(Consortium(count=4, dropouts=3, masked=False)).set_up()
    opened = vectors(plain.parties, 6, 64)
    empty = {name: np.zeros(0, np.uint64) for name in plain.parties}
    plain.contribute(1, empty, opened, missing=["s0", "s2"])
    refused(plain.hub, "no masks", "request", 1)
    result = plain.hub.sum(1)
    assert result.survivors == ("s1", "s3")
    assert np.array_equal(result.opened[0], opened["s1"] + opened["s3"])
    refused(plain.hub, "masks", "open", 2, context(2), 3, 32)
    with pytest.raises(ProtocolError, match="without masks"):
        plain.parties["s0"].contribute(2, context(2), np.zeros(3, np.uint32))
    body = messages.encode(lists("study-1", ("s1", "s3"), ("s0", "s2"), 1, context(1)))
    ask = seal(identity(CENTRE), "study-1", CENTRE, messages.UNMASK, 1, body)
    with pytest.raises(ProtocolError, match="without masks"):
        plain.parties["s1"].unmask(1, ask)


def test_a_round_without_masks_needs_the_minimum(wire: Wire) -> None:
    empty = {name: np.zeros(0, np.uint32) for name in SITES}
    wire.contribute(1, empty, VALUES, missing=["s0", "s1"])
    refused(wire.hub, "s0, s1", "sum", 1)
    sent = wire.parties["s0"].contribute(1, context(1), empty["s0"], VALUES["s0"])
    wire.hub.receive_contribution(sent)
    assert wire.hub.sum(1).survivors == ("s0", "s2", "s3", "s4")


def _tally(*, released: bool) -> Tally:
    roster = Consortium(count=8, masked=False).roster
    return Tally(roster, 1, context(1), 0, 64, ENTRIES, released=released)


def _contribution(number: int) -> Vectors:
    vector = np.full(ENTRIES, number, np.uint64)
    return Vectors(context(1), 64, memoryview(b""), packing.pack(vector, 64).data)


def test_single_open_vectors_are_kept_only_where_they_are_released() -> None:
    """What all sites sent openly would be gigabytes; their sum is what one of them sends."""
    kept = {}
    for released in (False, True):
        tally = _tally(released=released)
        tracemalloc.start()
        for number, site in enumerate(tally.roster.sites, 1):
            tally.add(site, _contribution(number), b"")
        kept[released] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        vectors = opened_vectors(tally)
        assert [int(each[0]) for each in vectors] == (list(range(1, 9)) if released else [36])
    assert kept[False] < 8 * ENTRIES < kept[True] / 7
