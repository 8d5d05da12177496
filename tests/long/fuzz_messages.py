"""Everything that comes over the exchange: envelopes, and what is behind good signatures."""

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from datetime import date

import msgspec
import numpy as np

from consortium.algorithms.base import Query
from consortium.engine import closing
from consortium.engine.queries import (
    SiteNote,
    decode_note,
    decode_query,
    encode_note,
    encode_query,
    read_announcement,
    sketch_query,
)
from consortium.engine.run_context import read_start, start_notice
from consortium.exchange.memory import MemoryExchange
from consortium.membership.consent import KIND as CONSENT
from consortium.membership.consent import Consent, read_consents
from consortium.membership.signed_study import members_digest
from consortium.secagg import (
    CENTRE,
    crypto,
    messages,
    seal,
    unseal,
)
from consortium.secagg import (
    contribution as contribution_module,
)
from consortium.secagg.hub_round import Tally
from consortium.secagg.key_directory import read_advertisement, read_keys
from consortium.secagg.release import check_seeds, read_release
from consortium.secagg.seed_shares import open_share, read_share, read_shared, read_shares
from consortium.secagg.states import HubRound
from consortium.secagg.unmasking import check_request
from consortium.verification.equivocation import equivocations
from tests.long.fuzz_mutations import JSON, MSGPACK, Make, mutant
from tests.long.fuzz_run import CONTEXT, ENTRIES, RUN, SITES, Run, key_of
from tests.long.fuzz_targets import Target
from tests.support.secagg_wire import with_payload

_BODIES = (
    *(messages.Advertisement, messages.Keys, messages.Share, messages.Shares),
    *(messages.Contribution, messages.Request, messages.Unmasking),
)


def body_of(message: bytes) -> bytes:
    """What is in an envelope."""
    return bytes(msgspec.msgpack.decode(message)[5])


def envelope_of(contribution: bytes) -> bytes:
    """A contribution without its vectors."""
    return contribution_module.split_message(contribution, 1 << 16).envelope


def resigned(make: Make, kind: str, sender: str, number: int = 0, run: str = RUN) -> Make:
    """Put what is made into an envelope of its alleged sender, who signs it."""
    key = key_of(sender)
    return lambda rng: seal(key, run, sender, kind, number, make(rng))


def encrypted(make: Make, run: Run, kind: str, sender: str) -> Make:
    """Encrypt it to the hub, too, and sign it."""
    key = run.channel(sender, kind)
    return resigned(lambda rng: crypto.encrypt(key, make(rng)), kind, sender, 1)


def open_targets(run: Run) -> list[Target]:
    """Parsers that meet bytes which nobody has signed, and decoders without their envelopes."""
    everything = [*run.advertisements, run.keys, *run.shares, run.bundle]
    everything += [*map(envelope_of, run.contributions), run.request, *run.unmaskings]
    bodies = _plain_bodies(run)
    keyring = run.keyring

    def envelope(data: bytes) -> object:
        return unseal(data, keyring, run=RUN, kind=messages.SHARE, limit=1 << 16)

    found = [Target("envelope", 820_000, mutant(everything, MSGPACK, 0.3), envelope)]
    for kind in _BODIES:
        name = f"{kind.__name__.lower()} body"
        parse = _decoder(kind)
        found.append(Target(name, 500_000, mutant([bodies[kind]], MSGPACK), parse))
    return found + _application_targets(run)


def _decoder(kind: type[messages.Body]) -> Callable[[bytes], object]:
    return lambda data: messages.decode(kind, data, "north")


def _plain_bodies(run: Run) -> dict[type[messages.Body], bytes]:
    found = {
        messages.Advertisement: body_of(run.advertisements[0]),
        messages.Keys: body_of(run.keys),
        messages.Share: body_of(run.shares[0]),
        messages.Shares: body_of(run.bundle),
        messages.Request: body_of(run.request),
        messages.Release: messages.encode(run.release),
    }
    for kind, message in (
        (messages.Contribution, envelope_of(run.contributions[0])),
        (messages.Unmasking, run.unmaskings[0]),
    ):
        key = run.channel(SITES[0], kind.__name__.lower())
        found[kind] = crypto.decrypt(key, body_of(message), "it")
    return found


def _application_targets(run: Run) -> list[Target]:
    notices = [json.dumps({"code": "data", "reason": "no"}).encode(), b'{"outcome": "complete"}']
    queries = [
        encode_query(Query("ica", "rotation", {"w": np.eye(2)}))[0],
        encode_query(Query("ica", "rotation", {"basis": np.ones((60, 40))}))[0],
    ]
    note = encode_note(SiteNote("0" * 64, "1"))

    def query(data: bytes) -> None:
        sketch_query(data)
        decode_query(data, lambda _, size: bytes(min(size, 1 << 16)))

    return [
        Target("query", 500_000, mutant(queries, MSGPACK), query),
        Target("site's note", 600_000, mutant([note], MSGPACK), lambda d: decode_note(d, "north")),
        Target("word who takes part", 400_000, mutant([start_notice(SITES)], JSON), read_start),
        Target(
            "announcement", 300_000, mutant([run.context.announcement], JSON), read_announcement
        ),
        *_end_targets(run.keyring),
        Target("refusal and end", 400_000, mutant(notices, JSON), read_announcement),
    ]


