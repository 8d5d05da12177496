"""A process that is killed at any moment leaves a sound ledger that holds all it answered for."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from site_agent.ledger.ledger import Ledger

SPENDER = """
import sys
from dataclasses import replace
from pathlib import Path
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits
keys = "5a" * 32, "ce" * 32, "9e" * 32
run = Charge("d", "s", "s-0001", 0, "", "", "subject", 1.0, *keys[:2], "", 0.0)
ledger = Ledger(Path(sys.argv[1]))
group, _ = ledger.hold(run, ["01"], LedgerLimits({"subject": 9.0}), "now")
first = Charge("d", "s", "s-0001", 1, "a", "b", "subject", 1e-3, *keys, 1e-4, group)
sys.stdout.write("0\\n")
sys.stdout.flush()
for number in range(int(sys.argv[2]), 10**6):
    charge = replace(first, round=number)
    ledger.reserve(charge, "now")
    sys.stdout.write(f"{number}\\n")  # the answer, which must be paid for by now
    sys.stdout.flush()
    ledger.spend(charge, "now")
"""


def test_killed_again_and_again(tmp_path: Path) -> None:
    path, chance, answered = tmp_path / "ledger.sqlite", random.Random(1), [0]
    for _ in range(5):
        start = str(answered[-1] + 1)  # a round that was reserved and not answered is asked again
        with subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(path), start], stdout=subprocess.PIPE, text=True
        ) as spender:
            assert spender.stdout is not None
            assert spender.stdout.readline() == "0\n"
            time.sleep(chance.uniform(0.0, 0.1))
            spender.kill()
            rest = spender.stdout.read().split("\n")[:-1]
        answered += [int(line) for line in rest]
        ledger = Ledger(path)
        reserved = [e.charge.round for e in ledger.entries() if e.event == "reserve"]
        assert reserved == list(range(1, len(reserved) + 1))
        assert 0 <= len(reserved) - answered[-1] <= 1
        assert ledger.total("d", "subject") == 1.0
        ledger.close()
    assert answered[-1] > 5
    ledger.release("s-0001", "5a" * 32, "now")
    assert ledger.total("d", "subject") == pytest.approx(1e-3 * len(reserved) ** 0.5)
