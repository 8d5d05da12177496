"""Lines of a ledger that record states of a site's folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from consortium.errors import LedgerError
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.states import State
from tests.support.charges import charged
from tests.unit.site_agent.ledger.test_file import CHARGE, SITE

STATE = State("approval", SITE, study="small", serial=1, word="approved")


def test_states_are_read_back_in_their_order_and_cost_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    later = replace(STATE, serial=2, word="withdrawn")
    other = replace(STATE, site="0b" * 32)
    for state in (STATE, later, other, STATE):
        ledger.record(state, "noon")
    assert ledger.states("approval", [SITE]) == [STATE, later, STATE]
    assert ledger.states("roster", [SITE]) == []
    assert ledger.used("small", [""]) == 0
    charged(ledger, CHARGE)
    assert ledger.total("data", "subject") == CHARGE.mu
    assert len(Ledger(tmp_path / "ledger.sqlite").entries()) == 7
    assert len(ledger.course("subject")) == 1


def test_a_closed_ledger_records_no_state(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.halt("It is closed.")
    with pytest.raises(LedgerError, match="It is closed"):
        ledger.record(STATE, "noon")
