"""Hostile sites among honest ones."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from consortium.privacy.bounds import Bound
from consortium.privacy.mechanism import Sharing, plan_mechanism
from consortium.secagg import messages, seal
from consortium.secagg.shamir import SHARE_BYTES
from tests.attacks.attack_kinds import Stage, attack, nothing
from tests.attacks.hostile_hub import BITS, ENTRIES, NUMBER, bundle_of, played
from tests.support.secagg_wire import Wire, context, identity, plain_sum, ring


def _believing(real: Callable[..., bytes]) -> Callable[..., bytes]:
    def recover(opener: Any, site: str, shares: Any, _genuine: object) -> bytes:
        return real(opener, site, shares, lambda seed: True)

    return recover


@attack(
    "site",
    guard="consortium.secagg.unmasking:Opener._recover",
    without="the sum is noise, and the site at fault is unknown",
    stops=r"\('s1', 's0'\)",
    instead=_believing,
)
def wrong_share(stage: Stage) -> bool:
    """Answers the unmask request with a false share of another site's seed."""
    game = played()
    held = game.wire.parties["s1"].setup.keys.held
    held["s0"] = _one_more(held["s0"])  # shifts the seed by little, so that it stays in its range
    total = game.sum_without()
    stage.said.append(str(total.wrong))  # who is named, and left out
    return not np.array_equal(total.sum, plain_sum(game.values, game.sites))


def _one_more(held: bytes) -> bytes:
    shares = (held[n : n + SHARE_BYTES] for n in range(0, len(held), SHARE_BYTES))
    return b"".join(
        (int.from_bytes(share, "little") + 1).to_bytes(SHARE_BYTES, "little") for share in shares
    )


@attack(
    "site",
    guard="consortium.secagg.key_directory:_check_keys",
    without="a partner's masks reveal the copied site's masks with that partner",
    stops="A key of s0 is advertised twice",
    instead=nothing,
)
def copied_key(stage: Stage) -> bool:
    """Advertises another site's keys as its own."""
    wire = Wire()
    sent = {site: party.setup.advertise(b"") for site, party in wire.parties.items()}
    bodies = {
        site: messages.decode(messages.Advertisement, msgspec.msgpack.decode(data)[5], site)
        for site, data in sent.items()
    }
    copy = msgspec.structs.replace(bodies["s3"], masks=bodies["s0"].masks)
    run = wire.consortium.run
    sent["s3"] = seal(identity("s3"), run, "s3", "advertise", 0, messages.encode(copy))
    return bool(wire.parties["s1"].setup.receive_keys(bundle_of(wire.hub, sent)))


def _unmeasured(_real: object) -> Callable[..., Any]:
    return lambda data, bits, entries, what: np.frombuffer(data, f"<u{bits // 8}")


@attack(
    "site",
    guard="consortium.secagg.hub_round:unpack",
    without="one number is added to every entry of the sum",
    stops="has 4 bytes and not 4 entries",
    instead=_unmeasured,
)
def contribution_of_another_length(stage: Stage) -> bool:
    """Contributes a single number where a vector is due."""
    wire = Wire().set_up()
    wire.hub.open(NUMBER, context(NUMBER), ENTRIES, BITS)
    short = wire.parties["s3"].contribute(NUMBER, context(NUMBER), ring(np.ones(1), BITS))
    return wire.hub.receive_contribution(short) == "s3"


def _for_hardly_any(real: Callable[..., Any]) -> Callable[..., Any]:
    def calibrate(scheme: str, sensitivities: Any, targets: Any, **options: Any) -> Any:
        return real(scheme, [min(sensitivities) / 1000] * len(sensitivities), targets, **options)

    return calibrate


@attack(
    "hub",
    guard="consortium.privacy.mechanism:calibrate",
    without="the others' noise shrinks with their share, below their guarantee",
    stops="^$",
    instead=_for_hardly_any,
)
def thousand_million_subjects(stage: Stage) -> bool:
    """States 10⁹ participants for one site: the others then seem to need hardly any noise."""
    mechanism = plan_mechanism(
        Sharing("cape", colluding=1),
        entries=50,
        bound=Bound(1.0),
        units=(3, 3, 3, 10**9),
        target=1.5,
    )
    return bool(max(mechanism.coalition()) > 1.5 * (1 + 1e-9))
