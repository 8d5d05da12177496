"""``python -m benchmarks.ledger_persons``: time of a ledger of many participants and studies."""

import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.timing import best, show
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits

PERSONS, STUDIES = 50_000, 200
LIMITS = LedgerLimits({"subject": 1e9})
QUERY, SITE, CENTRE = "9e" * 32, "5a" * 32, "ce" * 32


def charge(study: int, number: int, persons: str) -> Charge:
    """Return the charge of one round of one study."""
    name = f"study-{study:03d}"
    return Charge(
        *("bids", name, f"{name}-0001", number, "pca", "second_moment", "subject", 0.01),
        *(SITE, CENTRE, QUERY, 0.01, persons),
    )


def main() -> None:
    """Fill a ledger, each study with nine tenths of all participants, and print a table."""
    draw = random.Random(1)
    everybody = [f"{number:05d}" for number in range(PERSONS)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        held, charged = [], []
        for study in range(STUDIES):
            group = draw.sample(everybody, PERSONS * 9 // 10)
            start = time.perf_counter()
            whole = replace(charge(study, 0, ""), mu=0.015)
            persons, _ = ledger.hold(whole, group, LIMITS, "now")
            held.append(time.perf_counter() - start)
            for number in (1, 2):
                line = charge(study, number, persons)
                charged.append(best(lambda line=line: ledger.reserve(line, "now"), 1))  # type: ignore[misc]
            ledger.release(whole.run, SITE, "now")
        ledger.settle()
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        limits = {"subject": 0.2}
        total = best(lambda: ledger.total("bids", "subject", everybody), 1)
        over = best(lambda: ledger.over_limit(everybody, limits, "subject", 0.01), 1)
        again = best(lambda: Ledger(ledger.path).total("bids", "subject", everybody), 1)
        rows = [
            ["reserve the loss of a study's participants, last ten", f"{_mean(held):.3f} s"],
            ["charge a round, last ten", f"{1e3 * _mean(charged):.2f} ms"],
            ["the most charged participant of all", f"{total:.3f} s"],
            ["who has no budget left", f"{over:.3f} s"],
            ["open, check and add up again", f"{again:.2f} s"],
            ["bytes on the disk", f"{size / 2**20:.1f} MiB"],
        ]
        show("By participant", ["what", f"{PERSONS} participants, {STUDIES} studies"], rows)


def _mean(values: list[float]) -> float:
    return sum(values[-10:]) / 10


if __name__ == "__main__":
    main()
