"""Files that people write, and records that the software keeps on a disk which others may reach."""

import json
import random
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from consortium.base.work import work_folder
from consortium.coordinator.run_folder import read_run
from consortium.engine.clock import Waiting, read_waiting
from consortium.engine.kept_round import Kept
from consortium.engine.transcript import Transcript
from consortium.exchange.credentials import S3Credentials, SftpCredentials, load_credentials
from consortium.membership.admission import JoinRequest, read_request, write_request
from consortium.membership.keys import Identity
from consortium.membership.roster import Handover, Roster, read_roster, save_roster
from consortium.membership.signed_study import read_signed, sign_study, signature_path
from consortium.secagg import CENTRE
from consortium.study.reader import parse_study, read_study
from site_agent.approval import approval
from site_agent.config import SiteConfig
from site_agent.enrolment.pinned_consortium import PinnedConsortium, pin_consortium, read_pinned
from site_agent.layout import CONFIG, PINNED, POLICY
from site_agent.ledger.export import export_json, verify_export
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.policy.policy import Policy
from tests.long.fuzz_mutations import JSON, Codec, Make, mutant
from tests.long.fuzz_run import SITES, STUDY, key_of, public_of
from tests.long.fuzz_targets import Target
from tests.support.charges import held

Sign = Callable[[dict[str, Any]], None]
YAML = Codec(yaml.safe_load, lambda tree: json.dumps(tree).encode("utf-8", "replace"), JSON.odd)
"""Whatever is JSON is YAML, too, and sooner written."""
_FULL = STUDY + "title: Ω\nquorum: 3\ntiming: {join: 4, answer: 1.5}\n"


