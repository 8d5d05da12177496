"""Many writers and readers at once: a name is written by one of them, and read whole."""

import json
import subprocess
import sys
import threading

import pytest

from consortium.errors import ExchangeError

every_kind = pytest.mark.parametrize("kind", ["memory", "directory", "s3", "sftp"])
shared_kind = pytest.mark.parametrize("kind", ["directory", "s3", "sftp"])


@pytest.fixture
def exchange(venue):
    return venue.open()


@every_kind
def test_of_many_writers_of_different_bytes_exactly_one_wins(venue):
    parties = [venue.open(), venue.open()]
    for attempt in range(8):
        barrier, won, lost = threading.Barrier(6), [], []

        def write(number, name=f"runs/{attempt}", barrier=barrier, won=won, lost=lost):
            data = b"%d" % number * 5000
            barrier.wait()
            try:
                parties[number % 2].put(name, data)
                won.append(data)
            except ExchangeError:
                lost.append(data)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert len(lost) == 5
        assert parties[0].get(f"runs/{attempt}", 5000) == won[0]


WRITER = """\
import json, sys
from pathlib import Path
from consortium.errors import TakenError
from consortium.exchange import open_exchange
place, credentials, mine = sys.argv[1:]
exchange = open_exchange(place, Path(credentials) if credentials else None)
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(12):
    try:
        exchange.put(f"race/{number}", mine.encode() * 9000)
        won.append(number)
    except TakenError as error:
        assert f"race/{number} " in str(error), error
print(json.dumps(won))
"""


@shared_kind
def test_of_two_writing_processes_exactly_one_wins_each_name(venue, exchange):
    arguments = [venue.url, str(venue.credentials or "")]
    writers = {
        mine: subprocess.Popen(
            [sys.executable, "-c", WRITER, *arguments, mine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for mine in ("a", "b")
    }
    for writer in writers.values():
        assert writer.stdout.readline() == "ready\n"
    for writer in writers.values():
        writer.stdin.write("go\n")
        writer.stdin.flush()
    won = {mine: json.loads(writer.communicate()[0]) for mine, writer in writers.items()}
    assert sorted(won["a"] + won["b"]) == list(range(12))
    for mine, numbers in won.items():
        for number in numbers:
            assert exchange.get(f"race/{number}", 9000) == mine.encode() * 9000


@every_kind
def test_writers_of_the_same_bytes_all_win(exchange):
    barrier, failures = threading.Barrier(6), []

    def write():
        barrier.wait()
        try:
            exchange.put("runs/same", b"x" * 10_000)
        except ExchangeError as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@every_kind
def test_a_reader_never_sees_half_a_message(exchange):
    seen, size, done = set(), 4_000_000, threading.Event()

    def read():
        while not done.is_set():
            data = exchange.get("runs/large", size)
            if data is not None:
                seen.add(len(data))

    reader = threading.Thread(target=read)
    reader.start()
    exchange.put("runs/large", bytes(size))
    while not seen:
        pass
    done.set()
    reader.join()
    assert seen == {size}
