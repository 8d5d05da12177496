"""Makes the vectors: good rounds, and what hub, sites, exchange and readers may make of them.

Every key and secret comes from a fixed seed, so that the files come out the same.
``python -m tests.vectors.make`` writes them beside this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from consortium.engine.closing import Attestation, release_record
from consortium.engine.closing import encode_closing as encode_closing
from consortium.secagg import CENTRE, contribution, crypto, messages, seal
from consortium.secagg.envelope import _Envelope
from consortium.secagg.keystream import Ring
from consortium.secagg.messages import decode, encode
from consortium.secagg.packing import reduce_modulo
from consortium.secagg.release import release_message, ring_digests
from tests.support.secagg_wire import (
    Consortium,
    Wire,
    context,
    identity,
    plain_sum,
    ring,
    vectors,
)

FOLDER = Path(__file__).parent
NUMBER = 2
Case = dict[str, Any]


@dataclass(frozen=True)
class Played:
    """A round as its messages, to be changed; `case` makes a vector of it."""

    consortium: Consortium
    bundle: bytes
    request: messages.Request
    release: messages.Release
    objects: dict[str, bytes]
    released: Ring
    posted: bytes = b""  # request, where it is not the centre's encoding of ``request``
    said: bytes = b""  # release, likewise
    clear: bool = False  # open vectors lie readable
    other: dict[str, Any] = field(default_factory=dict)

    def signed(self, kind: str, body: messages.Body, number: int = NUMBER) -> bytes:
        """Sign as the centre."""
        return seal(identity(CENTRE), self.consortium.run, CENTRE, kind, number, encode(body))

    def case(self, name: str, good: bool) -> Case:
        """Make a vector."""
        made, roster = self.consortium, self.consortium.roster
        return {
            "name": name,
            "kind": "round",
            "good": good,
            "run": made.run,
            "rounds": made.rounds,
            "threshold": roster.threshold,
            "minimum": roster.minimum,
            "holders": roster.holders,
            "sites": list(made.sites),
            "keys": {name: key.hex() for name, key in roster.keys.items()},
            "bundle": self.bundle.hex(),
            "number": NUMBER,
            "context": context(NUMBER).hex(),
            "open": self.clear,
            "entries": self.released.size,
            "bits": self.release.bits,
            "request": (self.posted or self.signed(messages.UNMASK, self.request)).hex(),
            "release": (self.said or self.signed(messages.RELEASE, self.release)).hex(),
            "objects": {site: data.hex() for site, data in self.objects.items()},
            "released": self.released.tobytes().hex(),
            **self.other,
        }

    def asked(self, **changes: Any) -> Played:
        """Change the request, and let the release name it."""
        request = msgspec.structs.replace(self.request, **changes)
        return replace(self, request=request).named()

    def named(self) -> Played:
        """Let the release name the request as it is now."""
        posted = self.posted or self.signed(messages.UNMASK, self.request)
        return self.told(request=release_record(posted))

    def told(self, **changes: Any) -> Played:
        """Change the release."""
        return replace(self, release=msgspec.structs.replace(self.release, **changes))

    def numbers(self, released: Ring) -> Played:
        """Release other numbers."""
        return replace(self, released=released).told(chunks=ring_digests(released))

    def manifest(self, site: str, sign: Callable[[bytes], bytes], **changes: Any) -> Played:
        """Put another manifest of a site into the request; ``sign`` puts it into an envelope."""
        place = self.request.survivors.index(site)
        told = list(self.request.manifests)
        opened = msgspec.msgpack.decode(told[place], type=_Envelope)
        body = decode(messages.Manifest, opened.body, site)
        told[place] = sign(encode(msgspec.structs.replace(body, **changes)))
        return self.asked(manifests=tuple(told))


def played(
    consortium: Consortium,
    values: dict[str, Ring],
    lost: tuple[str, ...] = (),
    opened: dict[str, Ring] | None = None,
    *,
    bits: int = 0,
    clear: bool = True,
) -> Played:
    """Play one round; what is released is the sum, or the ``opened`` vectors' less the sum."""
    wire = Wire(consortium).set_up()
    bundle = wire.log[consortium.count]
    about, first = context(NUMBER), next(iter(values.values()))
    bits, entries = bits or 8 * first.itemsize, first.size
    beside = 0 if opened is None else entries
    wire.hub.open(NUMBER, about, entries, bits, beside, clear=clear)
    objects: dict[str, bytes] = {}
    for site, party in wire.parties.items():
        if site not in lost:
            own = None if opened is None else opened[site]
            sent = party.contribute(NUMBER, about, values[site], own, bits=bits, clear=clear)
            objects[site] = bytes(sent)
            wire.hub.receive_contribution(objects[site])
    request = wire.hub.request(NUMBER)
    for site in objects:
        wire.hub.receive_unmasking(wire.parties[site].unmask(NUMBER, request))
    total = wire.hub.sum(NUMBER)
    body = decode(messages.Request, msgspec.msgpack.decode(request, type=_Envelope).body, CENTRE)
    released = total.sum
    if opened is not None:
        released = reduce_modulo(cast("Ring", plain_sum(opened, objects) - total.sum), bits)
    release = release_message(total, about, released, bits, shown=True)
    lies_open = opened is not None
    return Played(consortium, bundle, body, release, objects, released, clear=lies_open)


