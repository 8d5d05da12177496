"""What others hear of a site that takes no further part: a fault is a fault, a refusal is one."""

from pathlib import Path

import pytest

from consortium.errors import (
    BudgetError,
    ConfigurationError,
    ConsortiumError,
    DataError,
    OutputError,
    PrivacyError,
    SiteError,
    SoftwareError,
    StudyError,
    WithdrawnError,
)
from site_agent.run.admission import public_reason
from site_agent.run.rounds import Rounds
from tests.support.forgery import settle
from tests.support.local_consortium import LocalConsortium, conduct

SECRET = "sub-17"


@pytest.mark.parametrize("kind", [BudgetError, PrivacyError, StudyError])
def test_own_rules_refuse(kind: type[ConsortiumError]) -> None:
    assert public_reason(kind(SECRET)) == ("its own rules refuse the study. See the site's log")


def test_a_withdrawal_is_told_as_one() -> None:
    told = public_reason(WithdrawnError(SECRET))
    assert told == "its staff withdrew or replaced their approval"
    assert WithdrawnError(SECRET).code == "withdrawn"


@pytest.mark.parametrize("kind", [SoftwareError, ConfigurationError, OutputError, SiteError])
def test_a_fault_is_told_as_no_refusal(kind: type[ConsortiumError]) -> None:
    assert "this is not a refusal" in public_reason(kind(SECRET))


@pytest.mark.parametrize("kind", [SoftwareError, ConfigurationError, StudyError, DataError])
def test_nothing_of_an_error_but_its_kind_is_told(kind: type[ConsortiumError]) -> None:
    assert SECRET not in public_reason(kind(SECRET))


def test_a_fault_in_a_round_reaches_the_others_as_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))

    def fail(*_: object, **__: object) -> bool:
        raise SystemError(f"AST constructor recursion depth mismatch of {SECRET}")

    monkeypatch.setattr(Rounds, "advance", fail)
    with pytest.raises(SiteError, match=r"no further part \(software\): its software has a fault"):
        conduct(local.centre())
    assert SECRET not in local.said("centre")
    assert f"{SECRET}; this is a fault of the software, report it." in local.said("north")
