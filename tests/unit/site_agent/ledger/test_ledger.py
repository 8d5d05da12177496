"""The ledger: check, reserve, spend; each round once, each consortium for itself."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from consortium.base.formatting import number as written
from consortium.errors import BudgetError, LedgerError
from consortium.membership.keys import create_identity
from consortium.privacy.gdp import ADDS_UP, TWO_READERS, epsilon_of, mu_of
from site_agent.config import SiteConfig
from site_agent.ledger.export import budget, print_accounts
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits, accounts, studies
from site_agent.policy.policy import Allowance, Policy
from tests.support.charges import PEOPLE, charged, held, up_to, whole_run
from tests.support.command_line import enter

EVIL = "<script>alert(1)</script>"
CHARGE_TOTALS = Charge(
    *("/bids", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)
POLICY = Policy(subject=Allowance(study=10, total=20))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "l.sqlite")
    first = held(ledger, CHARGE_TOTALS, loss=9.0)
    ledger.reserve(first, "2026-11-01T10:00:00+00:00")
    ledger.spend(first, "2026-11-01T10:00:01+00:00")
    ledger.reserve(replace(first, round=2, mu=0.8, statistic="rotation"), "2026-11-02")
    ledger.release(first.run, first.site, "2026-11-02")
    other = replace(CHARGE_TOTALS, centre="ab" * 32, mu=2.4, study=EVIL, run=EVIL, statistic=EVIL)
    charged(ledger, other, at=EVIL)
    charged(ledger, replace(other, run="2", dataset="/eeg", unit="timepoint", mu=0.3))
    return ledger


def test_an_account_adds_up_as_squares(ledger: Ledger) -> None:
    own, eeg = accounts(ledger, POLICY)
    assert (own.unit, eeg.unit) == ("subject", "timepoint")
    assert eeg.spent.mu == pytest.approx(math.hypot(2.6, 0.3))
    assert own.spent.mu == pytest.approx(2.6)
    assert own.spent.epsilon == pytest.approx(epsilon_of(2.6, 1e-5))
    assert own.allowed.epsilon == 20
    assert own.spent.mu**2 + own.left.mu**2 == pytest.approx(mu_of(20, 1e-5) ** 2)
    rest = replace(CHARGE_TOTALS, run="rest", mu=own.left.mu * (1 - 1e-9))
    rest = held(ledger, rest, limits=LedgerLimits({"subject": mu_of(20, 1e-5)}))
    assert ledger.members(rest.persons, PEOPLE) == [*PEOPLE]  # what is left can be spent


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
    charged(ledger, replace(CHARGE_TOTALS, mu=once))
    (own,) = accounts(ledger, policy)
    assert own.more == 3
    for number in range(2, 6):
        run = replace(CHARGE_TOTALS, run=f"r{number}", mu=once)
        _, left_out = ledger.hold(whole_run(run, once), PEOPLE, limit, "now")
        assert left_out == ([] if number < 5 else [*PEOPLE])
        (own,) = accounts(ledger, policy)
        assert own.more == max(4 - number, 0)


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
        charged(ledger, replace(CHARGE_TOTALS, run=f"r-{number}"), people, f"2026-11-{number:02}")
    found = [mu for _, mu in ledger.course("subject")]
    assert found == pytest.approx([0.6, 0.6, 0.6 * math.sqrt(2), 0.6 * math.sqrt(2)])


def test_what_was_never_sent_leaves_the_course(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.sqlite")
    charge = charged(ledger, CHARGE_TOTALS, at="2026-11-01")
    ledger.take_back(charge, "2026-11-02")
    assert ledger.course("subject") == [("2026-11-02", 0.0)]


SITE, CENTRE, QUERY = "5a" * 32, "ce" * 32, "9e" * 32
CHARGE = Charge(
    *("data", "small", "small-0001", 1, "pca", "second_moment", "subject", 0.6),
    *(SITE, CENTRE, QUERY, 0.05),
)


def events(ledger: Ledger) -> list[str]:
    return [entry.event for entry in ledger.entries()]


@pytest.mark.parametrize("field", ["site", "centre", "run"])
def test_a_run_of_the_same_name_elsewhere_pays_for_itself(tmp_path: Path, field: str) -> None:
    """Two consortia may name their runs alike; two agents may answer the same run."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    # Alike in the first 16 digits, as somebody who makes keys can arrange.
    other = replace(CHARGE, **{field: getattr(CHARGE, field)[:16] + "0" * 48})
    first, second = held(ledger, CHARGE), held(ledger, other)
    assert ledger.reserve(first, "now")
    assert ledger.reserve(second, "now")
    assert ledger.total("data", "subject") == pytest.approx(math.hypot(0.6, 0.6))
    ledger.spend(second, "now")
    assert events(ledger) == ["hold", "hold", "reserve", "reserve", "spend"]


