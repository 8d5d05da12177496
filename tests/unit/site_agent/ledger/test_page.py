"""The page for the ethics board: its numbers are the ledger's, and nothing in it is live."""

from __future__ import annotations

import html
import math
import re
import sqlite3
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest

from consortium.errors import LedgerError, OutputError
from consortium.privacy.gdp import epsilon_of, mu_of
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.ledger.page import write_page
from site_agent.ledger.totals import accounts, studies
from site_agent.policy.policy import Allowance, Policy
from tests.support.charges import up_to

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


def _page(ledger: Ledger, path: Path) -> str:
    write_page(path, ledger, POLICY, site="east", day=date(2026, 11, 21))
    return path.read_text(encoding="utf-8")


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


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_holds_every_line_and_nothing_live(ledger: Ledger, tmp_path: Path) -> None:
    text = _page(ledger, tmp_path / "page" / "ledger.html")
    tags = _Tags()
    tags.feed(text)
    names = {tag for tag, _ in tags.found}
    assert not names & {"script", "img", "iframe", "link", "object", "form"}
    assert not any(
        key.startswith("on") or key in ("src", "href") for _, a in tags.found for key in a
    )
    assert EVIL not in text
    assert text.count(html.escape(EVIL)) >= 5
    for entry in ledger.entries():
        assert entry.digest[:12] in text
    assert ledger.head().digest in text
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.unescape(text)))
    assert "ε\xa0=\xa020" in text.replace("&nbsp;", "\xa0")
    for words in ("each person with all their scans", "each single volume", "rounds paid for"):
        assert words in plain


def test_an_empty_ledger_has_a_page(tmp_path: Path) -> None:
    text = _page(Ledger(tmp_path / "l.sqlite"), tmp_path / "ledger.html")
    assert "Nothing was spent." in text
    assert "No study has asked anything yet." in text


def test_an_altered_ledger_has_none(ledger: Ledger, tmp_path: Path) -> None:
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE entries SET mu = 0 WHERE seq = 1")
    with pytest.raises(LedgerError, match="line 1 was altered"):
        _page(ledger, tmp_path / "ledger.html")
    assert not (tmp_path / "ledger.html").exists()


def test_a_place_that_can_not_be_written_is_told(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="can't be written"):
        _page(ledger, tmp_path / "l.sqlite" / "ledger.html")
