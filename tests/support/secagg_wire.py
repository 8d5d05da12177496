"""A wire in memory between real parties and a real hub, for the tests of this folder."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from consortium.secagg import CENTRE, Hub, Participants, Party, RoundSum, messages, seal, threshold
from consortium.secagg.key_directory import Directory
from consortium.secagg.keystream import Ring
from consortium.secagg.merkle_tree import tree_paths
from consortium.secagg.packing import reduce_modulo, ring_type
from consortium.secagg.seed_shares import CheckedShares, handed_to


def identity(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def public(name: str) -> bytes:
    return identity(name).public_key().public_bytes_raw()


def as_centre(run: str, kind: str, number: int, body: messages.Body) -> bytes:
    """Sign a message of a forged hub."""
    return seal(identity(CENTRE), run, CENTRE, kind, number, messages.encode(body))


def context(number: int) -> bytes:
    return hashlib.sha256(b"question %d" % number).digest()


def ring(values: NDArray[Any], bits: int) -> Ring:
    return reduce_modulo(cast("Ring", values.astype(ring_type(bits))), bits)


def vectors(sites: Collection[str], entries: int, bits: int = 32, seed: int = 0) -> dict[str, Ring]:
    rng = np.random.default_rng(seed)
    return {s: ring(rng.integers(0, 2**bits, entries, np.uint64), bits) for s in sites}


def plain_sum(values: Mapping[str, Ring], sites: Collection[str]) -> Ring:
    total = np.zeros_like(next(iter(values.values())))
    for site in sites:
        total += values[site]
    return total


@dataclass(frozen=True)
class Consortium:
    """Makes the machines of one run, always the same ones."""

    count: int = 4
    rounds: int = 3
    dropouts: int = 1
    colluding: int = 0
    run: str = "study-1"
    masked: bool = True
    holders: int = 0
    needed: int = 0

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(f"s{i}" for i in range(self.count))

    @property
    def roster(self) -> Participants:
        needed = self.needed
        if self.masked and not self.holders:
            needed = threshold(self.count, self.colluding, self.dropouts)
        keys = {name: public(name) for name in (*self.sites, CENTRE)}
        return Participants(self.sites, keys, needed, self.count - self.dropouts, self.holders)

    def secret(self, name: str) -> bytes:
        return hashlib.sha256(f"{self.run} secret of {name}".encode()).digest()

    def party(self, name: str) -> Party:
        return Party(
            run=self.run,
            name=name,
            roster=self.roster,
            rounds=self.rounds,
            identity=identity(name),
            secret=self.secret(name),
        )

    def hub(self) -> Hub:
        return Hub(
            run=self.run,
            roster=self.roster,
            rounds=self.rounds,
            identity=identity(CENTRE),
            secret=self.secret(CENTRE),
        )


def step_of(machine: Any, method: str) -> Any:
    """Return a step of a machine, or of its set-up."""
    return getattr(machine if hasattr(machine, method) else machine.setup, method)


@dataclass
class Wire:
    """Carries every message; ``log`` keeps them all. Subclasses are hostile, or crash."""

    consortium: Consortium = field(default_factory=Consortium)
    log: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hub = self.consortium.hub()
        self.parties = {name: self.consortium.party(name) for name in self.consortium.sites}

    def call(self, who: str, method: str, *arguments: Any) -> Any:
        """Run a step of a machine; every step goes through here."""
        machine = self.hub if who == CENTRE else self.parties[who]
        result = step_of(machine, method)(*arguments)
        if isinstance(result, bytes | memoryview):
            result = bytes(result)
            self.log.append(result)
        return result

    def set_up(self) -> Wire:
        for name in self.parties:
            note = f"note of {name}".encode()
            self.call(CENTRE, "receive_advertisement", self.call(name, "advertise", note))
        keys = self.call(CENTRE, "keys")
        for name in self.parties:
            self.call(CENTRE, "receive_share", self.call(name, "receive_keys", keys))
        handed = {name: self.call(CENTRE, "shares", name) for name in self.parties}
        for name, shares in handed.items():
            self.call(name, "receive_shares", shares)
        return self

    def contribute(
        self,
        number: int,
        values: Mapping[str, Ring],
        opened: Mapping[str, Ring] | None = None,
        missing: Collection[str] = (),
    ) -> None:
        first = next(iter(values.values()))
        bits = 8 * first.itemsize
        length = 0 if opened is None else next(iter(opened.values())).size
        self.call(CENTRE, "open", number, context(number), first.size, bits, length)
        for name in self.parties:
            if name not in missing:
                extra = None if opened is None else opened[name]
                sent = self.call(name, "contribute", number, context(number), values[name], extra)
                self.call(CENTRE, "receive_contribution", sent)

    def unmask(self, number: int, missing: Collection[str] = ()) -> RoundSum:
        request = self.call(CENTRE, "request", number)
        for name in self.parties:
            if name not in missing:
                self.call(CENTRE, "receive_unmasking", self.call(name, "unmask", number, request))
        result = self.call(CENTRE, "sum", number)
        assert isinstance(result, RoundSum)
        return result

    def play(
        self,
        number: int,
        values: Mapping[str, Ring],
        opened: Mapping[str, Ring] | None = None,
        lost: Collection[str] = (),
        silent: Collection[str] = (),
    ) -> RoundSum:
        """Play one round: ``lost`` don't contribute, ``silent`` contribute but don't answer."""
        self.contribute(number, values, opened, lost)
        return self.unmask(number, {*lost, *silent})


AnyWire = TypeVar("AnyWire", bound=Wire)


def snapshot(value: Any) -> Any:
    """Return a machine's whole state, as a comparable value."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, X25519PrivateKey | Ed25519PrivateKey):
        return value.private_bytes_raw()
    if isinstance(value, dict):
        return {key: snapshot(item) for key, item in value.items()}
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, enum.Enum | str | bytes | int | tuple | None):
        return value
    if hasattr(value, "__dict__"):
        return {key: snapshot(item) for key, item in vars(value).items()}
    return {name: snapshot(getattr(value, name)) for name in value.__struct_fields__}


