"""What a hub says of a release, and adding it again: exact, with or without a lost site."""

import msgspec
import numpy as np
import pytest

from consortium.errors import AlteredError, ProtocolError
from consortium.secagg import CENTRE, messages
from consortium.secagg.contribution import opened_digest
from consortium.secagg.release import (
    add_again,
    added,
    agrees,
    check_answered,
    check_seeds,
    read_release,
    release_message,
    signed_manifests,
)
from tests.support.secagg_wire import Consortium, Wire, as_centre, context, plain_sum, vectors

DRAWN = Consortium(count=12, dropouts=1, holders=9, needed=8)


class Game:
    """One round to its release, with what everybody can read."""

    def __init__(self, consortium=Consortium(), lost=(), bits=32, entries=6):  # noqa: B008
        self.wire = Wire(consortium).set_up()
        self.values = vectors(self.wire.parties, entries, bits)
        self.entries, self.bits = entries, bits
        start = len(self.wire.log)
        self.wire.contribute(1, self.values, missing=lost)
        there = [site for site in consortium.sites if site not in lost]
        self.objects = dict(zip(there, self.wire.log[start:], strict=True))
        self.total = self.wire.unmask(1, missing=lost)
        self.request = self.wire.log[start + len(there)]
        self.session = self.wire.hub.session
        self.directory = self.wire.parties["s0"].directory
        self.release = release_message(self.total, context(1), self.total.sum, bits, shown=True)

    def added_again(self):
        body = check_answered(self.session, 1, self.release, self.request)
        told = signed_manifests(self.session, 1, body, self.entries, self.bits)
        check_seeds(self.session, self.directory, 1, self.release)
        taken = [added(site, 1, told[site], self.objects[site], self.entries) for site in told]
        return add_again(self.session, self.directory, 1, self.release, taken, self.entries)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("lost", [(), ("s2",)])
def test_open_vectors_less_the_sum_are_added_again(lost, bits):
    made = Consortium()
    wire, values = Wire(made).set_up(), vectors(made.sites, 5, bits)
    opened, objects = vectors(made.sites, 5, bits, seed=1), {}
    wire.hub.open(1, context(1), 5, bits, 5, clear=True)
    for site in (each for each in made.sites if each not in lost):
        party = wire.parties[site]
        sent = party.contribute(1, context(1), values[site], opened[site], clear=True)
        objects[site] = bytes(sent)
        wire.hub.receive_contribution(sent)
    request = wire.hub.request(1)
    for site in objects:
        wire.hub.receive_unmasking(wire.parties[site].unmask(1, request))
    total = wire.hub.sum(1)
    released = plain_sum(opened, objects) - total.sum
    release = release_message(total, context(1), released, bits, shown=True)
    session, directory = wire.hub.session, wire.parties["s0"].directory
    told = signed_manifests(
        session, 1, check_answered(session, 1, release, request), 5, bits, clear=True
    )
    taken = [added(site, 1, told[site], objects[site], 5, clear=True) for site in told]
    assert agrees(add_again(session, directory, 1, release, taken, 5, clear=True), release)
    assert np.array_equal(total.opened[0], plain_sum(opened, objects))


def test_a_contribution_without_its_open_vector_is_not_added_again():
    game = Game()
    body = check_answered(game.session, 1, game.release, game.request)
    many = 1 << 20  # the envelope behind a short vector would pass for an open one
    with pytest.raises(ProtocolError, match="another vector"):
        signed_manifests(game.session, 1, body, many, game.bits, clear=True)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("lost", [(), ("s2",), ("s0",)])
@pytest.mark.parametrize("consortium", [Consortium(), DRAWN], ids=["complete", "drawn"])
def test_adding_again_gives_the_sum_that_was_opened(consortium, lost, bits):
    game = Game(consortium, lost, bits)
    again = game.added_again()
    assert np.array_equal(again, plain_sum(game.values, game.total.survivors))
    assert agrees(again, game.release)
    again[3] += 1
    assert not agrees(again, game.release)


