"""An approval that is withdrawn is recorded where a backup of the folder does not reach."""

from datetime import date
from pathlib import Path

from consortium.membership.consent import read_consents
from consortium.membership.keys import load_identity
from consortium.study.reader import read_study
from site_agent.approval.approval import Terms, approvals, approve
from site_agent.approval.withdrawal import take_back
from site_agent.layout import CONFIG, LEDGER
from site_agent.ledger.ledger import Ledger
from tests.support.membership_files import consent, papers

DAY = date(2026, 11, 21)


def test_it_is_in_the_ledger_and_on_the_exchange(tmp_path: Path) -> None:
    place, _ = papers(tmp_path)
    folder, files = place.site("north"), place.files
    identity = load_identity(folder)
    approve(folder, "north", identity, files.study, files.roster, Terms())
    consent(place, "north")
    assert take_back(folder, "small", DAY) is None
    (line,) = Ledger(folder / LEDGER).entries()
    assert (line.charge.study, line.charge.statistic, line.at) == (
        "small",
        "withdrawn",
        "2026-11-21",
    )
    heads = (files.exchange / "ledgers" / "north").iterdir()
    assert [path.name for path in heads] == ["000000001"]
    keys = {"north": identity.public}
    given = read_consents(files.open_exchange(), read_study(files.study), keys)
    assert given["north"] is not None
    assert given["north"].terms is None


def test_without_an_exchange_it_counts_here_and_the_trouble_is_returned(tmp_path: Path) -> None:
    place, _ = papers(tmp_path)
    folder, files = place.site("north"), place.files
    identity = load_identity(folder)
    approve(folder, "north", identity, files.study, files.roster, Terms())
    config = folder / CONFIG
    config.write_text(config.read_text().replace(str(files.exchange), str(tmp_path / "away")))
    assert take_back(folder, "small", DAY) is not None
    assert approvals(folder, identity) == []
    assert [line.charge.statistic for line in Ledger(folder / LEDGER).entries()] == ["withdrawn"]
