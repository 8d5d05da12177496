"""Locks of a folder: turns that are waited for, and left by a process that is killed."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from consortium.base import lock
from consortium.base.lock import in_use, only_one, take_turns
from consortium.errors import OutputError

HOLD = """
import sys, time
from pathlib import Path
from consortium.base.lock import take_turns
with take_turns(Path(sys.argv[1]), "decisions"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_holders_take_turns(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            with take_turns(tmp_path, "decisions"):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 20


def test_a_killed_holder_leaves_the_turn_and_a_slow_one_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with monkeypatch.context() as patch:
            patch.setattr(lock, "_PATIENCE", 0.2)
            wanted = pytest.raises(OutputError, match="has been changing the decisions")
            with wanted, take_turns(tmp_path, "decisions"):
                raise AssertionError
        holder.kill()
        holder.wait()
    with take_turns(tmp_path, "decisions"), take_turns(tmp_path, "other"):
        pass


def test_names_of_locks_are_independent(tmp_path: Path) -> None:
    with only_one(tmp_path, "inbox", "inbox"):
        assert not in_use(tmp_path)
        with only_one(tmp_path, "agent"):
            assert in_use(tmp_path)
        wanted = pytest.raises(OutputError, match="in use by another inbox")
        with wanted, only_one(tmp_path, "inbox", "inbox"):
            raise AssertionError