def good_rounds() -> list[Case]:
    """Rounds that every verifier must believe."""
    four = Consortium()
    sites, edge = four.sites, np.array([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1], np.uint64)
    edges = {site: edge.copy() for site in sites}
    drawn = Consortium(count=12, dropouts=1, holders=9, needed=8)
    return [
        played(four, vectors(sites, 5)).case("four sites of 32 bits", True),
        played(four, vectors(sites, 5, 64)).case("four sites of 64 bits", True),
        played(four, vectors(sites, 5), ("s2",)).case("one of four is lost, 32 bits", True),
        played(four, vectors(sites, 5, 64), ("s0",)).case("the first is lost, 64 bits", True),
        played(four, vectors(sites, 5, 11), ("s2",), bits=11).case("one is lost, 11 bits", True),
        played(four, vectors(sites, 70, 33), bits=33).case("four sites of 33 bits", True),
        played(four, edges).case("sums that wrap, 64 bits", True),
        played(four, {s: ring(edge, 32) for s in sites}).case("sums that wrap, 32 bits", True),
        played(drawn, vectors(drawn.sites, 3), ("s4",)).case("holders drawn, one lost", True),
        *(
            _open(bits, lost).case(f"open vectors of {bits} bits{name}", True)
            for bits in (32, 64, 13)
            for lost, name in (((), ""), (("s1",), ", one lost"))
        ),
    ]


def _open(bits: int = 32, lost: tuple[str, ...] = (), *, clear: bool = True) -> Played:
    four = Consortium()
    opened = vectors(four.sites, 5, bits, seed=1)
    return played(four, vectors(four.sites, 5, bits), lost, opened, bits=bits, clear=clear)


def _overfull(lies_open: bool) -> Played:
    """A site has signed for a bit behind its last number, of 55 or 65 that are packed."""
    four = Consortium()
    good = _open(13) if lies_open else played(four, vectors(four.sites, 5, 11), bits=11)
    place = 17 if lies_open else 6
    data = bytearray(good.objects["s0"])
    data[place] |= 0x80
    body = decode(
        messages.Manifest,
        msgspec.msgpack.decode(good.request.manifests[0], type=_Envelope).body,
        "s0",
    )
    changed = replace(good, objects={**good.objects, "s0": bytes(data)})
    chunks = contribution.digests(memoryview(bytes(data))[: body.size])
    return changed.manifest("s0", _as("s0", four.run, NUMBER), chunks=chunks)


