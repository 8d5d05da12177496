"""The security log: each line is one of RFC 5424, whatever others wrote, and none is missing."""

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import OutputError, SiteError, printable
from consortium.membership.keys import load_identity
from site_agent.config import SiteConfig
from site_agent.ledger.ledger import Ledger
from site_agent.security_log import DATA, SecurityLog, line
from tests.support.charges import held
from tests.support.command_line import enter
from tests.support.local_consortium import LocalConsortium, build, conduct, limit
from tests.support.site_pages import CHARGE

AT = "2026-11-27T10:00:00+00:00"
VALUE = r'(?:[^"\\\]]|\\["\\\]])*'
SYSLOG = re.compile(  # section 6 of RFC 5424, of what is written here
    r"<(?P<pri>[0-9]{1,3})>1"
    r" (?P<at>-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d))"
    r" (?P<host>[!-~]{1,255}) (?P<app>[!-~]{1,48}) (?P<pid>[!-~]{1,128}) (?P<id>[!-~]{1,32})"
    rf' \[(?P<sd>[^ =\]"]{{1,32}})(?P<data>(?: [^ =\]"]{{1,32}}="{VALUE}")*)\] (?P<text>[^\n\r\0]*)'
)
FACT = re.compile(rf' ([^ =\]"]+)="({VALUE})"')


def facts(text: str) -> dict[str, str]:
    """Parse a line as its reader does; each must be one line of the form."""
    found = SYSLOG.fullmatch(text)
    assert found is not None, text
    assert found["sd"] == DATA
    data = {name: re.sub(r"\\(.)", r"\1", value) for name, value in FACT.findall(found["data"])}
    return {"id": found["id"], "at": found["at"], "text": found["text"], **data}


@given(st.text(max_size=300), st.text(max_size=300))
def test_whatever_others_wrote_is_one_value(value: str, text: str) -> None:
    found = facts(line(AT, "LEDGER", {"run": value, "seq": 1}, text, 5))
    assert found.get("run", "") == printable(value, 200)
    assert found["seq"] == "1"


@pytest.mark.parametrize(
    "evil",
    [
        'x" admin="yes',
        'x"] <85>1 - - - - - - forged',
        "x\n<85>1 2026-11-27T10:00:00Z h site-agent 1 LEDGER - forged",
        "x\\",
        "x\r\0\x1b[2J\u2028\u202e",
        "]" * 400,
    ],
)
def test_a_hostile_value_adds_neither_fact_nor_line(evil: str) -> None:
    found = facts(line(AT, "REFUSAL", {"run": evil, "code": "budget"}, evil, 4))
    assert set(found) == {"id", "at", "text", "run", "code"}
    assert found["code"] == "budget"


@pytest.mark.parametrize("at", ["", "yesterday", "2026-11-27T10:00:00", AT + "\n<1>"])
def test_a_time_that_is_none_is_unknown(at: str) -> None:
    assert facts(line(at, "LEDGER", {}, "text", 5))["at"] == "-"


def _site(local: LocalConsortium, name: str, log: Path) -> None:
    folder = local.place.site(name)
    SiteConfig.load(folder).model_copy(update={"security_log": log}).save(folder)


def test_every_line_of_the_ledger_every_approval_and_refusal_is_written(tmp_path: Path) -> None:
    place = build(tmp_path / "place", dropouts=1)
    local = LocalConsortium(place)
    log, refusing = tmp_path / "north.log", tmp_path / "south.log"
    _site(local, "north", log)
    _site(local, "south", refusing)
    limit(place, "south", 0.5)
    with pytest.raises(SiteError, match="south"):
        conduct(local.centre())
    agent = local.agent("north")
    agent._keep_security_log(every=0.0)
    written = [facts(text) for text in log.read_text().splitlines()]
    entries = agent.site.ledger.entries()
    assert [(f["seq"], f["digest"]) for f in written] == [(str(e.seq), e.digest) for e in entries]
    assert {f["id"] for f in written} >= {"APPROVAL", "ROSTER", "LEFT-OUT"}
    assert log.stat().st_mode & 0o777 == 0o600
    (refusal,) = [f for f in map(facts, refusing.read_text().splitlines()) if f["id"] == "REFUSAL"]
    assert (refusal["site"], refusal["run"], refusal["code"]) == ("south", "small-0001", "budget")
    subjects = {path.name for path in place.root.glob("hospitals/*/bids/**/sub-*")}
    assert subjects
    assert not [name for name in subjects if name in log.read_text() + refusing.read_text()]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.sqlite")
    first = held(made, CHARGE, loss=5.0)
    for number in range(1, 31):
        made.reserve(replace(first, round=number), AT)
    return made


def _log(folder: Path, target: Path) -> SecurityLog:
    return SecurityLog(target, folder, "east", lambda: AT)


def test_a_restart_writes_no_line_twice_and_another_ledger_from_its_start(
    ledger: Ledger, tmp_path: Path
) -> None:
    target = tmp_path / "log"
    for _ in range(3):
        _log(tmp_path, target).follow(ledger)
    lines = target.read_text().splitlines()
    assert [facts(text)["seq"] for text in lines] == [str(e.seq) for e in ledger.entries()]
    other = Ledger(tmp_path / "other.sqlite")
    held(other, replace(CHARGE, run="other-0001"), loss=1.0)
    _log(tmp_path, target).follow(other)
    assert facts(target.read_text().splitlines()[len(lines)])["run"] == "other-0001"


def test_a_socket_that_is_away_or_full_loses_no_line(ledger: Ledger, tmp_path: Path) -> None:
    target = tmp_path / "dev-log"
    with pytest.raises(OutputError, match="security log can't be written"):
        _log(tmp_path, tmp_path / "none" / "log").follow(ledger)
    reader = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    reader.bind(str(target))
    reader.settimeout(0.2)
    seen: list[str] = []
    for _ in range(100):
        try:
            _log(tmp_path, target).follow(ledger)
            full = False
        except OutputError:  # its queue is full, and nobody waits for it
            full = True
        try:
            while True:
                seen.append(facts(reader.recv(8192).decode())["seq"])
        except TimeoutError:
            pass
        if not full:
            break
    reader.close()
    assert seen == [str(entry.seq) for entry in ledger.entries()]


def test_a_change_of_the_key_is_written(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    local = LocalConsortium(place)
    folder, log = place.site("north"), tmp_path / "log"
    _site(local, "north", log)
    before = load_identity(folder).public.hex()
    centre = load_identity(place.files.keys).public.hex()
    said = enter("site-agent", "join", "--rotate", "--centre", centre, "--folder", folder)
    assert said.code == 0, said
    (found,) = [f for f in map(facts, log.read_text().splitlines()) if f["id"] == "KEY"]
    assert (found["earlier"], found["key"]) == (before, load_identity(folder).public.hex())