def run(wire: AnyWire) -> AnyWire:
    """Run two rounds, the first with a loss."""
    wire.set_up()
    for number, lost in ((1, ["s2"]), (2, [])):
        values = vectors(wire.parties, 8, seed=number)
        result = wire.play(number, values, lost=lost)
        assert np.array_equal(result.sum, plain_sum(values, result.survivors))
    return wire


def handed(directory: Directory, sent: Mapping[str, bytes], reader: str, run: str) -> bytes:
    """Return a hub's delivery of unread share messages to a site."""
    given = {}
    for site, message in sent.items():
        body = messages.decode(messages.Share, msgspec.msgpack.decode(message)[5], site)
        shared = messages.decode(messages.Shared, msgspec.msgpack.decode(body.signed)[5], site)
        given[site] = CheckedShares(body, shared, tree_paths(body.sealed))
    told = messages.encode(handed_to(directory, reader, given))
    return seal(identity(CENTRE), run, CENTRE, messages.SHARES, 0, told)


def with_payload(envelope: bytes, load: bytes | memoryview = b"", manifest: bytes = b"") -> bytes:
    """Put an envelope and a manifest behind any payload, as a contribution has it."""
    lengths = [len(end).to_bytes(4, "little") for end in (envelope, manifest)]
    return b"".join((load, envelope, lengths[0], manifest, lengths[1]))


def manifest(run: str, site: str, number: int, about: bytes) -> bytes:
    """Return the signed manifest of a site that sends no vector."""
    body = messages.encode(messages.Manifest(about, 32, 0, 0, ()))
    return seal(identity(site), run, site, messages.MANIFEST, number, body)


def lists(
    run: str, survivors: Sequence[str], lost: Sequence[str], number: int, about: bytes
) -> messages.Request:
    """Return a request that shows a manifest of every survivor, known or not."""
    told = tuple(manifest(run, site, number, about) for site in survivors)
    return messages.Request(about, tuple(survivors), tuple(lost), told)