def _as(sender: str, run: str, number: int, kind: str = "manifest") -> Callable[[bytes], bytes]:
    return lambda body: seal(identity(sender), run, sender, kind, number, body)


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def bad_rounds() -> list[Case]:
    """Rounds that no verifier may believe."""
    four = Consortium()
    good = played(four, vectors(four.sites, 5), ("s2",))
    other = played(replace(four, run="study-2"), vectors(four.sites, 5), ("s2",))
    whole = played(four, vectors(four.sites, 5))
    released, seeds, objects = good.released, good.release.seeds, good.objects
    off = released + np.array([1, 0, 0, 0, 0], released.dtype)
    own = four.run
    swapped = {**objects, "s0": objects["s1"], "s1": objects["s0"]}
    first = good.request.manifests[0]
    said = good.signed(messages.RELEASE, good.release)
    body = encode(good.release)
    lies = _open()
    masks = sum(np.frombuffer(lies.objects[s][:20], np.uint32) for s in four.sites)
    made: dict[str, Played] = {
        "open vector changed on the exchange": replace(
            lies, objects={**lies.objects, "s0": _flipped(lies.objects["s0"], 23)}
        ),
        "bit behind the last masked number": _overfull(lies_open=False),
        "bit behind the last open number": _overfull(lies_open=True),
        "open vectors that lie hidden": _open(clear=False),
        "open vectors' sum with a number edited": lies.numbers(
            lies.released + np.array([0, 1, 0, 0, 0], np.uint32)
        ),
        "masked vectors' own sum released": lies.numbers(masks),
        "open vectors without seeds": lies.told(seeds=()),
        "open vectors taken for a plain sum": replace(lies, clear=False),
        "manifest that leaves the open vector out": lies.manifest(
            "s0",
            _as("s0", own, NUMBER),
            size=20,
            chunks=contribution.digests(memoryview(lies.objects["s0"])[:20]),
        ),
        "number edited": replace(good, released=off),
        "sum that was not opened": good.numbers(off),
        "seed of the hub's own making": good.told(seeds=(bytes(31), *seeds[1:])),
        "key seed of a lost site of its own making": good.told(
            seeds=(*seeds[:2], bytes(31), seeds[3])
        ),
        "seeds of two sites exchanged": good.told(seeds=(seeds[1], seeds[0], *seeds[2:])),
        "self-mask seed of a lost site": good.told(
            seeds=(*seeds[:2], whole.release.seeds[2], seeds[3])
        ),
        "no seeds": good.told(seeds=()),
        "one seed too few": good.told(seeds=seeds[:3]),
        "vector changed on the exchange": replace(
            good, objects={**objects, "s0": _flipped(objects["s0"], 3)}
        ),
        "open part changed on the exchange": replace(
            good, objects={**objects, "s0": _flipped(objects["s0"], 30)}
        ),
        "object cut short": replace(good, objects={**objects, "s0": objects["s0"][:30]}),
        "object gone": replace(good, objects={s: d for s, d in objects.items() if s != "s3"}),
        "objects exchanged": replace(good, objects=swapped),
        "survivor left out of the release": good.told(survivors=("s0", "s1"), lost=("s2", "s3")),
        "survivor left out everywhere": good.asked(
            survivors=("s0", "s1"), lost=("s2", "s3"), manifests=good.request.manifests[:2]
        ).told(survivors=("s0", "s1"), lost=("s2", "s3")),
        "lost site counted in": good.told(survivors=four.sites, lost=()),
        "site on both lists": good.told(lost=("s2", "s3")),
        "sites out of order": good.told(survivors=("s1", "s0", "s3")),
        "another request than the one answered": good.told(request=bytes(32)),
        "request without manifests": good.asked(manifests=()),
        "request signed by a site": replace(
            good, posted=_as("s0", own, NUMBER, "unmask")(encode(good.request))
        ).named(),
        "request of another round": replace(
            good, posted=good.signed(messages.UNMASK, good.request, NUMBER + 1)
        ).named(),
        "request under another question": good.asked(context=context(NUMBER + 1)),
        "manifest of another round": good.manifest("s0", _as("s0", own, NUMBER + 1)),
        "manifest of another run": good.manifest("s0", _as("s0", "study-2", NUMBER)),
        "manifest in another's name": good.manifest("s0", _as("s1", own, NUMBER)),
        "manifest of another question": good.manifest(
            "s0", _as("s0", own, NUMBER), context=context(9)
        ),
        "manifest of another vector": good.manifest(
            "s0", _as("s0", own, NUMBER), chunks=(bytes(32),)
        ),
        "manifest of more entries": good.manifest("s0", _as("s0", own, NUMBER), masked=24),
        "manifest of another ring": good.manifest("s0", _as("s0", own, NUMBER), bits=64),
        "manifest with a digest too many": good.manifest(
            "s0", _as("s0", own, NUMBER), chunks=(bytes(32), bytes(32))
        ),
        "manifest twice": good.asked(manifests=(first, first, *good.request.manifests[2:])),
        "release of another round": replace(
            good, said=good.signed(messages.RELEASE, good.release, NUMBER + 1)
        ),
        "release of another run": replace(good, said=other.signed(messages.RELEASE, other.release)),
        "release signed by a site": replace(good, said=_as("s0", own, NUMBER, "release")(body)),
        "release under another question": good.told(context=context(NUMBER + 1)),
        "release of another ring": good.told(bits=64),
        "release with a bit changed": replace(good, said=_flipped(said, len(said) - 1)),
        "release with a byte behind it": replace(good, said=said + b"\x00"),
        "release with an unknown field": replace(good, said=_longer(own, body)),
        "bundle of another run": replace(good, bundle=other.bundle),
        "bundle with a key twice": replace(good, bundle=_bundle(good, _twice)),
        "bundle with a key of low order": replace(good, bundle=_bundle(good, _low)),
        "bundle with a site's keys left out": replace(good, bundle=_bundle(good, lambda a: a[:3])),
        "another threshold": replace(good, other={"threshold": 4}),
        "another site's key": replace(
            good,
            other={
                "keys": {
                    **{n: k.hex() for n, k in four.roster.keys.items()},
                    "s0": four.roster.keys["s1"].hex(),
                }
            },
        ),
    }
    return [each.case(name, False) for name, each in made.items()]


