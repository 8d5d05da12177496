"""A site's folder with a past, whose studies chose their names to do harm."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.config import SiteConfig
from site_agent.layout import LEDGER, LEFT_OUT, STORE
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.page.page import write_site_page
from site_agent.policy.policy import Allowance, Policy
from site_agent.run.message_store import MessageStore
from site_agent.run.site_log import LogLines
from tests.support.charges import charged
from tests.support.local_consortium import STUDY, build, say_yes

EVIL = "<script>alert(1)</script>"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PEOPLE = ["secret01", "secret02", "secret03"]
CHARGE = Charge(
    *("/bids", "old", "old-0001", 1, "pca", "second_moment", "subject", 0.6),
    *("5a" * 32, "ce" * 32, "9e" * 32, 0.05),
)


def hostile_site(root: Path) -> Path:
    """Make one: two past studies, an approval of three runs, lines of a log, people left out."""
    title = f"title: {EVIL!r}\nalgorithm: ica"
    place = build(root / "place", text=STUDY.replace("algorithm: ica", title))
    say_yes(place, "north", runs=3)
    folder = place.site("north")
    Policy(subject=Allowance(study=20, total=30)).save(folder)
    _spend(Ledger(folder / LEDGER))
    _leave_out(place, folder)
    told = LogLines(folder, NOW.isoformat)
    told.keep("takes part in old-0001 with 3 subjects")
    told.keep(f"{EVIL} is not approved here; it is ignored.")
    return folder


def _spend(ledger: Ledger) -> None:
    for number, day in enumerate((300, 200, 90), start=1):
        run = replace(CHARGE, run=f"old-{number:04}", mu=0.5 + 0.2 * number)
        at = (NOW - timedelta(days=day)).isoformat()
        charge = charged(ledger, run, PEOPLE[: number + 1], at)
        ledger.spend(charge, at)
    evil = replace(charge, study=EVIL, run=EVIL, statistic=EVIL, dataset=EVIL, centre=EVIL)
    charged(ledger, evil, PEOPLE, EVIL)


def _leave_out(place: DemoFolders, folder: Path) -> None:
    table = folder / "out.tsv"
    table.write_text("participant_id\treason\nsub-secret09\twithdrew\n", encoding="utf-8")
    config = SiteConfig.load(folder)
    config.model_copy(update={"left_out": table.resolve()}).save(folder)
    store = MessageStore(folder / STORE)
    store.save("old-0003", LEFT_OUT, b'["secret01", "secret02"]')
    store.close()


def hostile_page(root: Path) -> Path:
    """Write the page of a hostile site."""
    return write_site_page(hostile_site(root), NOW)