def test_studies_and_runs_are_told_apart_by_consortium(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    other = replace(CHARGE, centre="0" * 64, run="small-0002", mu=0.8)
    again = replace(CHARGE, round=2, mu=0.8)
    group = held(ledger, CHARGE, loss=1.0).persons
    held(ledger, other)
    for charge in (CHARGE, other, again):
        assert ledger.reserve(replace(charge, persons=group), "now")
    both = {(CENTRE, "small-0001"), ("0" * 64, "small-0002")}
    assert ledger.runs("small", [CENTRE, "0" * 64]) == both
    assert ledger.runs("small", [CENTRE]) == {(CENTRE, "small-0001")}
    assert ledger.runs("other", [CENTRE]) == set()
    for centres, mu in (([CENTRE], 1.0), (["0" * 64], 0.8), ([CENTRE, "0" * 64], 1.64**0.5)):
        assert ledger.study_total("data", "subject", "small", centres) == pytest.approx(mu)
    assert ledger.study_total("data", "subject", "other", [CENTRE]) == 0.0


def test_a_round_is_charged_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge = held(ledger, CHARGE)
    assert ledger.reserve(charge, "now")
    assert not ledger.reserve(charge, "later")
    for _ in range(2):
        ledger.spend(charge, "later")
    assert events(ledger) == ["hold", "reserve", "spend"]
    assert ledger.total("data", "subject") == 0.6


CHANGES = ({"mu": 0.1}, {"statistic": "x"}, {"stage": "ica"}, {"query": "0" * 64}, {"unit": "x"})


@pytest.mark.parametrize("change", CHANGES)
def test_a_round_has_one_price_and_one_question(tmp_path: Path, change: dict[str, object]) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge = held(ledger, CHARGE)
    ledger.reserve(charge, "now")
    with pytest.raises(LedgerError, match="reserved with another loss"):
        ledger.reserve(replace(charge, **change), "now")  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="not reserved"):
        ledger.spend(replace(charge, **change), "now")  # type: ignore[arg-type]


def test_what_was_not_reserved_is_not_spent(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="Reserve it first"):
        Ledger(tmp_path / "ledger.sqlite").spend(CHARGE, "now")


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.floats(0.1, 2.0))
def test_total_never_exceeds_the_limit(tmp_path_factory, prices, limit) -> None:
    """Each run holds its loss for those whose budget covers it, and is charged no more."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    taken = 0.0
    for number, mu in enumerate(prices, start=1):
        fits = taken + mu * mu <= limit * limit
        run = replace(CHARGE, run=f"r-{number}", mu=mu)
        group, left_out = ledger.hold(whole_run(run, mu), ["01"], up_to(limit), "now")
        ledger.reserve(replace(run, persons=group), "now")
        ledger.release(run.run, run.site, "now")
        if not left_out:
            taken += mu * mu
        assert fits == (not left_out) or math.isclose(taken, limit * limit)
    assert ledger.total("data", "subject", ["01"]) == pytest.approx(math.sqrt(taken))


@pytest.mark.parametrize("mu", [math.nan, math.inf, -0.1])
def test_a_price_that_is_no_price_is_refused(tmp_path: Path, mu: float) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(BudgetError, match="is not a privacy loss"):
        held(ledger, CHARGE, loss=mu)
    assert ledger.entries() == []
    charge = held(ledger, CHARGE)
    with pytest.raises(BudgetError, match="is not a privacy loss"):
        ledger.reserve(replace(charge, mu=mu), "now")
    assert events(ledger) == ["hold"]


def test_head_and_digests_are_those_of_the_lines(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert (ledger.head().seq, ledger.digest_at(1)) == (0, None)
    ledger.reserve(held(ledger, CHARGE), "now")
    first, last = ledger.entries()
    assert (last.previous, ledger.head()) == (first.digest, last.head)
    assert [ledger.digest_at(seq) for seq in (1, 2, 3)] == [first.digest, last.digest, None]


def test_what_is_taken_back_counts_nowhere_and_is_never_paid_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    first = held(ledger, CHARGE, loss=1.0)
    second = replace(first, round=2, mu=0.1)
    ledger.reserve(second, "now")
    ledger.reserve(first, "now")
    ledger.take_back(first, "now")
    ledger.take_back(first, "now")  # as after a crash
    ledger.verify()
    assert events(ledger) == ["hold", "reserve", "reserve", "void"]
    for _ in range(2):
        for book in (ledger, Ledger(ledger.path)):
            assert book.outsider_total(CHARGE.unit) == second.outsider
            with pytest.raises(LedgerError, match="is not charged again"):
                book.reserve(first, "now")
            with pytest.raises(LedgerError, match="was cancelled and can't be answered"):
                book.spend(first, "now")
        ledger.release(CHARGE.run, CHARGE.site, "now")
    for book in (ledger, Ledger(ledger.path)):
        assert book.total(CHARGE.dataset, CHARGE.unit) == second.mu  # to the last bit


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_that_was_taken_back_whole_never_was(tmp_path: Path, ended: bool) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge = charged(ledger, CHARGE) if ended else held(ledger, CHARGE)
    ledger.reserve(charge, "now")
    assert ledger.runs(CHARGE.study, [CHARGE.centre])
    ledger.take_back(charge, "now")
    assert ledger.runs(CHARGE.study, [CHARGE.centre]) == set()
    ledger.release(charge.run, charge.site, "now")
    assert ledger.total(CHARGE.dataset, CHARGE.unit) == 0.0


def test_what_was_answered_is_not_taken_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge = held(ledger, CHARGE)
    with pytest.raises(LedgerError, match="can't be cancelled"):
        ledger.take_back(charge, "now")
    ledger.reserve(charge, "now")
    ledger.spend_soon(charge, "now")
    with pytest.raises(LedgerError, match="can't be cancelled"):
        ledger.take_back(charge, "now")
    assert ledger.total(CHARGE.dataset, CHARGE.unit) == CHARGE.mu


def test_a_refusal_undoes_no_mark_and_the_ledger_goes_on(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge = held(ledger, CHARGE, loss=1.0)
    ledger.reserve(charge, "now")
    ledger.spend_soon(charge, "now")
    with pytest.raises(LedgerError):
        ledger.reserve(replace(charge, round=2, mu=0.9), "now")
    ledger.reserve(replace(charge, round=3), "now")
    assert events(ledger) == ["hold", "reserve", "spend", "reserve"]
