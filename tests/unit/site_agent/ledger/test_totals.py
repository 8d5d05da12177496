"""What a ledger's lines come to, by account, by study and over time."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from consortium.base.formatting import number as written
from consortium.errors import BudgetError
from consortium.membership.keys import create_identity
from consortium.privacy.gdp import ADDS_UP, TWO_READERS, epsilon_of, mu_of
from site_agent.config import SiteConfig
from site_agent.ledger.export import budget, print_accounts
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.ledger.totals import accounts, studies
from site_agent.policy.policy import Allowance, Policy
from tests.support.charges import up_to
from tests.support.command_line import enter

EVIL = "<script>alert(1)</script>"
CHARGE = Charge(
    *("/bids", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)
POLICY = Policy(subject=Allowance(study=10, total=20))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "l.sqlite")
    ledger.reserve(CHARGE, up_to(9.0), "2026-11-01T10:00:00+00:00")
    ledger.spend(CHARGE, "2026-11-01T10:00:01+00:00")
    ledger.reserve(replace(CHARGE, round=2, mu=0.8, statistic="rotation"), up_to(9.0), "2026-11-02")
    other = replace(CHARGE, centre="ab" * 32, mu=2.4, study=EVIL, run=EVIL, statistic=EVIL)
    ledger.reserve(other, up_to(9.0), EVIL)
    ledger.reserve(
        replace(other, dataset="/eeg", unit="timepoint", round=2, mu=0.3), up_to(9.0), "now"
    )
    return ledger


def test_an_account_adds_up_as_squares(ledger: Ledger) -> None:
    own, eeg = accounts(ledger, POLICY)
    assert (own.unit, eeg.unit) == ("subject", "timepoint")
    assert eeg.spent.mu == pytest.approx(math.hypot(2.6, 0.3))
    assert own.spent.mu == pytest.approx(2.6)
    assert own.spent.epsilon == pytest.approx(epsilon_of(2.6, 1e-5))
    assert own.allowed.epsilon == 20
    assert own.spent.mu**2 + own.left.mu**2 == pytest.approx(mu_of(20, 1e-5) ** 2)
    rest = replace(CHARGE, run="rest", mu=own.left.mu * (1 - 1e-9))
    assert ledger.reserve(rest, up_to(mu_of(20, 1e-5)), "now")  # what is left can be spent


def test_more_studies_like_the_last_one_fit_in_what_adds_up(ledger: Ledger) -> None:
    own, single = accounts(ledger, POLICY)
    assert own.last is not None
    assert own.last.mu == pytest.approx(2.4)  # the newest that protects persons
    assert own.used == pytest.approx(2.6**2 / mu_of(20, 1e-5) ** 2)
    assert own.more == int((mu_of(20, 1e-5) ** 2 - 2.6**2) / 2.4**2)
    assert single.last is not None
    assert single.last.mu == pytest.approx(0.3)
    assert "and no more study like the last one (ε = 12.5) would fit." in own.sentence
    assert f"ε = {written(own.spent.epsilon)} of 20 is spent for each participant" in own.sentence


def test_what_is_said_to_fit_is_let_pass_and_no_more(tmp_path: Path) -> None:
    once = mu_of(8, 1e-5)
    policy = Policy(subject=Allowance(study=10, total=epsilon_of(math.sqrt(4) * once, 1e-5)))
    ledger, limit = Ledger(tmp_path / "l.sqlite"), up_to(2 * once)
    ledger.reserve(replace(CHARGE, mu=once), limit, "now")
    (own,) = accounts(ledger, policy)
    assert own.more == 3
    for number in range(2, 5):
        ledger.reserve(replace(CHARGE, run=f"r{number}", mu=once), limit, "now")
    (own,) = accounts(ledger, policy)
    assert own.more == 0
    with pytest.raises(BudgetError):
        ledger.reserve(replace(CHARGE, run="r5", mu=once), limit, "now")


def test_every_place_says_the_same_of_the_budget(ledger: Ledger) -> None:
    out = io.StringIO()
    print_accounts(ledger, POLICY, Console(file=out, width=400))
    for account in accounts(ledger, POLICY):
        assert account.sentence in out.getvalue()
    assert ADDS_UP in out.getvalue()
    assert budget(ledger, POLICY)[-1].endswith(f"{ADDS_UP} {TWO_READERS}")


def test_a_sites_status_tells_the_same_whatever_its_ledger_is(
    ledger: Ledger, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    config = SiteConfig.create("north", tmp_path, str(tmp_path / "exchange"))
    site.mkdir()
    config.save(site)
    POLICY.save(site)
    create_identity(site, bytes(range(64)))
    shown = enter("site-agent", "status", "-f", site)
    assert "budget     nothing is spent yet" in shown.out
    assert not (site / "ledger.sqlite").exists()
    config.model_copy(update={"ledger": ledger.path}).save(site)
    shown = enter("site-agent", "status", "-f", site)
    for account in accounts(ledger, POLICY):
        assert f"budget     {account.sentence}" in shown.out.replace("\n", " ")
    told = json.loads(enter("site-agent", "status", "--json", "-f", site).out)["budget"]
    assert [each["used"] for each in told] == [each.used for each in accounts(ledger, POLICY)]
    ledger.close()
    ledger.path.write_bytes(b"damaged" * 999)
    assert "budget     " in enter("site-agent", "status", "-f", site).out


def test_an_overdrawn_account_has_nothing_left(ledger: Ledger) -> None:
    own, _ = accounts(ledger, Policy(subject=Allowance(study=1, total=1)))
    assert (own.left.mu, own.left.epsilon) == (0.0, 0.0)


def test_a_ledger_without_a_line_has_an_account(tmp_path: Path) -> None:
    (own,) = accounts(Ledger(tmp_path / "new.sqlite"), POLICY)
    assert (own.spent.epsilon, own.left.epsilon) == (0.0, pytest.approx(20))


def test_a_study_has_one_row_a_consortium(ledger: Ledger) -> None:
    first, second, third = studies(ledger.entries(), POLICY)
    assert (first.study, first.runs, first.reserved, first.answered) == ("small", 1, 2, 1)
    assert first.cost.mu == pytest.approx(1.0)
    assert first.statistics == ("second_moment", "rotation")
    assert (first.first[:10], first.last) == ("2026-11-01", "2026-11-02")
    assert (second.centre, second.unit, third.unit) == ("ab" * 32, "subject", "timepoint")


def test_the_course_ends_where_the_account_stands(ledger: Ledger) -> None:
    told = ledger.course("subject")
    assert told[0][0] == "2026-11-02"  # the end of the first run
    assert told[0][1] == pytest.approx(1.0)
    assert told[-1][1] == ledger.most_charged("subject") == pytest.approx(2.6)
    assert ledger.course("timepoint")[-1][1] == ledger.most_charged("timepoint")


def test_the_course_is_of_whoever_was_charged_most_at_the_time(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    for number, people in enumerate((["01"], ["02", "03"], ["02"], ["01"]), start=1):
        charge = replace(CHARGE, run=f"r-{number}", persons=ledger.enroll(people))
        ledger.reserve(charge, up_to(9.0), f"2026-11-{number:02}")
    found = [mu for _, mu in ledger.course("subject")]
    assert found == pytest.approx([0.6, 0.6, 0.6 * math.sqrt(2), 0.6 * math.sqrt(2)])


def test_what_was_never_sent_leaves_the_course(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    ledger.reserve(CHARGE, up_to(9.0), "2026-11-01")
    ledger.take_back(CHARGE, "2026-11-02")
    assert ledger.course("subject") == [("2026-11-02", 0.0)]
