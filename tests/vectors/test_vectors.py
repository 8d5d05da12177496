"""Both verifiers, which share no code, say the same of every vector, and the right thing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consortium.engine.closing import Attestation, attesting, decode_closing, release_record
from consortium.engine.names import ATTESTATION
from consortium.errors import ConsortiumError, ProtocolError
from consortium.secagg import Participants, contribution, unseal
from consortium.secagg.key_directory import KeySession, read_keys
from consortium.secagg.messages import Request
from consortium.secagg.packing import ring_type
from consortium.secagg.release import (
    add_again,
    added,
    agrees,
    check_answered,
    check_seeds,
    read_release,
    ring_digests,
    signed_manifests,
)
from consortium.verification.attestations import same_result, shown_by
from consortium.verification.equivocation import equivocations
from tests.vectors import make, verifier

FILES = tuple(
    f"{kind}_{end}" for kind in ("rounds", "attestations", "tongues") for end in ("good", "bad")
)
CASES = [
    pytest.param(case, id=case["name"].replace(" ", "-"))
    for name in FILES
    for case in json.loads((make.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
]


def _round(case: dict[str, Any]) -> None:
    """What the package says of a round."""
    keys = {name: bytes.fromhex(key) for name, key in case["keys"].items()}
    roster = Participants(
        tuple(case["sites"]), keys, case["threshold"], case["minimum"], case["holders"]
    )
    session, number = KeySession(case["run"], roster, case["rounds"]), case["number"]
    entries, bits = case["entries"], case["bits"]
    directory = read_keys(session, bytes.fromhex(case["bundle"]))
    release = read_release(session, number, bytes.fromhex(case["release"]))
    request = check_answered(session, number, release, bytes.fromhex(case["request"]))
    if (release.context.hex(), release.bits) != (case["context"], bits):
        raise ProtocolError("another question or ring")
    clear = case["open"]
    manifests = signed_manifests(session, number, request, entries, bits, clear=clear)
    check_seeds(session, directory, number, release)
    objects = {site: bytes.fromhex(data) for site, data in case["objects"].items()}
    taken = (
        added(site, number, body, objects.get(site, b""), entries, clear=clear)
        for site, body in manifests.items()
    )
    total = add_again(session, directory, number, release, taken, entries, clear=clear)
    released = np.frombuffer(bytes.fromhex(case["released"]), ring_type(bits))
    if ring_digests(released) != release.chunks or not agrees(total, release):
        raise ProtocolError("not the sum")


def _attestations(case: dict[str, Any]) -> None:
    """What the package says of attestations."""
    keys = {name: bytes.fromhex(key) for name, key in case["keys"].items()}
    due = [bytes.fromhex(case[name]) for name in ("announcement", "bundle_digest", "plan")]
    records = [release_record(bytes.fromhex(data)) for data in case["releases"]]
    agreeing = []
    for site, text in case["attestations"].items():
        data = bytes.fromhex(text)
        run, limit = case["run"], len(data)
        opened = unseal(data, keys, run=run, kind=ATTESTATION, limit=limit, sender=site, round=0)
        said = decode_closing(Attestation, opened.body, site)
        if same_result(said, *due, records):
            agreeing.append(said)
    shown = shown_by(agreeing, len(records), case["colluding"])
    needed = attesting(case["sites"], case["colluding"], case["threshold"])
    if shown != set(range(1, len(records) + 1)) or len(agreeing) < needed:
        raise ProtocolError("not shown")


def _tongues(case: dict[str, Any]) -> None:
    """What the package says of answers among neighbours."""
    keys = {name: bytes.fromhex(key) for name, key in case["keys"].items()}
    session = KeySession(
        case["run"], Participants(tuple(case["sites"]), keys, 0, 1), case["rounds"]
    )
    manifests = {}
    for told in case["told"]:
        number = told["number"]
        release = read_release(session, number, bytes.fromhex(told["release"]))
        request = Request(release.context, release.survivors, release.lost, release.manifests)
        manifests[number] = signed_manifests(session, number, request, 0, 32)
        for site, manifest in manifests[number].items():
            row = bytes.fromhex(told["rows"][site])
            if contribution.opened_digest(release.context, row) != manifest.opened:
                raise ProtocolError("not what its site signed")
    sites = {site: keys[site] for site in case["sites"]}
    for found in equivocations(case["run"], sites, manifests):
        raise ProtocolError(found.sentence)


def _believed(case: dict[str, Any]) -> bool:
    try:
        _CHECKS[case["kind"]](case)
    except ConsortiumError:
        return False
    return True


_CHECKS = {"round": _round, "attestations": _attestations, "tongues": _tongues}


@pytest.mark.parametrize("case", CASES)
def test_both_verifiers_agree(case: dict[str, Any]) -> None:
    assert (_believed(case), verifier.fault(case) == "") == (case["good"], case["good"])


def test_each_bad_round_is_bad_for_its_own_reason() -> None:
    """Two thirds of the reasons differ: no one check catches everything."""
    bad = json.loads((make.FOLDER / "rounds_bad.json").read_text(encoding="utf-8"))
    assert len(bad) >= 20
    assert len({verifier.fault(case) for case in bad}) >= 12


def test_chunks_of_a_manifest() -> None:
    for case in json.loads((make.FOLDER / "chunks.json").read_text(encoding="utf-8")):
        data = b"\xab" * case["size"]
        assert [d.hex() for d in verifier.chunks(data)] == case["chunks"]
        assert [d.hex() for d in contribution.digests(memoryview(data))] == case["chunks"]


def test_the_files_are_what_the_script_makes() -> None:
    made = {name: make.text(cases) for name, cases in make.files().items()}
    stored = {path.name: path.read_text(encoding="utf-8") for path in make.FOLDER.glob("*.json")}
    assert made.keys() == stored.keys()
    for name, text in made.items():
        assert stored[name] == text, f"{name}: run python -m tests.vectors.make"


def test_the_second_verifier_is_short_and_shares_no_code() -> None:
    text = Path(verifier.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 320
    assert "import consortium" not in text
    assert "from consortium" not in text