def _end_targets(keyring: Mapping[str, bytes]) -> list[Target]:
    """What is checked of a run once it is over."""
    agreed = (CONTEXT, CONTEXT, CONTEXT, (CONTEXT, CONTEXT))
    closed = closing.encode_closing(closing.Closing(*agreed, {"numpy": "2"}))
    said = closing.Attestation(*agreed, (1,), ((2, "sum-differs"),), (2,), ("small-0001",))
    attested = closing.encode_closing(said)

    def close(data: bytes) -> None:
        closing.decode_closing(closing.Closing, data, "it")

    def attest(data: bytes) -> None:
        closing.decode_closing(closing.Attestation, data, "it")

    heard = messages.Heard(SITES[1], 1, CONTEXT, bytes(64))
    told = messages.Manifest(CONTEXT, 32, 0, 9, (CONTEXT,), CONTEXT, (heard, heard))
    listed = messages.encode(told)

    def hear(data: bytes) -> None:
        manifest = messages.decode(messages.Manifest, data, SITES[0])
        for found in equivocations(RUN, keyring, {1: {SITES[0]: manifest}}):
            assert found.sentence.isprintable()

    return [
        Target("manifest and what was received", 60_000, mutant([listed], MSGPACK), hear),
        Target("closing", 200_000, mutant([closed], MSGPACK), close),
        Target("attestation", 200_000, mutant([attested], MSGPACK), attest),
    ]


def signed_targets(run: Run) -> list[Target]:
    """Parsers behind signatures that are good: a member of the consortium means harm."""
    site, session = SITES[0], run.session
    bodies = {kind: mutant([body], MSGPACK, 0.8) for kind, body in _plain_bodies(run).items()}
    share, shared = messages.SHARE, run.parties[SITES[1]].setup.keys.channels[site]

    def shares(data: bytes) -> None:
        for sender, part in read_shares(session, SITES[1], data).items():
            told = read_shared(session, run.directory, sender, part.signed)
            if sender == site:
                open_share(session, run.directory, SITES[1], site, shared, part, told.root)

    def opened_share(data: bytes) -> None:
        read_share(session, run.directory, data, site)

    def plan(kind: type[messages.Body], name: str, sender: str, number: int = 0) -> Make:
        return resigned(bodies[kind], name, sender, number)

    return [
        Target(
            "advertisement, signed",
            60_000,
            plan(messages.Advertisement, messages.ADVERTISE, site),
            lambda data: read_advertisement(session, data),
        ),
        Target(
            "keys bundle, signed",
            50_000,
            plan(messages.Keys, messages.KEYS, CENTRE),
            lambda data: read_keys(session, data),
        ),
        Target("share, signed", 50_000, plan(messages.Share, share, site), opened_share),
        Target(
            "shares bundle, signed", 50_000, plan(messages.Shares, messages.SHARES, CENTRE), shares
        ),
        Target(
            "unmask request, signed",
            60_000,
            plan(messages.Request, messages.UNMASK, CENTRE, 1),
            lambda data: check_request(session, 1, CONTEXT, site, data, SITES),
        ),
        Target(
            "release, signed",
            50_000,
            plan(messages.Release, messages.RELEASE, CENTRE, 1),
            lambda data: check_seeds(session, run.directory, 1, read_release(session, 1, data)),
        ),
        *_encrypted_targets(run, bodies),
        _consent_target(run),
    ]


def _encrypted_targets(run: Run, bodies: dict[type[messages.Body], Make]) -> list[Target]:
    site, hub = SITES[0], run.hub

    def contribution(data: bytes) -> None:
        parts = contribution_module.split_message(data, 1 << 16)
        opened = hub.session.unseal(messages.CONTRIBUTION, parts.envelope, 1 << 16)
        tally = Tally(run.context.roster, 1, CONTEXT, ENTRIES, 32, ENTRIES)
        tally.add(site, hub.setup.known.unload(opened, parts), parts.manifest)

    def unmasking(data: bytes) -> None:
        opened = hub.session.unseal(messages.UNMASKING, data, 1 << 16)
        tally = Tally(run.context.roster, 1, CONTEXT, ENTRIES, 32, ENTRIES, HubRound.UNMASKING)
        tally.contributed = set(SITES[:3])
        tally.survivors, tally.request = SITES[:3], run.request
        tally.answer(site, hub.setup.known.decrypt(messages.Unmasking, opened))

    sent = contribution_module.split_message(run.contributions[0], 1 << 16)
    said = encrypted(bodies[messages.Contribution], run, messages.CONTRIBUTION, site)
    answers = encrypted(bodies[messages.Unmasking], run, messages.UNMASKING, site)
    whole = mutant(run.contributions)
    return [
        Target(
            "contribution, signed",
            60_000,
            lambda rng: with_payload(said(rng), sent.payload, sent.manifest),
            contribution,
        ),
        Target("contribution with its vectors", 60_000, whole, contribution),
        Target("unmasking, signed", 60_000, answers, unmasking),
    ]


def _consent_target(run: Run) -> Target:
    site, study = SITES[0], run.study
    consent = Consent(site, study.digest, 3, 8.0, date(2027, 1, 1))
    make = resigned(mutant([msgspec.json.encode(consent)], JSON, 0.8), CONSENT, site, 1, CONSENT)

    def parse(data: bytes) -> None:
        exchange = MemoryExchange()
        exchange.put(f"consent/{study.study}/{site}/000001", data)
        read_consents(exchange, study, {site: run.keyring[site]})

    return Target("consent, signed", 60_000, make, parse)


def mixed(make: Make, other: Make) -> Make:
    """Either of two."""
    return lambda rng: (make if rng.random() < 0.5 else other)(rng)


def digest_of(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def members_of(run: Run) -> str:
    """What a study's signature says of its members."""
    return members_digest(run.keyring)


__all__ = ["digest_of", "members_of", "mixed", "open_targets", "random", "signed_targets"]
