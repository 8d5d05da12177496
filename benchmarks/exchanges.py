"""``python -m benchmarks.exchanges``: one study over each kind of exchange.

Four agents and the centre as processes, each with its own folder and its own credentials, over a
directory, an S3 server (moto) and Debian's OpenSSH server on loopback. The parties have the same
keys each time, so the maps must be the same. Requests to the S3 server are counted from its log,
from the first query to the end.
"""

import hashlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.latency import Door, measure, settle
from benchmarks.table import Row
from benchmarks.timing import show
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.run import RunFiles
from site_agent.config import SiteConfig
from tests.support.exchange_servers import SSHD, BucketServer, FileServer

Kind = Callable[[DemoFolders, Path], AbstractContextManager[Callable[[str], Door]]]
SITES, ROUNDS = 4, 20
PARTIES = ("centre", *(f"site{number}" for number in range(SITES)))


@contextmanager
def directory(place: DemoFolders, _: Path) -> Iterator[Callable[[str], Door]]:
    """Yield a shared directory."""
    yield lambda _: Door(str(place.files.exchange))


@contextmanager
def bucket(_: DemoFolders, home: Path) -> Iterator[Callable[[str], Door]]:
    """Yield an S3 server with a user for each party."""
    server = BucketServer(home, PARTIES)
    server.start()

    def door(name: str) -> Door:
        key, secret = server.keys[name]
        folder = home / name
        folder.mkdir(exist_ok=True)
        return Door("s3://consortium/study", server.credentials(folder, key=key, secret=secret))

    try:
        yield door
    finally:
        server.stop()


@contextmanager
def sftp(_: DemoFolders, home: Path) -> Iterator[Callable[[str], Door]]:
    """Yield Debian's OpenSSH server with a key for each party."""
    server = FileServer(home)
    known = home / "user_key.pub"
    server.start()
    root = home / "exchange"

    def door(name: str) -> Door:
        public = server.make_key(name)
        with known.open("a") as file:
            file.write(public + "\n")
        folder = home / f"{name}-own"
        folder.mkdir(exist_ok=True)
        return Door(server.place(root), server.credentials(folder, key_file=str(home / name)))

    try:
        yield door
    finally:
        server.stop()


def twin(
    source: DemoFolders, target: Path, doors: Callable[[str], Door]
) -> tuple[DemoFolders, RunFiles]:
    """Return the same parties with another address of the exchange."""
    shutil.copytree(source.root, target)
    place = DemoFolders(target)
    for name in PARTIES[1:]:
        folder, door = place.site(name), doors(name)
        config = SiteConfig.create(name, source.dataset("site0"), door.place, door.credentials)
        config.save(folder)
    door = doors("centre")
    return place, replace(place.files, exchange=door.place, credentials=door.credentials)


def counts(log: Path) -> dict[str, float]:
    """Count a round's requests by kind, from the S3 server's log."""
    lines = [line for line in log.read_text().splitlines() if "HTTP/1.1" in line]
    first = next((n for n, line in enumerate(lines) if "PUT" in line and "/query" in line), 0)
    last = max((n for n, line in enumerate(lines) if re.search(r"PUT \S*/end ", line)), default=0)
    rounds = sum(bool(re.search(r"PUT \S*/query \S* 200", line)) for line in lines)
    counted: Counter[str] = Counter()
    for line in lines[first:last]:
        found = re.search(r'"([A-Z]+) (\S+) HTTP/1.1" (\d+)', line)
        if found:
            method, path, status = found.groups()
            kind = "LIST" if "list-type" in path else method
            counted[f"{kind} of nothing" if status == "404" else kind] += 1
    return {kind: count / rounds for kind, count in counted.items()}


def requests() -> list[Row]:
    """Return the requests of a round that do not carry a message."""
    root = Path("build/exchanges").resolve()
    shutil.rmtree(root, ignore_errors=True)
    asked = over(bucket, root, settle(root / "source", SITES, ROUNDS))[1]
    needed = asked["GET"] + asked["PUT"]
    work = f"requests of a round at an object store, {SITES} sites"
    return [Row(work, sum(asked.values()), "those that carry a message", needed, "≤ 1.3", "")]


def maps(place: DemoFolders) -> str:
    """Return the digest of the map file."""
    (path,) = place.files.out.glob("tpl-*/func/*_components.nii.gz")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def over(kind: Kind, root: Path, source: DemoFolders) -> tuple[float, dict[str, float], str]:
    """Return a round's milliseconds over one kind of exchange, its requests, and a digest."""
    place = DemoFolders(root / kind.__name__)
    with tempfile.TemporaryDirectory() as home, kind(place, Path(home)) as doors:
        place, files = twin(source, place.root, doors)
        each = measure(place, files, SITES)
        log = Path(home) / "log"
        return each, counts(log) if kind is bucket else {}, maps(place)


def main() -> None:
    """Print the table."""
    root = Path("build/exchanges").resolve()
    shutil.rmtree(root, ignore_errors=True)
    source = settle(root / "source", SITES, ROUNDS)
    rows = []
    for kind in (directory, bucket, sftp):
        if kind is sftp and not SSHD.exists():
            rows.append([kind.__name__, "no OpenSSH server is installed here", "", ""])
            continue
        each, counted, found = over(kind, root, source)
        asked = ", ".join(f"{count:.1f} {name}" for name, count in sorted(counted.items()))
        rows.append([kind.__name__, f"{each:.0f}", asked, found])
    columns = ["exchange", "ms a round", "requests a round", "maps"]
    show(f"{SITES} agents, each kind of exchange", columns, rows)


if __name__ == "__main__":
    main()