def _longer(run: str, body: bytes) -> bytes:
    content = {**msgspec.msgpack.decode(body), "more": 1}
    return seal(identity(CENTRE), run, CENTRE, "release", NUMBER, msgspec.msgpack.encode(content))


def _bundle(good: Played, change: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]) -> bytes:
    opened = msgspec.msgpack.decode(good.bundle, type=_Envelope)
    body = decode(messages.Keys, opened.body, CENTRE)
    body = msgspec.structs.replace(body, advertisements=change(body.advertisements))
    return seal(identity(CENTRE), good.consortium.run, CENTRE, "keys", 0, encode(body))


def _twice(told: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return _with_masks(told, lambda masks: (masks[0], masks[0], *masks[2:]))


def _low(told: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return _with_masks(told, lambda masks: (bytes(32), *masks[1:]))


def _with_masks(told: tuple[bytes, ...], change: Callable[..., Any]) -> tuple[bytes, ...]:
    opened = msgspec.msgpack.decode(told[0], type=_Envelope)
    body = decode(messages.Advertisement, opened.body, "s0")
    body = msgspec.structs.replace(body, masks=change(body.masks))
    again = seal(identity("s0"), opened.run, "s0", "advertise", 0, encode(body))
    return (again, *told[1:])


# -- attestations ----------------------------------------------------------------------------

AGREED = {name: crypto.digest(name) for name in ("announcement", "keys", "plan")}


def _attestations() -> list[Case]:
    four = Consortium(colluding=1)
    run, roster = four.run, four.roster
    releases = [crypto.pack_tuple("release", number) for number in (1, 2)]
    records = tuple(map(release_record, releases))
    body = Attestation(**AGREED, records=records, checked=(1, 2), refuted=(), missed=(), earlier=())

    def signed(site: str, run: str = run, **changes: Any) -> bytes:
        said = encode_closing(msgspec.structs.replace(body, **changes))
        return seal(identity(site), run, site, "attestation", 0, said)

    def case(name: str, good: bool, told: dict[str, bytes]) -> Case:
        return {
            "name": name,
            "kind": "attestations",
            "good": good,
            "run": run,
            "colluding": 1,
            "threshold": roster.threshold,
            "minimum": roster.minimum,
            "holders": 0,
            "sites": list(four.sites),
            "keys": {name: key.hex() for name, key in roster.keys.items()},
            "announcement": AGREED["announcement"].hex(),
            "bundle_digest": AGREED["keys"].hex(),
            "plan": AGREED["plan"].hex(),
            "releases": [data.hex() for data in releases],
            "attestations": {site: data.hex() for site, data in told.items()},
        }

    every = {site: signed(site) for site in four.sites}
    three = {site: every[site] for site in four.sites[:3]}
    half = {site: signed(site, checked=(1,) if site < "s2" else (2,)) for site in four.sites}
    idle = {site: signed(site, checked=()) for site in four.sites}
    return [
        case("all sites attest", True, every),
        case("three of four attest", True, three),
        case("each checked one round", True, half),
        case("a lost round is told", True, {**every, "s3": signed("s3", missed=(2,))}),
        case("two attest", False, {site: every[site] for site in four.sites[:2]}),
        case("colluders attest alone", False, {"s0": every["s0"]}),
        case("one site attests twice", False, {"s0": every["s0"], "s1": every["s0"]}),
        case("attested in another run", False, {**three, "s2": signed("s2", run="study-2")}),
        case("one checker a round", False, {**idle, "s0": every["s0"]}),
        case("nobody checked", False, idle),
        case(
            "two of four attest another result",
            False,
            {
                **every,
                "s2": signed("s2", records=records[::-1]),
                "s3": signed("s3", records=records[::-1]),
            },
        ),
        case(
            "two of four attest a round fewer",
            False,
            {
                **every,
                "s2": signed("s2", records=records[:1]),
                "s3": signed("s3", records=()),
            },
        ),
        case(
            "two of four attest other keys",
            False,
            {
                **every,
                "s2": signed("s2", keys=bytes(32)),
                "s3": signed("s3", plan=bytes(32)),
            },
        ),
        case(
            "two of four dispute",
            False,
            {
                **every,
                "s2": signed("s2", refuted=((1, "sum-differs"),)),
                "s3": signed("s3", refuted=((2, "sum-differs"),)),
            },
        ),
        case("attestation with a bit changed", False, {**three, "s2": _flipped(every["s2"], 200)}),
    ]


# -- answers among neighbours ----------------------------------------------------------------

SAID = {"s0": (1, 2), "s1": (3, 4), "s2": (5, 2**32 - 1)}


@dataclass(frozen=True)
class Talk:
    """Two rounds in which three sites speak; in the second each lists what it heard in the first.

    ``listed`` are the lists of the second round's manifests, ``rows`` what is published.
    """

    listed: dict[str, tuple[messages.Heard, ...]]
    rows: dict[int, dict[str, tuple[int, ...]]] = field(
        default_factory=lambda: {1: dict(SAID), 2: dict(SAID)}
    )
    signed: dict[int, dict[str, tuple[int, ...]]] = field(
        default_factory=lambda: {1: dict(SAID), 2: dict(SAID)}
    )

    def case(self, name: str, good: bool) -> Case:
        """Make a vector."""
        made = Consortium(count=3, masked=False)
        return {
            "name": name,
            "kind": "tongues",
            "good": good,
            "run": made.run,
            "rounds": made.rounds,
            "sites": list(made.sites),
            "keys": {name: key.hex() for name, key in made.roster.keys.items()},
            "told": [self._told(made, number) for number in (1, 2)],
        }

    def _told(self, made: Consortium, number: int) -> Case:
        about, rows = context(number), self.rows[number]
        manifests = []
        for site in rows:
            row = _row(self.signed[number][site])
            opened = contribution.opened_digest(about, row)
            heard = self.listed[site] if number == 2 else ()
            chunks = contribution.digests(memoryview(row))
            body = messages.Manifest(about, 32, 0, len(row), chunks, opened, heard)
            manifests.append(_as(site, made.run, number)(encode(body)))
        released = np.array([n for row in rows.values() for n in row], np.uint32)
        lost = tuple(site for site in made.sites if site not in rows)
        release = messages.Release(
            *(about, tuple(rows), lost, b"", 32, ring_digests(released), (), tuple(manifests))
        )
        message = seal(identity(CENTRE), made.run, CENTRE, "release", number, encode(release))
        return {
            "number": number,
            "rows": {site: _row(row).hex() for site, row in rows.items()},
            "release": message.hex(),
        }


def _row(numbers: tuple[int, ...]) -> bytes:
    return np.array(numbers, "<u4").tobytes()


def _heard(site: str, numbers: tuple[int, ...], number: int = 1, **other: Any) -> messages.Heard:
    """What a neighbour is told by a site, under the site's signature or another's."""
    body = encode(messages.Broadcast(context(number), _row(numbers)))
    run, key = other.get("run", Consortium().run), identity(other.get("key", site))
    kind = other.get("kind", messages.BROADCAST)
    message = seal(key, run, site, kind, other.get("signed", number), body)
    opened = msgspec.msgpack.decode(message, type=_Envelope)
    return messages.Heard(site, number, release_record(body), opened.signature)


def _tongues() -> list[Case]:
    sites = tuple(SAID)
    whole = {
        site: tuple(_heard(other, SAID[other]) for other in sites if other != site)
        for site in sites
    }
    true, lie = whole["s0"][0], _heard("s1", (3, 5))
    silent: dict[str, tuple[messages.Heard, ...]] = dict.fromkeys(sites, ())

    def listing(*heard: messages.Heard, **more: Any) -> Talk:
        return Talk({**whole, "s0": heard}, **more)

    changed = {1: {**SAID, "s1": (3, 5)}, 2: dict(SAID)}
    without = {1: {s: SAID[s] for s in ("s0", "s2")}, 2: dict(SAID)}
    flipped = messages.Heard("s1", 1, true.body, _flipped(true.signature, 5))
    bad = {
        "a neighbour is told another answer": listing(lie, whole["s0"][1]),
        "the centre is told another answer": Talk(whole, changed, changed),
        "another answer is published than was signed": Talk(whole, changed),
        "one answer and another to the same neighbour": listing(true, lie),
        "two neighbours of a lost site are told two answers": listing(lie, rows=without),
        "an answer that nobody signed": listing(flipped),
        "an answer with another's signature": listing(_heard("s1", SAID["s1"], key="s2")),
        "an answer of another run": listing(_heard("s1", SAID["s1"], run="study-2")),
        "an answer of another round": listing(_heard("s1", SAID["s1"], signed=2)),
        "a signature under another kind of message": listing(
            _heard("s1", SAID["s1"], kind="manifest")
        ),
        "an answer of nobody's": listing(messages.Heard("s9", 1, true.body, true.signature)),
        "an answer of the centre's": listing(_heard(CENTRE, SAID["s1"])),
    }
    return [
        Talk(whole).case("everybody lists what was said", True),
        Talk(silent).case("nobody lists anything", True),
        listing(true, true).case("an answer is listed twice", True),
        Talk(whole, without).case("one that is heard is lost for the centre", True),
        *(talk.case(name, False) for name, talk in bad.items()),
    ]


# -- manifests' chunks -----------------------------------------------------------------------


def _chunks() -> list[Case]:
    sizes = (0, 1, messages.CHUNK_BYTES, messages.CHUNK_BYTES + 1)
    return [
        {
            "name": f"{size} bytes of 171",
            "size": size,
            "chunks": [d.hex() for d in contribution.digests(memoryview(b"\xab" * size))],
        }
        for size in sizes
    ]


def files() -> dict[str, list[Case]]:
    """Every file's vectors."""
    attested, told = _attestations(), _tongues()
    return {
        "tongues_good.json": [case for case in told if case["good"]],
        "tongues_bad.json": [case for case in told if not case["good"]],
        "rounds_good.json": good_rounds(),
        "rounds_bad.json": bad_rounds(),
        "attestations_good.json": [case for case in attested if case["good"]],
        "attestations_bad.json": [case for case in attested if not case["good"]],
        "chunks.json": _chunks(),
    }


def text(cases: list[Case]) -> str:
    """One vector a line, for a diff that can be read."""
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


if __name__ == "__main__":
    for name, cases in files().items():
        (FOLDER / name).write_text(text(cases), encoding="utf-8")
