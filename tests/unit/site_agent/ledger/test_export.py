"""The exported ledger: somebody else can check it, and finds every change."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import LedgerError
from consortium.membership.roster import fingerprint
from site_agent.ledger.export import export_json, verify_export
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import held
from tests.support.membership_files import private, public

CHARGE = Charge(
    *("/bids/été", "small", "small-0001", 1, "pca", "second_moment", "subject", 1e-5),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)
FIELDS = [
    *("dataset", "study", "run", "round", "stage", "statistic", "unit", "mu"),
    *("site", "centre", "query", "outsider", "persons", "event", "at", "previous"),
]


def _filled(path: Path) -> Ledger:
    ledger = Ledger(path)
    first = held(ledger, CHARGE, loss=1.0)
    for number in (1, 2, 3):
        charge = replace(first, round=number, mu=CHARGE.mu * 3**number)
        ledger.reserve(charge, f"at {number}")
        ledger.spend(charge, f"at {number}, later")
    return ledger


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    ledger = _filled(tmp_path_factory.mktemp("export") / "l.sqlite")
    return export_json(ledger, site="east", at="noon", key=private(1))


def test_it_says_what_the_ledger_says(tmp_path: Path) -> None:
    ledger = _filled(tmp_path / "l.sqlite")
    export = verify_export(export_json(ledger, site="east", at="noon", key=private(1)))
    assert (export.site, export.at, export.key) == ("east", "noon", public(1))
    assert list(export.entries) == ledger.entries()
    assert export.head == ledger.head()


def test_an_empty_ledger_can_be_exported(tmp_path: Path) -> None:
    export = verify_export(
        export_json(Ledger(tmp_path / "l.sqlite"), site="east", at="noon", key=private(1))
    )
    assert (export.entries, export.head.seq) == ((), 0)


def test_a_stranger_can_check_it_by_its_own_words(exported: bytes) -> None:
    """Nothing of this project is used but the format as the file describes it."""
    content = json.loads(exported)
    assert ", ".join(FIELDS) in content["how"]
    previous = "0" * 64
    for line in content["lines"]:
        fields = [field for field in FIELDS if field != "persons" or line["persons"]]
        text = json.dumps([line[field] for field in fields])
        assert line["previous"] == previous
        previous = hashlib.sha256(text.encode("ascii")).hexdigest()
        assert line["digest"] == previous
    assert content["head"] == {"seq": len(content["lines"]), "digest": previous}
    said = json.dumps([content["site"], content["at"], len(content["lines"]), previous])
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(content["key"]))
    signature = bytes.fromhex(content["signature"])
    key.verify(signature, f"consortium ledger export 3\n{said}".encode("ascii"))


@given(st.data())
def test_any_change_of_any_field_shows(exported: bytes, data: st.DataObject) -> None:
    content = json.loads(exported)
    line = data.draw(st.sampled_from(content["lines"]))
    field = data.draw(st.sampled_from(sorted(line)))
    value = line[field]
    line[field] = value + "x" if isinstance(value, str) else value + 1
    with pytest.raises(LedgerError, match="was altered"):
        verify_export(json.dumps(content).encode())


CHANGES = {
    "a line less": lambda c: c["lines"].pop(2),
    "the last line less": lambda c: c["lines"].pop(),
    "a line twice": lambda c: c["lines"].insert(2, c["lines"][2]),
    "two lines swapped": lambda c: c["lines"].reverse(),
    "another head": lambda c: c["head"].update(seq=99),
    "another format": lambda c: c.update(format="x"),
    "a later version": lambda c: c.update(version=4),
    "another site": lambda c: c.update(site="west"),
    "another time": lambda c: c.update(at="midnight"),
    "another's key": lambda c: c.update(key=public(2).hex()),
    "no key": lambda c: c.update(key="xy"),
    "a short key": lambda c: c.update(key="ab"),
    "no signature": lambda c: c.update(signature=""),
    "a field more": lambda c: c["lines"][0].update(note="x"),
    "a field less": lambda c: c["lines"][0].pop("mu"),
    "text for a number": lambda c: c["lines"][0].update(mu="0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_was_changed_is_refused(name: str, exported: bytes) -> None:
    content = json.loads(exported)
    CHANGES[name](content)
    with pytest.raises(LedgerError):
        verify_export(json.dumps(content).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b"[" * 100_000])
def test_what_is_no_export_is_refused(data: bytes) -> None:
    with pytest.raises(LedgerError, match="can't be read"):
        verify_export(data)


def test_the_sentence_says_what_was_checked_and_by_whose_key(exported: bytes) -> None:
    said = verify_export(exported).sentence
    assert "The ledger of east as of noon is complete: its 7 lines follow one another" in said
    assert f"signed with the key of fingerprint {fingerprint(public(1))}" in said


def test_a_name_in_an_export_does_not_drive_a_terminal(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    data = export_json(ledger, site="\x1b[2J" * 50, at="noon\x07", key=private(1))
    assert verify_export(data).sentence.isprintable()
