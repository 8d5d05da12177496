"""The coordinator's doctor: every fault is found and named, and the exchange is left as it was."""

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from consortium.base.checkup import LITTLE, Check, Surroundings
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.doctor import CoordinatorParts, check_centre
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import found_roster, save_roster
from tests.support.command_line import enter
from tests.support.local_consortium import SITES
from tests.support.membership_files import consent, papers


@pytest.fixture
def office(tmp_path: Path) -> CoordinatorParts:
    files = papers(tmp_path)[0].files
    return CoordinatorParts(files.keys, files.roster, str(files.exchange), study=files.study)


def _around(**changes: object) -> Surroundings:
    around = Surroundings(time.time, "t0", {}, free=lambda _: 10 * LITTLE)
    return replace(around, **changes)  # type: ignore[arg-type]


def _found(office: CoordinatorParts, around: Surroundings | None = None) -> dict[str, Check]:
    return {check.name: check for check in check_centre(office, around or _around())}


def test_all_is_well_once_every_site_has_approved(office: CoordinatorParts) -> None:
    consent(DemoFolders(office.keys.parent), *SITES)
    assert {check.state for check in _found(office).values()} == {"ok"}
    left = [path.name for path in (Path(office.exchange) / "probes").rglob("*") if path.is_file()]
    assert left == []


def test_sites_that_have_not_approved_are_named_and_what_to_do(office: CoordinatorParts) -> None:
    consent(DemoFolders(office.keys.parent), *SITES[1:])
    check = _found(office)["approvals"]
    assert (check.state, check.message) == (
        "warn",
        "Approvals of 3 of 4 sites cover the next run, and 4 are needed.",
    )
    assert check.remedy.startswith(f"{SITES[0]} has given no standing approval")
    assert "approvals" not in _found(replace(office, study=None))


def _other_keys(office: CoordinatorParts) -> CoordinatorParts:
    folder = office.keys.parent / "others"
    folder.mkdir()
    create_identity(folder, b"o" * 64)
    return replace(office, keys=folder)


def _nobody(office: CoordinatorParts) -> CoordinatorParts:
    identity = load_identity(office.keys)
    save_roster(office.roster, found_roster(identity.public), identity.key)
    return replace(office, study=None)


def _changed(office: CoordinatorParts) -> CoordinatorParts:
    assert office.study is not None
    office.study.write_text(office.study.read_text().replace("epsilon: 8", "epsilon: 9"))
    return office


FAULTS: dict[str, tuple[Callable[[CoordinatorParts], CoordinatorParts], str, str]] = {
    "no keys": (lambda o: replace(o, keys=o.keys / "none"), "keys", "fail"),
    "another's keys": (_other_keys, "roster", "fail"),
    "no sites": (_nobody, "roster", "warn"),
    "no exchange": (lambda o: replace(o, exchange=f"{o.exchange}/none"), "exchange", "fail"),
    "no kind of exchange": (lambda o: replace(o, exchange="ftp://host/x"), "exchange", "fail"),
    "study changed after it was signed": (_changed, "study", "fail"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_remedy(name: str, office: CoordinatorParts) -> None:
    make, looked_at, state = FAULTS[name]
    check = _found(make(office))[looked_at]
    assert check.state == state
    assert re.search(r"[.;] \w", f"{check.message} {check.remedy}")  # the fault, then a remedy


def test_what_is_around_it_counts(office: CoordinatorParts) -> None:
    wrong = _around(free=lambda _: 0, environment={"PREFECT_API_URL": "no address"})
    found = _found(office, replace(wrong, now=lambda: time.time() - 7200))
    assert [found[name].state for name in ("disk", "Prefect", "clock")] == ["fail"] * 3


def test_the_command_prints_them_and_ends_with_1_where_something_fails(
    office: CoordinatorParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = ("--roster", office.roster, "--exchange", office.exchange, "--keys")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    said = enter("consortium", "doctor", office.study, *rest, office.keys)
    assert said.code == 0
    assert "warn  approvals: Approvals of 0 of 4 sites" in " ".join(said.out.splitlines())
    bad = enter("consortium", "doctor", *rest, office.keys / "none", "--json")
    assert bad.code == 1
    assert "fail" in {check["state"] for check in json.loads(bad.out)}


def test_the_checks_are_metrics_that_every_user_of_the_machine_reads(
    office: CoordinatorParts, tmp_path: Path
) -> None:
    file = tmp_path / "textfile" / "consortium.prom"
    old = os.umask(0o077)
    try:
        said = enter(
            *("consortium", "doctor", "--roster", office.roster, "--exchange", office.exchange),
            *("--keys", office.keys / "none", "--metrics", file),
        )
    finally:
        os.umask(old)
    assert said.code == 1
    text = file.read_text()
    (family, times) = text_string_to_metric_families(text)
    states = {sample.labels["check"]: sample.value for sample in family.samples}
    assert states["keys"] == 2
    assert states["exchange"] == 0
    assert times.samples[0].value == pytest.approx(time.time(), abs=60)
    assert file.stat().st_mode & 0o777 == 0o644