def test_of_each_site_one_seed_is_shown():
    game = Game(lost=("s2",))
    own = {site: party._member.own for site, party in game.wire.parties.items()}
    due = [own[s].mask_seed(1) if s == "s2" else own[s].self_seed(1) for s in own]
    assert list(game.release.seeds) == due
    hidden = release_message(game.total, context(1), game.total.sum, game.bits, shown=False)
    assert hidden.seeds == ()


def test_a_round_that_is_given_up_shows_no_seed():
    wire = Wire().set_up()
    wire.contribute(1, vectors(wire.parties, 3))
    wire.hub.request(1)
    wire.hub.abandon(1)
    with pytest.raises(ProtocolError, match="abandoned"):
        wire.hub.sum(1)


def test_a_release_is_read_only_as_the_hub_signed_it():
    game = Game()
    run = game.wire.consortium.run
    message = as_centre(run, messages.RELEASE, 1, game.release)
    assert read_release(game.session, 1, message) == game.release
    with pytest.raises(ProtocolError, match="round"):
        read_release(game.session, 2, message)
    for survivors, lost in ((("s1", "s0", "s2", "s3"), ()), (("s0", "s1", "s2"), ())):
        body = msgspec.structs.replace(game.release, survivors=survivors, lost=lost)
        with pytest.raises(ProtocolError, match="every site once"):
            read_release(game.session, 1, as_centre(run, messages.RELEASE, 1, body))
    body = msgspec.structs.replace(game.release, survivors=("s0", "s1"), lost=("s2", "s3"))
    with pytest.raises(ProtocolError, match="3 are the minimum"):
        read_release(game.session, 1, as_centre(run, messages.RELEASE, 1, body))
    assert CENTRE not in game.release.survivors


def test_an_object_that_was_changed_is_told_from_a_false_sum():
    game = Game()
    game.objects["s1"] = b"\x00" + game.objects["s1"][1:]
    with pytest.raises(AlteredError, match="contribution of s1 to round 1"):
        game.added_again()


def test_a_release_keeps_to_its_limit():
    game = Game(DRAWN, entries=2000)
    message = as_centre(game.wire.consortium.run, messages.RELEASE, 1, game.release)
    assert len(message) <= game.session.limits.release(game.total.sum.nbytes)


def _opened(consortium, released, signed):
    """A round in which each site's own answer is released, if its site signed for it."""
    wire = Wire(consortium).set_up()
    values = vectors(wire.parties, 4)
    nothing = np.zeros(0, np.uint32)
    wire.hub.open(1, context(1), 0, 32, 4, released=released)
    for name, party in wire.parties.items():
        wire.hub.receive_contribution(
            party.contribute(1, context(1), nothing, values[name], released=signed)
        )
    return wire.hub.sum(1), values


def test_each_answer_that_is_released_is_signed_for_everybody():
    consortium = Consortium(masked=False)
    total, values = _opened(consortium, True, True)
    rows = np.concatenate(list(values.values()))
    release = release_message(total, context(1), rows, 32, shown=False)
    assert len(release.manifests) == 4
    session = Wire(consortium).set_up().hub.session
    request = messages.Request(context(1), release.survivors, (), release.manifests)
    for site, body in signed_manifests(session, 1, request, 0, 32).items():
        assert body.opened == opened_digest(context(1), values[site].tobytes())
        assert body.opened != opened_digest(context(2), values[site].tobytes())


@pytest.mark.parametrize(("released", "signed"), [(True, False), (False, True)])
def test_an_answer_that_is_not_signed_as_it_is_released_is_not_counted(released, signed):
    """And of a vector that stays with the hub, nobody is to get a digest."""
    with pytest.raises(ProtocolError, match="not what its manifest says"):
        _opened(Consortium(masked=False), released, signed)
