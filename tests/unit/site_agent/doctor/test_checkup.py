"""The doctor: every fault is found and named, and no fault stops it."""

import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from consortium import __version__
from consortium.base.checkup import LITTLE, SCARCE, Check, Surroundings
from consortium.engine.names import ANNOUNCEMENT, Names
from consortium.errors import ExchangeError
from consortium.exchange import DirectoryExchange, MemoryExchange
from consortium.membership.keys import create_identity, load_identity
from consortium.secagg import CENTRE, seal
from consortium.study.plan import promised_mu
from site_agent.approval.approval import Approval, Terms, store_record
from site_agent.config import SiteConfig
from site_agent.doctor.checkup import announced, examine
from site_agent.enrolment.pinned_consortium import PinnedConsortium, pin_consortium
from site_agent.layout import CONFIG, POLICY
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.policy.policy import Allowance, Policy
from tests.support.cases import make_study
from tests.support.charges import charged, held

CHARGE = Charge(
    *("/bids", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)
_REMEDY = re.compile(r"; |\. (?=[A-Z])")
"""Precedes the remedy in an error's message."""


def _around(token: str = "t0", **changes: object) -> Surroundings:
    import time

    around = Surroundings(time.time, token, {}, free=lambda _: 10 * LITTLE)
    return replace(around, **changes)  # type: ignore[arg-type]


def _image(folder: Path, subject: int) -> Path:
    name = f"sub-{subject:03d}_task-rest_space-MNI152NLin2009cAsym_desc-preproc_bold.nii"
    path = folder / "bids" / f"sub-{subject:03d}" / "func" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not read")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "mail").mkdir()
    for subject in (1, 2, 3):
        _image(folder, subject)
    SiteConfig.create("east", folder / "bids", str(folder / "mail")).save(folder)
    Policy().save(folder)
    create_identity(folder, bytes(range(64)))
    return folder


def _found(folder: Path, study: object = None, **changes: object) -> dict[str, Check]:
    checks = examine(folder, _around(**changes), study)  # type: ignore[arg-type]
    assert all(check.message.endswith(".") for check in checks)
    assert all(
        check.remedy or _REMEDY.search(check.message) for check in checks if check.state != "ok"
    )
    return {check.name: check for check in checks}


def _spend(folder: Path, at: str = "2026-11-01T10:00:00+00:00", rounds: int = 1) -> None:
    ledger = Ledger(folder / "ledger.sqlite")
    exchange = DirectoryExchange(folder / "mail")
    anchor = LedgerAnchor(exchange, load_identity(folder), "east", ledger)
    first = held(ledger, CHARGE, loss=2.0)
    for number in range(1, rounds + 1):
        ledger.reserve(replace(first, round=number), at)
        assert anchor.post() is None
    ledger.close()


def test_a_healthy_site(folder: Path) -> None:
    _spend(folder)
    found = _found(folder, make_study())
    assert {name for name, check in found.items() if check.state != "ok"} == set()
    assert list(found) == [
        *("configuration", "policy", "keys", "disk", "software", "data set", "participants"),
        *("ledger", "modes", "engine", "exchange", "clock", "heads", "folder", "version", "study"),
    ]
    assert "3 subjects with 3 images" in found["data set"].message
    assert "2 lines," in found["ledger"].message
    assert "1 signed head on" in found["heads"].message


def test_a_table_that_site_yaml_names_must_exist(folder: Path) -> None:
    SiteConfig.load(folder).model_copy(update={"participants": folder / "no.tsv"}).save(folder)
    assert _found(folder)["participants"].state == "fail"


def test_a_new_site_is_healthy_and_is_left_as_it_was(folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert {check.state for check in _found(folder).values()} == {"ok"}
    assert sorted(folder.iterdir()) == before  # no ledger made
    assert list((folder / "mail").iterdir()) == []  # what it wrote there, it took away


def test_only_a_few_random_letters_were_on_the_exchange(folder: Path) -> None:
    put: list[tuple[str, bytes]] = []

    class Watched(DirectoryExchange):
        def put(self, name: str, data: bytes | memoryview) -> None:
            put.append((name, bytes(data)))
            super().put(name, data)

        def remove(self, name: str) -> None:
            raise ExchangeError("nothing may be removed here; it stays.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("consortium.exchange.address.DirectoryExchange", Watched)
        assert {check.state for check in _found(folder).values()} == {"ok"}
    assert [name for name, _ in put] == [
        *("probes/east/t0", "probes/east/t0", "probes/east/t0-clock"),
    ]
    assert {data for _, data in put} == {b"t0", b"0t!"}  # nothing of the site's
    assert len(list((folder / "mail").rglob("t0*"))) == 2  # which is no fault


FAULTS: dict[str, tuple[Callable[[Path], object], str, str, str]] = {
    "no keys": (lambda f: (f / "keys").unlink(), "keys", "fail", "can't be read"),
    "open keys": (lambda f: (f / "keys").chmod(0o644), "keys", "fail", "read by others"),
    "no policy": (lambda f: (f / POLICY).unlink(), "policy", "warn", "the defaults apply"),
    "wrong policy": (lambda f: (f / POLICY).write_text("x: 1"), "policy", "fail", "field 'x'"),
    "no subjects": (
        *(lambda f: ((f / "bids").rename(f / "x"), (f / "bids").mkdir()), "data set", "fail"),
        "has no sub-",
    ),
    "no data": (lambda f: (f / "bids").rename(f / "x"), "data set", "fail", "can be read"),
    "no mail": (lambda f: _swap(f / "mail"), "exchange", "fail", "exchange"),
    "no ledger": (
        lambda f: (_spend(f), (f / "ledger.sqlite").unlink()),
        "heads",
        "warn",
        "is missing",
    ),
    "broken ledger": (
        lambda f: (f / "ledger.sqlite").write_bytes(b"x" * 5000),
        "ledger",
        "fail",
        "can't be used",
    ),
    "altered ledger": (lambda f: _alter(f), "ledger", "fail", "line 1 was altered"),
    "no heads": (
        lambda f: (_spend(f), (f / "mail" / "ledgers").rename(f / "x")),
        "heads",
        "warn",
        "none of this site's signed heads",
    ),
}


def _swap(path: Path) -> None:
    path.rmdir()
    path.write_text("in the way")


def _alter(folder: Path) -> None:
    _spend(folder)
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        connection.execute("UPDATE entries SET mu = 0")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_remedy(fault: str, folder: Path) -> None:
    damage, name, state, said = FAULTS[fault]
    damage(folder)
    check = _found(folder)[name]
    assert check.state == state
    assert said in f"{check.message} {check.remedy}"


def test_without_a_configuration_only_what_needs_none(folder: Path) -> None:
    (folder / CONFIG).write_text("name: [\n")
    found = _found(folder)
    assert list(found) == ["configuration", "policy", "keys", "disk", "software"]
    assert found["configuration"].state == "fail"


def test_a_restored_backup_is_found(folder: Path) -> None:
    _spend(folder)
    old = (folder / "ledger.sqlite").read_bytes()
    _spend(folder, rounds=3)
    (folder / "ledger.sqlite").write_bytes(old)
    check = _found(folder)["heads"]
    assert check.state == "fail"
    assert "it is a backup from before the last losses" in check.message
    assert "Restore the newest copy" in check.message


@pytest.mark.parametrize(
    ("free", "state"), [(SCARCE - 1, "fail"), (LITTLE - 1, "warn"), (LITTLE, "ok")]
)
def test_disk_space(free: int, state: str, folder: Path) -> None:
    assert _found(folder, free=lambda _: free)["disk"].state == state


@pytest.mark.parametrize(
    ("off", "state"),
    [
        (0, "ok"),
        (30, "ok"),
        (-30, "ok"),
        (90, "warn"),
        (-90, "warn"),
        (900, "fail"),
        (-900, "fail"),
    ],
)
def test_a_clock_that_is_off(off: int, state: str, folder: Path) -> None:
    import time

    check = _found(folder, now=lambda: time.time() + off)["clock"]
    assert check.state == state
    if state != "ok":
        assert f"differ by {abs(off)} s" in check.message


def test_a_clock_before_the_ledgers_last_line(folder: Path) -> None:
    _spend(folder, at="2126-01-01T00:00:00+00:00")
    check = _found(folder)["clock"]
    assert check.state == "fail"
    assert "before the ledger's last line" in check.message


def test_an_exchange_that_lets_messages_be_written_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(self: DirectoryExchange, name: str, data: bytes) -> None:
        path = folder / "mail" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    monkeypatch.setattr(DirectoryExchange, "put", put)
    assert "can be written over" in _found(folder)["exchange"].message
    monkeypatch.setattr(DirectoryExchange, "put", lambda *_: None)
    assert "came back altered or not at all" in _found(folder, token="t1")["exchange"].message


def test_what_a_study_would_find(folder: Path) -> None:
    _, second, _ = sorted((folder / "bids").rglob("*.nii"))
    second.rename(second.with_name("sub-002_task-other_bold.nii"))
    check = _found(folder, make_study())["data set"]
    assert (check.state, "2 subjects with 2 images; 1 have none" in check.message) == ("warn", True)


def test_whom_the_hospital_leaves_out_is_not_counted(folder: Path) -> None:
    table = folder / "left-out.tsv"
    text = re.sub("(?m)^left_out:.*\n", "", (folder / "site.yaml").read_text())
    (folder / "site.yaml").write_text(f"{text}left_out: left-out.tsv\n")
    missing = _found(folder)["data set"]
    assert (missing.state, str(table) in missing.message) == ("fail", True)
    table.write_text("participant_id\treason\nsub-002\twithdrew consent\nsub-009\tmoved\n")
    assert "3 participants; " in (alone := _found(folder)["data set"]).message
    assert f"{table} excludes 1 of them." in alone.message
    check = _found(folder, make_study())["data set"]
    assert (check.state, "2 subjects with 2 images" in check.message) == ("ok", True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_images_that_can_not_be_read(folder: Path) -> None:
    next((folder / "bids").rglob("*.nii")).chmod(0)
    assert "1 of 3 images can't be read" in _found(folder, make_study())["data set"].message


def test_a_study_that_the_policy_or_the_ledger_does_not_allow(folder: Path) -> None:
    check = _found(folder, make_study(colluding_sites=0, epsilon=50.0))["study"]
    assert "fewest_colluding_sites" in check.message
    assert check.remedy == "Further reasons for a refusal: 2."
    ledger = Ledger(folder / "ledger.sqlite")
    charged(ledger, replace(CHARGE, dataset=str((folder / "bids").resolve()), mu=3.2))
    assert "subject.total" in _found(folder, make_study(), token="t1")["study"].message


@pytest.mark.parametrize(("approved", "state"), [(1, "ok"), (2, "fail")])
def test_another_run_is_held_against_the_policy_only_while_one_is_approved(
    approved: int, state: str, folder: Path
) -> None:
    identity, study = load_identity(folder), make_study()
    centre = bytes.fromhex(CHARGE.centre)
    pin_consortium(folder, PinnedConsortium(centre))
    store_record(
        folder, identity, Approval(study, "", "", {CENTRE: centre}, folder, Terms(approved))
    )
    charge = replace(
        CHARGE, dataset=str((folder / "bids").resolve()), study=study.study, mu=promised_mu(study)
    )
    charged(Ledger(folder / "ledger.sqlite"), charge)
    Policy(subject=Allowance(study=study.privacy.epsilon * 1.2, total=20.0)).save(folder)
    check = _found(folder, study)["study"]
    assert check.state == state
    assert ("approved for 1 run" in check.message) == (state == "ok")
    anew = study.model_copy(update={"title": "Another study"})  # nobody has said yes to it
    assert _found(folder, anew, token="t1")["study"].state == "fail"


# -- versions -----------------------------------------------------------------------------------


def _announce(exchange: MemoryExchange, folder: Path, run: str, version: str) -> Approval:
    key = load_identity(folder).key
    body = json.dumps({"version": version}).encode()
    exchange.put(Names(run).study(), seal(key, run, CENTRE, ANNOUNCEMENT, 0, body))
    keys = {CENTRE: load_identity(folder).public}
    return Approval(make_study(), "", "", keys, folder, Terms())


def test_the_newest_announcement_of_an_approved_study_counts(folder: Path) -> None:
    exchange = MemoryExchange()
    approval = _announce(exchange, folder, "small-0001", "0.0.1")
    assert announced(exchange, []).state == "ok"
    check = announced(exchange, [approval])
    assert (check.state, "runs 0.0.1" in check.message) == ("warn", True)
    _announce(exchange, folder, "small-0002", __version__)
    _announce(exchange, folder, "foreign-0003", "9.9.9")
    assert announced(exchange, [approval]).state == "ok"


def test_forged_announcements_are_passed_over_in_bounded_work(folder: Path) -> None:
    exchange = MemoryExchange()
    approval = _announce(exchange, folder, "small-0001", "0.0.1")
    for number in range(2, 12):
        exchange.put(Names(f"small-{number:04d}").study(), b"\xff" * number)
    assert announced(exchange, [approval]).state == "warn"
    for number in range(12, 40):
        exchange.put(Names(f"small-{number:04d}").study(), b"x")
    assert announced(exchange, [approval]).state == "ok"


# -- Prefect ------------------------------------------------------------------------------------


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/api/health" else 404)
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_prefect_is_asked_only_if_the_owner_uses_it(folder: Path, server: str) -> None:
    assert "Prefect" not in _found(folder)
    config = SiteConfig.load(folder).model_copy(update={"prefect": True})
    config.save(folder)
    cases = {f"{server}/api": "ok", f"{server}/other": "fail", "": "warn", "file:///etc": "fail"}
    for number, (url, state) in enumerate(cases.items()):
        environment = {"PREFECT_API_URL": url} if url else {}
        found = _found(folder, token=f"p{number}", environment=environment)
        assert found["Prefect"].state == state, url


def test_no_fault_of_its_own_stops_it(folder: Path) -> None:
    def broken(_: Path) -> int:
        raise RuntimeError("no disk")

    check = _found(folder, free=broken)["disk"]
    assert check.state == "fail"
    assert "RuntimeError: no disk" in check.message


@pytest.mark.parametrize(
    ("engine", "state"),
    [
        ({"engine": "processes"}, "ok"),
        ({"engine": "dask", "engine_address": "tcp://127.0.0.1:9"}, "fail"),
    ],
)
def test_an_engine_that_does_not_compute_is_named(
    engine: dict[str, str], state: str, folder: Path
) -> None:
    SiteConfig.load(folder).model_copy(update=engine).save(folder)
    check = _found(folder)["engine"]
    assert check.state == state, check.message
