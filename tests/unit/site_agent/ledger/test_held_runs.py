"""The losses that runs reserve until they end are shown, next to the charged ones."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from consortium.membership.keys import create_identity
from consortium.privacy.gdp import epsilon_of, mu_of
from site_agent.config import SiteConfig
from site_agent.ledger.export import print_accounts
from site_agent.ledger.held_runs import held_runs
from site_agent.ledger.ledger import Charge, Ledger, accounts
from site_agent.page.page import write_site_page
from site_agent.policy.policy import Allowance, Policy
from tests.support.charges import charged, held
from tests.support.command_line import enter

CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)
POLICY = Policy(subject=Allowance(study=10, total=20))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with a run that ended, one that was asked a round, and one that was asked nothing."""
    site = tmp_path / "site"
    site.mkdir()
    create_identity(site, bytes(range(64)))
    POLICY.save(site)
    SiteConfig.create("north", tmp_path, str(tmp_path / "exchange")).save(site)
    ledger = _ledger(site)
    charged(ledger, CHARGE)
    ledger.reserve(held(ledger, replace(CHARGE, run="small-0002", mu=0.8), loss=1.5), "now")
    held(ledger, replace(CHARGE, study="other", run="other-0001", unit="timepoint"), loss=0.5)
    ledger.close()
    return site


def _ledger(site: Path) -> Ledger:
    return Ledger(SiteConfig.load(site).ledger)


def test_each_run_that_has_not_ended_states_what_it_holds_and_what_was_charged(site: Path) -> None:
    first, second = held_runs(_ledger(site).entries(), POLICY)
    assert (first.study, first.run, first.unit) == ("small", "small-0002", "subject")
    assert (first.held.mu, first.charged.mu, first.rounds) == (1.5, 0.8, 1)
    assert first.held.epsilon == epsilon_of(1.5, POLICY.delta)
    assert (second.study, second.run, second.unit) == ("other", "other-0001", "timepoint")
    assert (second.held.mu, second.charged.mu, second.rounds) == (0.5, 0.0, 0)


def test_an_account_states_what_was_charged_beside_what_counts(site: Path) -> None:
    ledger = _ledger(site)
    own, volumes = accounts(ledger, POLICY)
    assert own.spent.mu == pytest.approx((0.6**2 + 1.5**2) ** 0.5)
    assert own.charged.mu == pytest.approx(1.0)
    assert own.left.mu == pytest.approx((mu_of(20, POLICY.delta) ** 2 - own.spent.mu**2) ** 0.5)
    assert volumes.spent.mu == pytest.approx((own.spent.mu**2 + 0.5**2) ** 0.5)
    for run in ("small-0002", "other-0001"):
        ledger.release(run, CHARGE.site, "later")
    assert held_runs(ledger.entries(), POLICY) == []
    own, volumes = accounts(ledger, POLICY)
    assert own.spent == own.charged == volumes.spent


def test_ledger_status_and_page_show_what_is_reserved(site: Path) -> None:
    out = io.StringIO()
    print_accounts(_ledger(site), POLICY, Console(file=out, width=400))
    status = enter("site-agent", "status", "-f", site).out.replace("\n", " ")
    page = write_site_page(site, datetime(2026, 11, 22, tzinfo=UTC)).read_text(encoding="utf-8")
    for each in held_runs(_ledger(site).entries(), POLICY):
        assert each.sentence in out.getvalue()
        assert each.sentence in status
        assert each.sentence in page
    found = json.loads(enter("site-agent", "status", "--json", "-f", site).out)
    assert [(each["run"], each["rounds_charged"]) for each in found["reserved"]] == [
        ("small-0002", 1),
        ("other-0001", 0),
    ]
    own, _ = accounts(_ledger(site), POLICY)
    assert found["budget"][0]["epsilon_charged"] == own.charged.epsilon
    assert found["reserved"][0]["epsilon_reserved"] == epsilon_of(1.5, POLICY.delta)