def private(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read."""
    path.touch(mode=0o600)
    path.write_bytes(data)


def reads(path: Path, parse: Callable[[], object]) -> Callable[[bytes], object]:
    """Put each input where the parser looks for it."""

    def act(data: bytes) -> object:
        path.write_bytes(data)
        return parse()

    return act


def resigned(make: Make, sign: Sign) -> Make:
    """Sign three of four of those that can still be signed, as a member who means harm would."""

    def act(rng: random.Random) -> bytes:
        data = make(rng)
        if rng.random() < 0.25:
            return data
        try:
            tree = yaml.safe_load(data)
            sign(tree)
        except Exception:  # whatever is wrong with it, the parser is to find out
            return data
        return YAML.write(tree)

    return act


def signed_roster(tree: dict[str, Any]) -> None:
    """Sign a roster as its centre."""
    sites = {name: bytes.fromhex(key) for name, key in tree["sites"].items()}
    earlier = tuple(Handover(**each) for each in tree["handovers"])
    members = Roster(tree["serial"], bytes.fromhex(tree["centre"]), sites, earlier)
    tree["signature"] = key_of("new").sign(members.signed()).hex()


def signed_request(tree: dict[str, Any]) -> None:
    """Sign a request with both keys."""
    keys = (bytes.fromhex(tree[name]) for name in ("key", "centre", "replaces"))
    text = JoinRequest(tree["site"], *keys).signed()
    tree["signature"] = key_of("a").sign(text).hex()
    tree["replaced_signature"] = key_of("b").sign(text).hex()


def written_targets(folder: Path) -> list[Target]:
    """What people write, or carry from one to the other, in YAML."""
    members = Roster(3, public_of(CENTRE), {name: public_of(name) for name in SITES})
    centre, one = key_of(CENTRE), folder / "input.yaml"
    found: list[Target] = []

    def add(name: str, path: Path, parse: Callable[[], object], sign: Sign | None = None) -> None:
        make = mutant([path.read_bytes()], YAML)
        make = make if sign is None else resigned(make, sign)
        found.append(Target(name, 50_000, make, reads(path, parse)))

    study = folder / "study.yaml"
    study.write_text(_FULL)
    sign_study(study, members, centre)
    add("study's signature", signature_path(study), lambda: read_signed(study, members))
    other = folder / "other.yaml"
    other.write_text(_FULL)
    add("study", other, lambda: read_study(other))
    roster = folder / "roster.yaml"
    save_roster(roster, members.handed_over(centre, public_of("new")), key_of("new"))
    add("roster", roster, lambda: read_roster(roster), signed_roster)
    join = folder / "join.yaml"
    write_request(join, SITES[0], public_of(CENTRE), key_of("a"), key_of("b"))
    add("request to join", join, lambda: read_request(join), signed_request)
    Policy(statistics=("admm_model", "coordinate_moment", "mean_embedding")).save(folder)
    add("policy", folder / POLICY, lambda: Policy.load(folder))
    SiteConfig.create(SITES[0], folder, "s3://bucket/prefix").save(folder)
    add("site's configuration", folder / CONFIG, lambda: SiteConfig.load(folder))
    (folder / "known_hosts").write_text("x")
    for kind, text in _CREDENTIALS:
        private(one, text)
        path = one.rename(folder / f"{kind.__name__}.yaml")
        add(f"{kind.__name__}", path, lambda p=path, k=kind: load_credentials(p, k))  # type: ignore[misc]
    return found


_CREDENTIALS: tuple[tuple[Any, bytes], ...] = (
    (S3Credentials, b"endpoint: https://host:9000\nkey: a\nsecret: b\nregion: eu-1\n"),
    (SftpCredentials, b"known_hosts: known_hosts\npassword: secret\n"),
)


def kept_targets(folder: Path) -> list[Target]:
    """What the software keeps, in JSON."""
    waiting = json.dumps({"step": "s", "since": 1.0, "until": 2.5, "sites": {"a": "", "b": "x"}})
    run = json.dumps({"run": "small-0001", "study": "0" * 64})
    pin_consortium(folder, PinnedConsortium(public_of(CENTRE), 3, "0" * 64))
    ledger = _export(folder)

    def add(name: str, inputs: int, path: Path, parse: Callable[[], Any], data: bytes) -> Target:
        return Target(name, inputs, mutant([data], JSON), reads(path, parse))

    trust, wait_file = (folder / PINNED).read_bytes(), work_folder(folder) / "waiting.json"
    wait_file.parent.mkdir(exist_ok=True)
    return [
        add("wait", 60_000, wait_file, lambda: _waiting(folder), waiting.encode()),
        add("run's record", 60_000, folder / "run.json", lambda: read_run(folder), run.encode()),
        add("pinned consortium", 60_000, folder / PINNED, lambda: read_pinned(folder), trust),
        Target("ledger's export", 200_000, mutant([ledger], JSON), verify_export),
        _approval(folder),
        *_transcript(folder / "transcript"),
    ]


def _waiting(folder: Path) -> Waiting | None:
    return read_waiting(folder)


def _export(folder: Path) -> bytes:
    ledger = Ledger(folder / "ledger.sqlite")
    for number in (1, 2):
        text = ("data", "small", "small-0001", number, "pca", "second_moment", "subject", 0.1)
        charge = held(ledger, Charge(*text, "5a" * 32, "ce" * 32, "9e" * 32, 0.05), loss=1.0)
        ledger.reserve(charge, "noon")
        ledger.spend(charge, "noon")
    ledger.close()
    return export_json(ledger, site=SITES[0], at="noon", key=key_of(SITES[0]))


def _approval(folder: Path) -> Target:
    """Records of which most are signed by the site, whose key an intruder on its disk may have."""
    identity, path = Identity(key_of(SITES[0]), bytes(32)), folder / "approval.json"
    keys = {name: public_of(name) for name in (*SITES, CENTRE)}
    terms = approval.Terms(3, 8.0, date(2027, 1, 1))
    given = approval.Approval(parse_study(_FULL), "0" * 64, "1" * 64, keys, folder, terms)
    changed = mutant([json.dumps(approval._content(given)).encode()], JSON, 1.0)

    def make(rng: Any) -> bytes:
        data = changed(rng)
        content = json.loads(data)
        if not isinstance(content, dict) or rng.random() < 0.2:
            return data
        signature = identity.key.sign(approval._canonical(content)).hex()
        return JSON.write({**content, "signature": signature})

    return Target("approval", 60_000, make, reads(path, lambda: approval._read(path, identity)))


def _transcript(folder: Path) -> list[Target]:
    transcript = Transcript(folder)
    transcript.append(
        Kept(1, "pca", "second_moment", (0, 1, 3), np.arange(5, dtype=np.uint64), bytes(32))
    )
    names = folder / "round-00001.json", folder / "round-00001.npy"
    good = [path.read_bytes() for path in names]
    made: tuple[Make, Make] = mutant([good[0]], JSON), mutant([good[1]])

    def parse(place: int, data: bytes) -> None:
        names[1 - place].write_bytes(good[1 - place])
        names[place].write_bytes(data)
        list(transcript.rounds())

    return [
        Target("transcript's record", 60_000, made[0], lambda data: parse(0, data)),
        Target("transcript's numbers", 60_000, made[1], lambda data: parse(1, data)),
    ]


__all__ = ["YAML", "kept_targets", "written_targets"]
