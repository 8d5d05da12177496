"""What the hub and the exchange see of one site's vector: noise, as long as one mask is on it."""

import numpy as np
import pytest

from consortium.secagg import CENTRE, contribution, messages
from consortium.secagg.key_schedule import mask_private
from consortium.secagg.keystream import Ring, add_streams, pair_masks
from tests.support.secagg_wire import Consortium, Wire, context

ENTRIES = 16384
TRIO = Consortium(count=3, rounds=2)


def looks_uniform(vector: Ring) -> bool:
    """Chi-squared test of the bytes: 255 degrees of freedom, six standard deviations."""
    counts = np.bincount(vector.view(np.uint8), minlength=256)
    expected = vector.nbytes / 256
    return bool(np.sum((counts - expected) ** 2) / expected < 255 + 6 * np.sqrt(2 * 255))


def masked(wire: Wire, site: str, number: int, about: bytes) -> Ring:
    """A vector of zeros as the hub sees it once the channel's encryption is off."""
    sent = wire.parties[site].contribute(number, about, np.zeros(ENTRIES, np.uint32))
    parts = contribution.split_message(sent, 10**6)
    opened = wire.hub.session.unseal(messages.CONTRIBUTION, parts.envelope, 10**6)
    return np.frombuffer(wire.hub.setup.known.unload(opened, parts).masked, np.uint32).copy()


def take_off(
    wire: Wire, vector: Ring, site: str, kinds: tuple[str, ...], about: bytes = context(1)
) -> Ring:
    """Remove a round-1 contribution's masks of these kinds, with the site's own secrets."""
    party, left = wire.parties[site], vector.copy()
    roster, own = party.session.roster, party._member.own
    private = mask_private(party.session.digest, site, 1, own.mask_seed(1))
    for peer in set(kinds) & set(roster.sites):
        plus, minus = pair_masks(party.directory, roster, private, site, [peer], 1, about)
        add_streams(left, minus, plus)
    if "self" in kinds:
        key = party.directory.keys.self_mask(own.self_seed(1), 1, about, site)
        add_streams(left, [], [key])
    return left


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire(TRIO).set_up()


@pytest.fixture(scope="module")
def seen(wire: Wire) -> Ring:
    return masked(wire, "s1", 1, context(1))


@pytest.mark.parametrize(
    "known", [(), ("self",), ("s0", "s2"), ("self", "s0"), ("self", "s2")], ids="+".join
)
def test_any_one_mask_hides_the_vector(wire: Wire, seen: Ring, known: tuple[str, ...]) -> None:
    assert looks_uniform(take_off(wire, seen, "s1", known))


def test_without_any_mask_it_is_in_the_open(wire: Wire, seen: Ring) -> None:
    """The falsifier: these three masks, and no other, are what hides it."""
    bare = take_off(wire, seen, "s1", ("self", "s0", "s2"))
    assert not bare.any()
    assert not looks_uniform(bare)


def test_no_mask_comes_twice() -> None:
    """Same site in another round, under another question, in another run, and another site."""
    runs = [Wire(TRIO).set_up(), Wire(TRIO).set_up(), Wire(Consortium(3, 2, run="b")).set_up()]
    views = [
        masked(runs[0], "s1", 1, context(1)),
        masked(runs[0], "s0", 1, context(1)),
        masked(runs[0], "s1", 2, context(1)),
        masked(runs[1], "s1", 1, context(2)),
        masked(runs[2], "s1", 1, context(1)),
    ]
    for i, one in enumerate(views):
        for other in views[:i]:
            assert looks_uniform(one - other)
            assert looks_uniform(one + other)


def test_released_seeds_and_the_messages_tell_the_sum_and_nothing_else() -> None:
    """What a reader of the exchange has left of each vector is uniform, and adds up to the sum."""
    wire, about, lost = Wire(Consortium(4, 1, dropouts=1)).set_up(), context(1), "s3"
    alive = [site for site in wire.parties if site != lost]
    wire.hub.open(1, about, ENTRIES, 32)
    left = {}
    for site in alive:
        sent = wire.parties[site].contribute(1, about, np.ones(ENTRIES, np.uint32))
        wire.hub.receive_contribution(sent)
        masked_bytes = bytes(contribution.split_message(sent, 10**6).payload[: 4 * ENTRIES])
        left[site] = np.frombuffer(masked_bytes, np.uint32).copy()
    total = wire.unmask(1, missing=[lost])
    session, directory = wire.hub.session, wire.hub.setup.known.directory
    seeds = dict(zip(wire.parties, total.seeds, strict=True))
    private = mask_private(session.digest, lost, 1, seeds[lost])
    for site, vector in left.items():
        plus, minus = pair_masks(directory, session.roster, private, lost, [site], 1, about)
        own = directory.keys.self_mask(seeds[site], 1, about, site)
        add_streams(vector, plus, [own, *minus])
        assert looks_uniform(vector)
    assert looks_uniform(left["s0"] + left["s1"])
    assert np.array_equal(sum(left.values()), total.sum)
    assert total.sum.tolist() == [3] * ENTRIES


@pytest.mark.parametrize("site", ["s0", "s2", "self"])
def test_every_single_mask_changes_with_the_question(site: str) -> None:
    others = tuple({"s0", "s2", "self"} - {site})
    left = []
    for number in (1, 2):
        wire = Wire(TRIO).set_up()
        vector = masked(wire, "s1", 1, context(number))
        left.append(take_off(wire, vector, "s1", others, context(number)))
    assert looks_uniform(left[0] - left[1])


def test_the_exchange_sees_ciphertext(wire: Wire) -> None:
    secret = np.full(64, 0x41424344, np.uint32)
    sent = wire.parties["s0"].contribute(2, context(2), secret, secret)
    assert b"DCBA" not in sent


def test_no_seed_is_sent_in_the_open() -> None:
    wire = Wire(TRIO).set_up()
    values = {name: np.zeros(4, np.uint32) for name in TRIO.sites}
    wire.play(1, values, lost=["s2"])
    everything = b"".join(wire.log)
    for name, party in wire.parties.items():
        own = party._member.own
        assert own.channel().private_bytes_raw() not in everything
        for number in (1, 2):
            assert own.mask_seed(number) not in everything
            assert own.self_seed(number) not in everything
        assert TRIO.secret(name) not in everything
        held = b"".join(party.setup.keys.held.values())
        for start in range(0, len(held), 32):
            assert held[start : start + 32] not in everything
    assert TRIO.secret(CENTRE) not in everything
